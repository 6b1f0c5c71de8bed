//! Ratios of samples that are not paired: two runs, on two days or two machines.
//!
//! Nothing ran next to each other, so the interval is that of two independent means: Welch's (1947)
//! t interval of the difference of the logs, with Satterthwaite's degrees of freedom. Whatever
//! changed between the runs is in the ratio; no arithmetic takes it out.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{CONFIDENCE, Interval, Significance, plain, sd};

/// A ratio of means of logs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct UnpairedComparison {
    /// After over before: geometric means.
    pub ratio: f64,
    /// Its interval; none from a single sample of either.
    pub interval: Option<Interval>,
    /// Samples before and after.
    pub samples: (usize, usize),
    /// How often chance alone would give a ratio this far from 1.
    pub p: Option<f64>,
}

impl UnpairedComparison {
    /// From the samples of both runs, all above 0.
    pub fn of(before: &[f64], after: &[f64]) -> Option<UnpairedComparison> {
        let logs = |values: &[f64]| -> Option<Vec<f64>> {
            let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
            logs.iter().all(|log| log.is_finite()).then_some(logs)
        };
        let (before, after) = (logs(before)?, logs(after)?);
        let difference = plain(&after)? - plain(&before)?;
        let (interval, p) = match welch(difference, &before, &after) {
            Some((interval, p)) => (Some(interval), Some(p)),
            None => (None, None),
        };
        let samples = (before.len(), after.len());
        Some(UnpairedComparison { ratio: difference.exp(), interval, samples, p })
    }

    /// The position of its interval.
    pub fn shown(&self) -> Significance {
        match self.interval {
            Some(interval) if interval.low > 1.0 => Significance::Faster,
            Some(interval) if interval.high < 1.0 => Significance::Slower,
            _ => Significance::NoDifference,
        }
    }
}

/// The interval of the ratio and the p value of no difference.
fn welch(difference: f64, before: &[f64], after: &[f64]) -> Option<(Interval, f64)> {
    let share = |logs: &[f64]| Some((sd(logs)?.powi(2) / logs.len() as f64, logs.len() as f64));
    let ((one, n), (other, m)) = (share(before)?, share(after)?);
    let error = (one + other).sqrt();
    if error == 0.0 {
        let ratio = difference.exp();
        let p = if difference == 0.0 { 1.0 } else { 0.0 };
        return Some((Interval { low: ratio, high: ratio }, p));
    }
    let degrees = (one + other).powi(2) / (one.powi(2) / (n - 1.0) + other.powi(2) / (m - 1.0));
    let student = StudentsT::new(0.0, 1.0, degrees).ok()?;
    let half = student.inverse_cdf((1.0 + CONFIDENCE) / 2.0) * error;
    let p = (2.0 * student.sf((difference / error).abs())).min(1.0);
    let interval = Interval { low: (difference - half).exp(), high: (difference + half).exp() };
    Some((interval, p))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Welch's test on the logs of two samples, worked out by hand: means of logs ln 2 and ln 4
    /// with equal spreads of three values each, so that there are exactly 4 degrees of freedom.
    #[test]
    fn equal_spreads_are_students_test() {
        let spread = [0.9_f64, 1.0, 1.0 / 0.9];
        let before: Vec<f64> = spread.iter().map(|one| 2.0 * one).collect();
        let after: Vec<f64> = spread.iter().map(|one| 4.0 * one).collect();
        let found = UnpairedComparison::of(&before, &after).unwrap();
        assert!((found.ratio - 2.0).abs() < 1e-12);
        // sd of the logs is -ln 0.9, the error sd · √(2/3), t(0.975, 4) is 2.776.
        let half = 2.776_445 * -(0.9_f64.ln()) * (2.0_f64 / 3.0).sqrt();
        let interval = found.interval.unwrap();
        assert!((interval.high - 2.0 * half.exp()).abs() < 1e-5, "{interval:?}");
        assert!((interval.low - 2.0 / half.exp()).abs() < 1e-5, "{interval:?}");
        assert_eq!(found.shown(), Significance::Faster);
        assert_eq!(found.samples, (3, 3));
    }

    #[test]
    fn too_little_gives_no_interval_and_nonsense_no_ratio() {
        let one = UnpairedComparison::of(&[1.0], &[2.0, 2.1]).unwrap();
        assert_eq!((one.interval, one.p, one.shown()), (None, None, Significance::NoDifference));
        assert_eq!(UnpairedComparison::of(&[], &[1.0]), None);
        assert_eq!(UnpairedComparison::of(&[0.0], &[1.0]), None);
        let same = UnpairedComparison::of(&[1.0, 1.0], &[1.0, 1.0]).unwrap();
        assert_eq!((same.p, same.shown()), (Some(1.0), Significance::NoDifference));
    }
}
