//! Ratios of paired samples, with an interval and a p value.
//!
//! Samples of one repetition ran next to each other, so they are paired: r_i = log(this_i /
//! baseline_i), and the ratio is exp(mean r) with exp(mean r ± t(0.975, n-1) · s/√n) around it
//! (Student's t; Kalibera & Jones 2013 recommend intervals for ratios, and logs make "twice" and
//! "half" lie equally far from 1).

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{CONFIDENCE, Interval, bootstrap, plain, sd, t_interval};

/// A ratio with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The geometric mean of the paired ratios.
    pub ratio: f64,
    /// Its interval; none from a single pair.
    pub interval: Option<Interval>,
    /// How many pairs.
    pub pairs: usize,
    /// How often chance alone would give a ratio this far from 1 (two-sided t test of the logs
    /// against 0); none from a single pair.
    pub p: Option<f64>,
}

/// The position of an interval relative to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Significance {
    /// Wholly above 1.
    Faster,
    /// Wholly below 1.
    Slower,
    /// Includes 1, or is unavailable.
    NoDifference,
}

impl Ratio {
    /// From pairs (this, baseline), all above 0.
    pub fn paired(pairs: &[(f64, f64)]) -> Option<Ratio> {
        let logs: Vec<f64> = pairs.iter().map(|(this, base)| (this / base).ln()).collect();
        if logs.is_empty() || logs.iter().any(|log| !log.is_finite()) {
            return None;
        }
        let mean = plain(&logs)?;
        let interval = t_interval(&logs, CONFIDENCE);
        let interval =
            interval.map(|Interval { low, high }| Interval { low: low.exp(), high: high.exp() });
        Some(Ratio { ratio: mean.exp(), interval, pairs: logs.len(), p: p_of_no_effect(&logs) })
    }

    /// The same where counts may be 0 in all pairs: ∞ against none, 0 of some, 1 of none on either
    /// side. A mixture has no ratio.
    pub(crate) fn of_counts(pairs: &[(f64, f64)]) -> Option<Ratio> {
        let is_none = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().all(|pair| of(pair) == 0.0);
        let ratio = match (is_none(&|pair| pair.0), is_none(&|pair| pair.1)) {
            _ if pairs.is_empty() => return None,
            (false, false) => return Ratio::paired(pairs),
            (false, true) => f64::INFINITY,
            (true, false) => 0.0,
            (true, true) => 1.0,
        };
        let interval = (pairs.len() > 1).then(|| Interval::at(ratio));
        Some(Ratio { ratio, interval, pairs: pairs.len(), p: None })
    }

    /// The position of its interval.
    pub fn shown(&self) -> Significance {
        match self.interval {
            Some(interval) if interval.low > 1.0 => Significance::Faster,
            Some(interval) if interval.high < 1.0 => Significance::Slower,
            _ => Significance::NoDifference,
        }
    }

    /// The interval of the ratio by resampling pairs instead of by Student's t: for samples whose
    /// logs are far from normal. None from fewer than three pairs.
    pub fn bootstrap(pairs: &[(f64, f64)], seed: u64) -> Option<Interval> {
        let logs: Vec<f64> = pairs.iter().map(|(this, base)| (this / base).ln()).collect();
        let interval = bootstrap::interval(&logs, &|logs| plain(logs), CONFIDENCE, seed)?;
        Some(Interval { low: interval.low.exp(), high: interval.high.exp() })
    }
}

/// The p value of a mean of 0.
fn p_of_no_effect(logs: &[f64]) -> Option<f64> {
    let (mean, sd) = (plain(logs)?, sd(logs)?);
    let error = sd / (logs.len() as f64).sqrt();
    if error == 0.0 {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    let student = StudentsT::new(0.0, 1.0, (logs.len() - 1) as f64).ok()?;
    Some((2.0 * student.sf((mean / error).abs())).min(1.0))
}
