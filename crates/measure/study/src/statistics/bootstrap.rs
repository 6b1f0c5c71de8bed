//! Intervals by resampling, for samples that are not normal.
//!
//! Draw n samples from the n with replacement, take the statistic, do it 2000 times: the spread of
//! those is the spread of the statistic. The ends are Efron's BCa (1987; Efron & Tibshirani 1993,
//! chapter 14): percentiles shifted for bias (how many of them lie below the statistic itself) and
//! for skewness (from leaving each sample out once). The draws are seeded, so that a repeated
//! report has the same figures.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use statrs::distribution::{ContinuousCDF, Normal};

use super::{Interval, sorted};

/// Efron & Tibshirani take 2000 for BCa (section 14.3).
const RESAMPLES: usize = 2000;

/// Two samples have three resamples: no interval to speak of.
const SAMPLES_MIN: usize = 3;

/// The interval of a statistic of samples, which may be more than numbers: values that belong
/// together are drawn together. None from fewer than three samples, or where a resample has no
/// statistic.
///
/// ```
/// use workahead_study::statistics::{CONFIDENCE, bootstrap_interval};
/// let ratio = |pairs: &[(f64, f64)]| {
///     let sums = pairs.iter().fold((0.0, 0.0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
///     Some(sums.0 / sums.1)
/// };
/// let pairs = [(1.0, 2.0), (2.0, 4.1), (3.0, 5.9), (4.0, 8.0)];
/// let interval = bootstrap_interval(&pairs, &ratio, CONFIDENCE, 1).unwrap();
/// assert!(interval.includes(0.5) && interval.high - interval.low < 0.05);
/// ```
#[must_use]
pub fn interval<T: Copy>(
    values: &[T],
    statistic: &dyn Fn(&[T]) -> Option<f64>,
    confidence: f64,
    seed: u64,
) -> Option<Interval> {
    let n = values.len();
    if n < SAMPLES_MIN {
        return None;
    }
    let found = statistic(values)?;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut resample = values.to_vec();
    let mut replicates = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        resample.fill_with(|| values[random.random_range(0..n)]);
        replicates.push(statistic(&resample)?);
    }
    let replicates = sorted(&replicates);
    let normal = Normal::standard();
    // Ties count half, so that samples from a coarse clock are not taken for biased.
    let below = replicates.partition_point(|value| *value < found);
    let not_above = replicates.partition_point(|value| *value <= found);
    let share = (below + not_above) as f64 / 2.0 / RESAMPLES as f64;
    if share <= 0.0 || share >= 1.0 {
        return Some(Interval { low: replicates[0], high: replicates[RESAMPLES - 1] });
    }
    let bias = normal.inverse_cdf(share);
    let skew = acceleration(values, statistic)?;
    let at = |p: f64| {
        let z = bias + normal.inverse_cdf(p);
        let p = normal.cdf(bias + z / (1.0 - skew * z));
        let place = (p * RESAMPLES as f64).floor() as usize;
        replicates[place.min(RESAMPLES - 1)]
    };
    let tail = (1.0 - confidence) / 2.0;
    Some(Interval { low: at(tail), high: at(1.0 - tail) })
}

/// A sixth of the skewness of the statistic, from leaving out each sample (formula 14.15).
fn acceleration<T: Copy>(values: &[T], statistic: &dyn Fn(&[T]) -> Option<f64>) -> Option<f64> {
    let without = |left_out: usize| {
        let mut rest = values.to_vec();
        rest.swap_remove(left_out);
        statistic(&rest)
    };
    let jackknife: Vec<f64> = (0..values.len()).map(without).collect::<Option<_>>()?;
    let mean = jackknife.iter().sum::<f64>() / jackknife.len() as f64;
    let sum = |power: i32| jackknife.iter().map(|value| (mean - value).powi(power)).sum::<f64>();
    let squares = sum(2);
    Some(if squares > 0.0 { sum(3) / (6.0 * squares.powf(1.5)) } else { 0.0 })
}
