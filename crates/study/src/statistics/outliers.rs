//! Outliers by a rule with a name.
//!
//! Hassanein et al. (2008) removed outliers by a rule they do not give. Ours is Tukey's (1977):
//! what lies more than 1.5 interquartile ranges outside the quartiles. Quartiles are those of the
//! NIST/SEMATECH e-Handbook (section 7.1.6): at rank p (n + 1), between neighbours in proportion.
//! The plain mean always stands beside the cleaned one.

use serde::Serialize;

use super::{plain, sorted};

/// The rule in words, for reports.
pub const RULE: &str = "more than 1.5 interquartile ranges outside the quartiles (Tukey 1977)";

/// Fewer samples have no quartiles to speak of: nothing is an outlier.
const SAMPLES_MIN: usize = 5;

/// A mean without outliers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cleaned {
    /// The mean of the rest.
    pub mean: f64,
    /// The outliers, smallest first.
    pub dropped: Vec<f64>,
    /// By which rule.
    pub rule: &'static str,
}

pub(super) fn cleaned(values: &[f64]) -> Option<Cleaned> {
    let sorted = sorted(values);
    let (low, high) = fences(&sorted);
    let (kept, dropped): (Vec<f64>, Vec<f64>) =
        sorted.into_iter().partition(|value| (low..=high).contains(value));
    Some(Cleaned { mean: plain(&kept)?, dropped, rule: RULE })
}

fn fences(sorted: &[f64]) -> (f64, f64) {
    if sorted.len() < SAMPLES_MIN {
        return (f64::NEG_INFINITY, f64::INFINITY);
    }
    let (first, third) = (quantile(sorted, 0.25), quantile(sorted, 0.75));
    let reach = 1.5 * (third - first);
    (first - reach, third + reach)
}

/// A quantile of sorted samples, at rank `p (n + 1)` counted from 1.
pub(super) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let rank = p * (sorted.len() + 1) as f64;
    let below = (rank.floor() as usize).clamp(1, sorted.len());
    let above = (below + 1).min(sorted.len());
    let share = (rank - below as f64).clamp(0.0, 1.0);
    sorted[below - 1] + share * (sorted[above - 1] - sorted[below - 1])
}
