//! From the observations of one event on one CPU to a figure.
//!
//! Keeton et al. (1998, section 2.5) drop exactly one smallest and one largest observation and
//! average the rest; an event whose deviation exceeds a tenth of its mean is noisy. Hassanein et
//! al. (2008, section 4) drop "outliers" by a rule they do not give; ours is Tukey's.

use serde::{Deserialize, Serialize};

/// A deviation above this share of the mean is noisy (Keeton et al., section 2.5).
pub const NOISY_SHARE: f64 = 0.10;

/// With fewer observations the trimmed mean would be of none.
const TRIMMED_MIN: usize = 3;

/// Fewer observations have no quartiles to speak of: none is an outlier.
const QUARTILES_MIN: usize = 5;

/// The values that are dropped before the mean is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// Exactly one smallest and one largest observation, ties or not: Keeton's.
    #[default]
    Trimmed,
    /// Nothing.
    Plain,
    /// Values more than 1.5 interquartile ranges outside the quartiles (Tukey 1977). Quartiles
    /// at rank p (n + 1), between neighbours in proportion (NIST/SEMATECH e-Handbook, 7.1.6).
    Tukey,
}

/// A figure out of several observations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reduction {
    /// Mean of the observations that were kept.
    pub mean: f64,
    /// Their deviation, n - 1 in the denominator; none of a single one.
    pub sd: Option<f64>,
    /// How many were kept.
    pub n: usize,
    /// The others, smallest first.
    pub dropped: Vec<f64>,
    /// Whether the deviation exceeds [`NOISY_SHARE`] of the mean; unknown without a deviation.
    pub noisy: Option<bool>,
}

/// Why observations have no mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum ReductionError {
    /// Too few of them.
    #[error("{n} observations, and the rule needs {needs}: measure for longer")]
    TooFew {
        /// How many there are.
        n: usize,
        /// How many the rule needs.
        needs: usize,
    },
    /// One is not a number.
    #[error("an observation is not a finite number: count it again")]
    NotFinite,
}

/// Averages what a rule keeps.
///
/// # Errors
/// If there are too few observations for the rule, or one is not finite.
pub fn reduce(observations: &[f64], rule: Rule) -> Result<Reduction, ReductionError> {
    if observations.iter().any(|value| !value.is_finite()) {
        return Err(ReductionError::NotFinite);
    }
    let needs = if rule == Rule::Trimmed { TRIMMED_MIN } else { 1 };
    let n = observations.len();
    if n < needs {
        return Err(ReductionError::TooFew { n, needs });
    }
    let mut sorted = observations.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (kept, dropped): (Vec<f64>, Vec<f64>) = match rule {
        Rule::Plain => (sorted, Vec::new()),
        Rule::Trimmed => (sorted[1..n - 1].to_vec(), vec![sorted[0], sorted[n - 1]]),
        Rule::Tukey => {
            let fences = fences(&sorted);
            sorted.into_iter().partition(|value| fences.contains(value))
        }
    };
    Ok(of_kept(&kept, dropped))
}

fn of_kept(kept: &[f64], dropped: Vec<f64>) -> Reduction {
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    let sd = sd(kept, mean);
    let noisy = sd.map(|sd| sd > NOISY_SHARE * mean.abs());
    Reduction { mean, sd, n: kept.len(), dropped, noisy }
}

/// In two passes: the sum of squares less the square of the sum loses all digits of observations
/// that are nearly alike.
fn sd(values: &[f64], mean: f64) -> Option<f64> {
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

fn fences(sorted: &[f64]) -> std::ops::RangeInclusive<f64> {
    if sorted.len() < QUARTILES_MIN {
        return f64::NEG_INFINITY..=f64::INFINITY;
    }
    let (first, third) = (quantile(sorted, 0.25), quantile(sorted, 0.75));
    let reach = 1.5 * (third - first);
    first - reach..=third + reach
}

/// At rank `p (n + 1)` counted from 1, of at least [`QUARTILES_MIN`] sorted values.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let rank = p * (sorted.len() + 1) as f64;
    let below = rank.floor() as usize;
    sorted[below - 1] + rank.fract() * (sorted[below] - sorted[below - 1])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        let reduced = reduce(&[4.0, 100.0, 2.0, 6.0, -50.0], Rule::Trimmed).unwrap();
        let dropped = vec![-50.0, 100.0];
        let by_hand = Reduction { mean: 4.0, sd: Some(2.0), n: 3, dropped, noisy: Some(true) };
        assert_eq!(reduced, by_hand);
        let quiet = reduce(&[99.0, 100.0, 101.0, 0.0, 500.0], Rule::Trimmed).unwrap();
        assert_eq!((quiet.mean, quiet.sd, quiet.noisy), (100.0, Some(1.0), Some(false)));
        let plain = reduce(&[1.0, 2.0, 3.0, 6.0], Rule::Plain).unwrap();
        assert_eq!((plain.mean, plain.n, plain.dropped.len()), (3.0, 4, 0));
    }

    #[test]
    fn one_of_each_goes_ties_or_not() {
        let tied = reduce(&[5.0, 5.0, 5.0, 9.0, 9.0], Rule::Trimmed).unwrap();
        assert_eq!((tied.n, tied.dropped), (3, vec![5.0, 9.0]));
        assert!((tied.mean - 19.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn few_observations_say_so() {
        let error = reduce(&[1.0, 2.0], Rule::Trimmed).unwrap_err();
        assert_eq!(error, ReductionError::TooFew { n: 2, needs: 3 });
        let three = reduce(&[1.0, 2.0, 9.0], Rule::Trimmed).unwrap();
        assert_eq!((three.mean, three.sd, three.noisy), (2.0, None, None));
        assert!(reduce(&[], Rule::Plain).is_err());
        assert!(reduce(&[], Rule::Tukey).is_err());
        assert_eq!(reduce(&[1.0, f64::NAN, 2.0], Rule::Plain), Err(ReductionError::NotFinite));
    }

    #[test]
    fn noise_is_more_than_a_tenth() {
        // Deviations of exactly 10 and a little more, around 100.
        assert_eq!(reduce(&[90.0, 100.0, 110.0], Rule::Plain).unwrap().noisy, Some(false));
        assert_eq!(reduce(&[89.9, 100.0, 110.1], Rule::Plain).unwrap().noisy, Some(true));
        assert_eq!(reduce(&[0.0, 0.0], Rule::Plain).unwrap().noisy, Some(false));
        assert_eq!(reduce(&[-1.0, 1.0], Rule::Plain).unwrap().noisy, Some(true));
    }

    #[test]
    fn tukeys_outliers_of_the_handbook() {
        // NIST/SEMATECH e-Handbook, section 7.1.6: quartiles 429.75 and 742.25; beyond 1211 only
        // 1441 lies outside.
        const HANDBOOK: [f64; 90] = [
            30., 171., 184., 201., 212., 250., 265., 270., 272., 289., 305., 306., 322., 322.,
            336., 346., 351., 370., 390., 404., 409., 411., 436., 437., 439., 441., 444., 448.,
            451., 453., 470., 480., 482., 487., 494., 495., 499., 503., 514., 521., 522., 527.,
            548., 550., 559., 560., 570., 572., 574., 578., 585., 592., 592., 607., 616., 618.,
            621., 629., 637., 638., 640., 656., 668., 707., 709., 719., 737., 739., 752., 758.,
            766., 792., 792., 794., 802., 818., 830., 832., 843., 858., 860., 869., 918., 925.,
            953., 991., 1000., 1005., 1068., 1441.,
        ];
        assert_eq!(quantile(&HANDBOOK, 0.25), 429.75);
        assert_eq!(quantile(&HANDBOOK, 0.75), 742.25);
        let reduced = reduce(&HANDBOOK, Rule::Tukey).unwrap();
        assert_eq!((reduced.n, reduced.dropped), (89, vec![1441.0]));
        // Too few for quartiles: nothing is an outlier.
        assert_eq!(reduce(&[1.0, 1.0, 1.0, 99.0], Rule::Tukey).unwrap().n, 4);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(values in prop::collection::vec(-1e6..1e6f64, 3..40)) {
            let all: f64 = values.iter().sum();
            for rule in [Rule::Trimmed, Rule::Plain, Rule::Tukey] {
                let reduced = reduce(&values, rule).unwrap();
                prop_assert_eq!(reduced.n + reduced.dropped.len(), values.len());
                let again = reduced.mean * reduced.n as f64 + reduced.dropped.iter().sum::<f64>();
                prop_assert!((again - all).abs() < 1e-6 * values.len() as f64);
            }
            let trimmed = reduce(&values, Rule::Trimmed).unwrap();
            let min = values.iter().copied().fold(f64::INFINITY, f64::min);
            let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert_eq!(trimmed.dropped, vec![min, max]);
        }
    }
}
