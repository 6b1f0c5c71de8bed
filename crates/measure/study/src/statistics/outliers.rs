//! Outliers by a rule with a name.
//!
//! Hassanein et al. (2008) removed outliers by a rule they do not give. Ours is Tukey's, as for
//! counts: [`reduce`]. The plain mean always stands beside the cleaned one.

use serde::Serialize;
use workahead_counters::cycles::{Rule, reduce};

/// The rule in words, for reports.
pub const RULE: &str = "more than 1.5 interquartile ranges outside the quartiles (Tukey 1977)";

/// A mean without outliers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CleanedMean {
    /// The mean of the rest.
    pub mean: f64,
    /// The outliers, smallest first.
    pub dropped: Vec<f64>,
    /// The rule.
    pub rule: &'static str,
}

/// None out of no samples, or out of one that is not a number.
pub(super) fn cleaned(values: &[f64]) -> Option<CleanedMean> {
    let reduced = reduce(values, Rule::Tukey).ok()?;
    Some(CleanedMean { mean: reduced.mean, dropped: reduced.dropped, rule: RULE })
}
