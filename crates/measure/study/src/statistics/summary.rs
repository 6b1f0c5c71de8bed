//! The summary of the samples of one cell.
//!
//! The papers measured in different ways, so a result gives all of them: Hassanein et al. (2008)
//! means of 10 to 30 runs, for counters without outliers; Keeton et al. (1998) means without the
//! smallest and the largest.

use serde::Serialize;
use workahead_counters::cycles::NOISY_SHARE;

use super::trimmed;
use super::{
    CONFIDENCE, CleanedMean, Interval, bootstrap, median, outliers, plain, sd, t_interval,
};

/// The samples of a cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// How many.
    pub samples: usize,
    /// The plain mean.
    pub mean: f64,
    /// The deviation; none from one sample.
    pub sd: Option<f64>,
    /// The middle one.
    pub median: f64,
    /// The mean without the smallest and the largest.
    pub trimmed: f64,
    /// The mean without outliers, and which those were.
    pub cleaned: CleanedMean,
    /// The interval of the plain mean by Student's t; none from one sample.
    pub t_interval: Option<Interval>,
    /// The interval of the plain mean by bootstrap; none from fewer than three samples.
    pub bootstrap_interval: Option<Interval>,
}

impl Summary {
    /// Of samples, if there are any. The seed is that of the bootstrap.
    pub fn of(values: &[f64], seed: u64) -> Option<Summary> {
        Some(Summary {
            samples: values.len(),
            mean: plain(values)?,
            sd: sd(values),
            median: median(values)?,
            trimmed: trimmed(values)?,
            cleaned: outliers::cleaned(values)?,
            t_interval: t_interval(values, CONFIDENCE),
            bootstrap_interval: bootstrap::interval(values, &plain, CONFIDENCE, seed),
        })
    }

    /// Whether the samples scatter more than Keeton et al. (1998, section 3.4) accept: a deviation
    /// of a tenth of the mean.
    pub fn is_scattered(&self) -> bool {
        self.sd.is_some_and(|sd| sd > self.mean.abs() * NOISY_SHARE)
    }
}
