//! From samples to figures: means, deviations, intervals, ratios, and claims about them.
//!
//! ```text
//! samples of one cell      Summary: plain, median, trimmed and outlier-cleaned mean, deviation,
//!                          interval by Student's t and by bootstrap
//! samples of two cells     Ratio of pairs, which decides; beside it Overlap, Hassanein's rule
//! samples of two runs      UnpairedComparison: nothing ran next to each other
//! ratios of many queries   holm: p values that hold for all of them together
//! ```
//!
//! A ratio is never the quotient of two means.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};
use workahead_counters::cycles::{Rule, reduce};

mod bootstrap;
mod holm;
mod outliers;
mod overlap;
mod ratio;
mod summary;
mod unpaired;

pub use bootstrap::interval as bootstrap_interval;
pub use holm::holm;
pub use outliers::{CleanedMean, RULE as OUTLIER_RULE};
pub use overlap::Overlap;
pub use ratio::{Ratio, Significance};
pub use summary::Summary;
pub use unpaired::UnpairedComparison;

/// Two-sided confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// How several samples become one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mean {
    /// The arithmetic mean.
    Plain,
    /// The mean without the smallest and the largest sample (Keeton et al. 1998, section 3.4).
    Trimmed,
    /// The middle sample.
    Median,
    /// The mean without outliers by Tukey's rule: "eliminating the outliers and taking the average"
    /// (Hassanein et al. 2008, section 4).
    Cleaned,
}

/// One figure from several samples; `None` without samples.
pub fn mean(values: &[f64], how: Mean) -> Option<f64> {
    match how {
        Mean::Plain => plain(values),
        Mean::Trimmed => trimmed(values),
        Mean::Median => median(values),
        Mean::Cleaned => outliers::cleaned(values).map(|cleaned| cleaned.mean),
    }
}

fn plain(values: &[f64]) -> Option<f64> {
    match values {
        [] => None,
        _ => Some(values.iter().sum::<f64>() / values.len() as f64),
    }
}

/// Exactly one smallest and one largest sample are dropped, ties or not (Keeton et al. 1998,
/// section 3.4). Fewer than three samples leave nothing to trim.
fn trimmed(values: &[f64]) -> Option<f64> {
    match reduce(values, Rule::Trimmed) {
        Ok(reduced) => Some(reduced.mean),
        Err(_) => plain(values),
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// A 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The interval of a single value.
    #[must_use]
    pub const fn at(value: f64) -> Self {
        Self { low: value, high: value }
    }

    /// Whether a value lies in it.
    pub fn includes(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether some value lies in both.
    pub fn overlaps(&self, other: &Interval) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// The deviation of samples, n - 1 in the denominator; none from fewer than two. In two passes:
/// the sum of squares less the square of the sum loses all digits of samples that are nearly alike.
pub fn sd(values: &[f64]) -> Option<f64> {
    let mean = plain(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    // The rounding error of the mean (Chan, Golub, LeVeque 1983).
    let rest: f64 = values.iter().map(|value| value - mean).sum();
    let n = values.len() as f64;
    Some(((squares - rest * rest / n) / (n - 1.0)).max(0.0).sqrt())
}

/// The interval of the mean by Student's t; none from fewer than two samples.
fn t_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let (mean, sd) = (plain(values)?, sd(values)?);
    let half = quantile(values.len() - 1, confidence) * sd / (values.len() as f64).sqrt();
    Some(Interval { low: mean - half, high: mean + half })
}

/// Student's t for a two-sided interval.
fn quantile(degrees: usize, confidence: f64) -> f64 {
    let student = StudentsT::new(0.0, 1.0, degrees as f64).expect("at least one degree");
    student.inverse_cdf((1.0 + confidence) / 2.0)
}

#[cfg(test)]
mod tests;
