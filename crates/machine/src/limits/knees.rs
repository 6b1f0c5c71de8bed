//! The sizes of caches, out of the latency curve.
//!
//! ```text
//! latency                        ┌──────╱   memory: rises on, with the TLB's misses
//!                          3     │
//!                 ┌──────────────┘
//!          2 ┌────┘              a ladder of three steps: where they lie are the sizes of L1,
//!      ──────┘                   L2, and of the last level that is really ours
//!            L1   L2             useful LLC                                log footprint
//! ```
//!
//! Reading a knee where a threshold is crossed (Manegold's Calibrator, CWI, 2000) hangs on single
//! noisy points. So the whole curve is fitted: for all places and shapes of the steps a
//! least-squares fit of their heights (see [`ladder`]), and the fit that leaves the least error
//! wins.
//!
//! In a virtual machine the last level is shared with strangers. What they leave is the *useful*
//! size, and that is what a table has to fit into.

mod ladder;

use serde::{Deserialize, Serialize};

use super::latency::LatencyPoint;
use ladder::Ladder;

/// Sizes of caches as the latency curve shows them; `None` where it shows no knee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Knees {
    /// The second-level cache.
    pub l2_bytes: Option<usize>,
    /// The last-level cache, as far as it is ours.
    pub useful_llc_bytes: Option<usize>,
}

/// Fewer points can't show three steps.
const POINTS_LEAST: usize = 12;
/// A step by a smaller factor than this is noise.
const STEP_LEAST: f64 = 1.2;
/// A curve up to here has left the second level for memory, if there is no third.
const MEMORY_SHOWN_BYTES: f64 = (64 << 20) as f64;

impl Knees {
    /// The knees of a curve, given in any order.
    #[must_use]
    pub fn of(points: &[LatencyPoint]) -> Self {
        let mut curve: Vec<(f64, f64)> = points
            .iter()
            .filter(|point| point.bytes > 0 && point.ns.is_finite() && point.ns > 0.0)
            .map(|point| (point.bytes as f64, point.ns))
            .collect();
        curve.sort_by(|one, other| one.0.total_cmp(&other.0));
        never_falling(&mut curve);
        if curve.len() < POINTS_LEAST {
            return Self::default();
        }
        let Some(ladder) = Ladder::fitted(&curve) else { return Self::default() };
        let size = |step: usize| {
            let is_step = ladder.factor(step) >= STEP_LEAST;
            is_step.then(|| ladder.bytes[step].round() as usize)
        };
        let (l2, llc) = (size(1), size(2));
        let shows_memory = curve[curve.len() - 1].0 >= MEMORY_SHOWN_BYTES;
        // A curve with one step after the first level is that of a processor whose second level is
        // the last: whichever of the two places the fit gave to the step.
        let only = l2.xor(llc).filter(|_| shows_memory);
        Self { l2_bytes: l2.or(only), useful_llc_bytes: llc.or(only) }
    }
}

/// No footprint is slower than a larger one: a point above is a disturbance.
fn never_falling(curve: &mut [(f64, f64)]) {
    let mut least = f64::INFINITY;
    for point in curve.iter_mut().rev() {
        least = least.min(point.1);
        point.1 = least;
    }
}

#[cfg(test)]
mod tests;
