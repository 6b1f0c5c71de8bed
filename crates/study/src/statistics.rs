//! From samples to figures: means, and ratios with an interval.
//!
//! A ratio is never the quotient of two means. Samples of one repetition ran next to each other,
//! so they are paired: r_i = log(this_i / baseline_i), and the ratio is exp(mean r) with
//! exp(mean r ± t(0.975, n-1) · s/√n) around it (Student's t; Kalibera & Jones 2013 recommend
//! intervals for ratios, and logs make "twice" and "half" lie equally far from 1).

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::method::Mean;

/// Two-sided confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// One figure out of several samples; none out of none.
pub fn mean(values: &[f64], how: Mean) -> Option<f64> {
    match how {
        Mean::Plain => plain(values),
        Mean::Trimmed => trimmed(values),
        Mean::Median => median(values),
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
    let sorted = sorted(values);
    match sorted.len() {
        0..=2 => plain(&sorted),
        n => plain(&sorted[1..n - 1]),
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

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The geometric mean of the paired ratios.
    pub ratio: f64,
    /// Its interval; none from a single pair.
    pub interval: Option<Interval>,
    /// How many pairs.
    pub pairs: usize,
}

/// A 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What an interval shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// Wholly above 1.
    Faster,
    /// Wholly below 1.
    Slower,
    /// Includes 1, or cannot be had.
    NoDifference,
}

impl Interval {
    /// Whether a value lies in it.
    pub fn includes(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

impl Ratio {
    /// From pairs (this, baseline), both above 0.
    pub fn paired(pairs: &[(f64, f64)]) -> Option<Ratio> {
        let logs: Vec<f64> = pairs.iter().map(|(this, base)| (this / base).ln()).collect();
        if logs.is_empty() || logs.iter().any(|log| !log.is_finite()) {
            return None;
        }
        let n = logs.len();
        let mean = logs.iter().sum::<f64>() / n as f64;
        let interval = (n > 1).then(|| {
            let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
            let error = (squares / (n - 1) as f64 / n as f64).sqrt();
            let half = quantile(n - 1) * error;
            Interval { low: (mean - half).exp(), high: (mean + half).exp() }
        });
        Some(Ratio { ratio: mean.exp(), interval, pairs: n })
    }

    /// What it shows.
    pub fn shown(&self) -> Shown {
        match self.interval {
            Some(interval) if interval.low > 1.0 => Shown::Faster,
            Some(interval) if interval.high < 1.0 => Shown::Slower,
            _ => Shown::NoDifference,
        }
    }
}

/// Student's t for a two-sided interval.
fn quantile(degrees: usize) -> f64 {
    let student = StudentsT::new(0.0, 1.0, degrees as f64).expect("at least one degree");
    student.inverse_cdf((1.0 + CONFIDENCE) / 2.0)
}

#[cfg(test)]
mod tests;
