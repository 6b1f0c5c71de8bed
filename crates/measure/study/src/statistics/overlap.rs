//! Hassanein's rule: no claim where the standard-deviation intervals overlap.
//!
//! Hassanein et al. (2008, section 4) make no claim about µTPC-C at concurrency 1 because the
//! intervals of mean ± deviation with and without hyper-threading overlap. The rule knows nothing
//! of pairs nor of the number of samples, so it stands beside the paired interval, which decides.

use serde::Serialize;

use super::{Interval, plain, sd};

/// The rule, applied.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overlap {
    /// Mean ± deviation of this one.
    pub this: Interval,
    /// Mean ± deviation of the baseline.
    pub baseline: Interval,
    /// Whether the rule allows a claim: the two do not overlap.
    pub allows_claim: bool,
}

impl Overlap {
    /// From the samples of both; none from fewer than two of either.
    pub fn of(this: &[f64], baseline: &[f64]) -> Option<Overlap> {
        let around = |values: &[f64]| {
            let (mean, sd) = (plain(values)?, sd(values)?);
            Some(Interval { low: mean - sd, high: mean + sd })
        };
        let (this, baseline) = (around(this)?, around(baseline)?);
        Some(Overlap { this, baseline, allows_claim: !this.overlaps(&baseline) })
    }

    /// As reports print it.
    pub fn text(&self) -> &'static str {
        match self.allows_claim {
            true => "the intervals of mean ± deviation lie apart",
            false => "no claim: the intervals of mean ± deviation overlap",
        }
    }
}
