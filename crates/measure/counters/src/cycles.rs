//! Where cycles go: the arithmetic from counts to CPI and its parts.
//!
//! ```text
//! computed CPI     = computation + resource stalls + instruction-related stalls    Breakdown
//! computation      = µops per instruction x sum over widths k of f_k / k           computation_*
//! non-overlapped   = computation + sum of misses per instruction x penalty + …  NonOverlappedSum
//! overlap          = measured CPI / non-overlapped CPI: lower hides more
//! stall component  = penalty x misses / instructions, per logical CPU              Stalls
//! observations     -> trimmed mean, deviation, noise                               reduce
//! ```
//!
//! After Keeton et al. (1998, sections 2.5, 3.1, 5.1, 5.3) and Hassanein et al. (2008, sections 4.6
//! and 5.6). Functions are pure, from [`Value`]s to [`Value`]s: a value that was not counted stays
//! unavailable with its reason, and never turns into a zero.

mod breakdown;
mod computation;
mod overlap;
mod profile;
mod reduce;
mod stalls;

pub use crate::unavailable::{Unavailable, Value, counted, missing, ratio};
pub use breakdown::{Breakdown, mix_by_time, time_share};
pub use computation::{Reciprocals, computation_cpi, computation_ucpi};
pub use overlap::{Component, NonOverlappedSum, Origin};
pub use profile::{Profile, speculative_factor};
pub use reduce::{NOISY_SHARE, Reduction, ReductionError, Rule, reduce};
pub use stalls::{Denominator, LogicalCpu, Penalty, Series, StallCause, Stalls};
