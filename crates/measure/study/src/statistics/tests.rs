//! The statistics against published tables and data sets, values worked by hand, and properties.

use proptest::prelude::*;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

#[test]
fn means_by_hand() {
    let values = [9.0, 1.0, 4.0, 2.0, 4.0];
    assert_eq!(mean(&values, Mean::Plain), Some(4.0));
    assert_eq!(mean(&values, Mean::Median), Some(4.0));
    assert!(close(mean(&values, Mean::Trimmed).unwrap(), 10.0 / 3.0));
    assert_eq!(mean(&[1.0, 3.0], Mean::Median), Some(2.0));
    assert_eq!(mean(&[], Mean::Median), None);
    assert_eq!(mean(&[], Mean::Trimmed), None);
}

#[test]
fn trimming_drops_one_of_each_even_among_ties() {
    assert_eq!(mean(&[1.0, 1.0, 7.0, 9.0, 9.0], Mean::Trimmed), Some(17.0 / 3.0));
    assert_eq!(mean(&[5.0, 5.0, 5.0], Mean::Trimmed), Some(5.0));
    assert_eq!(mean(&[2.0, 4.0], Mean::Trimmed), Some(3.0), "two samples: nothing to trim");
}

#[test]
fn quantiles_of_the_printed_table() {
    for (degrees, t) in [(1, 12.706_204_7), (2, 4.302_652_7), (4, 2.776_445_1), (30, 2.042_272_5)] {
        assert!(
            (quantile(degrees, CONFIDENCE) - t).abs() < 1e-6,
            "{degrees}: {}",
            quantile(degrees, CONFIDENCE)
        );
    }
}

#[test]
fn paired_interval_by_hand() {
    // Logs of 2, 4, 8 in units of ln 2: 1, 2, 3; mean 2, deviation 1, half width t(2)/√3.
    let ratio = Ratio::paired(&[(2.0, 1.0), (8.0, 2.0), (4.0, 0.5)]).unwrap();
    let half = 4.302_652_729_911_275 / 3f64.sqrt();
    let interval = ratio.interval.unwrap();
    assert!(close(ratio.ratio, 4.0));
    assert!((interval.low / 2f64.powf(2.0 - half) - 1.0).abs() < 1e-6);
    assert!((interval.high / 2f64.powf(2.0 + half) - 1.0).abs() < 1e-6);
    assert_eq!(ratio.shown(), Significance::NoDifference, "2 ± 2.48 includes 0");
}

#[test]
fn what_is_shown() {
    let faster = Ratio::paired(&[(2.0, 1.0), (2.1, 1.0), (1.9, 1.0)]).unwrap();
    assert_eq!(faster.shown(), Significance::Faster);
    let slower = Ratio::paired(&[(1.0, 2.0), (1.0, 2.1), (1.0, 1.9)]).unwrap();
    assert_eq!(slower.shown(), Significance::Slower);
    let once = Ratio::paired(&[(2.0, 1.0)]).unwrap();
    assert_eq!(
        (once.shown(), once.interval),
        (Significance::NoDifference, None),
        "one pair shows nothing"
    );
    assert_eq!(Ratio::paired(&[]), None);
    assert_eq!(Ratio::paired(&[(1.0, 0.0)]), None);
}

/// Certified means and deviations of the NIST Statistical Reference Datasets, "NumAcc1" to
/// "NumAcc4": summing squares in one pass gets the last ones wrong.
#[test]
fn nist_numerical_accuracy() {
    let alternating = |first: f64, one: f64, other: f64| -> Vec<f64> {
        let rest = (0..1000).map(|at| if at % 2 == 0 { one } else { other });
        std::iter::once(first).chain(rest).collect()
    };
    let sets = [
        (vec![10_000_001.0, 10_000_003.0, 10_000_002.0], 10_000_002.0, 1.0),
        (alternating(1.2, 1.1, 1.3), 1.2, 0.1),
        (alternating(1e6 + 0.2, 1e6 + 0.1, 1e6 + 0.3), 1e6 + 0.2, 0.1),
        (alternating(1e7 + 0.2, 1e7 + 0.1, 1e7 + 0.3), 1e7 + 0.2, 0.1),
    ];
    for (values, certified_mean, certified_sd) in sets {
        let (mean, sd) = (mean(&values, Mean::Plain).unwrap(), sd(&values).unwrap());
        assert!(close(mean, certified_mean), "{mean} {certified_mean}");
        assert!((sd / certified_sd - 1.0).abs() < 1e-7, "{sd} {certified_sd}");
    }
    assert_eq!(sd(&[1.0]), None);
}

/// The ordered data of the NIST/SEMATECH e-Handbook, section 7.1.6: quartiles 429.75 and 742.25,
/// inner fences -39 and 1211, and 1441 beyond them.
const HANDBOOK: [f64; 90] = [
    30., 171., 184., 201., 212., 250., 265., 270., 272., 289., 305., 306., 322., 322., 336., 346.,
    351., 370., 390., 404., 409., 411., 436., 437., 439., 441., 444., 448., 451., 453., 470., 480.,
    482., 487., 494., 495., 499., 503., 514., 521., 522., 527., 548., 550., 559., 560., 570., 572.,
    574., 578., 585., 592., 592., 607., 616., 618., 621., 629., 637., 638., 640., 656., 668., 707.,
    709., 719., 737., 739., 752., 758., 766., 792., 792., 794., 802., 818., 830., 832., 843., 858.,
    860., 869., 918., 925., 953., 991., 1000., 1005., 1068., 1441.,
];

#[test]
fn outliers_of_the_handbook() {
    let mut shuffled = HANDBOOK;
    shuffled.reverse();
    let summary = Summary::of(&shuffled, 1).unwrap();
    assert_eq!(summary.cleaned.dropped, [1441.0]);
    assert!(close(summary.cleaned.mean, HANDBOOK[..89].iter().sum::<f64>() / 89.0));
    assert!(close(summary.mean, HANDBOOK.iter().sum::<f64>() / 90.0), "beside it, the plain one");
    assert!(close(summary.trimmed, HANDBOOK[1..89].iter().sum::<f64>() / 88.0));
    assert!(summary.is_scattered() && summary.cleaned.rule.contains("1.5"));
    let four = Summary::of(&[1.0, 1.0, 1.0, 900.0], 1).unwrap();
    assert!(four.cleaned.dropped.is_empty(), "four samples have no quartiles");
}

/// Extra hours of sleep after two drugs ("Student", Biometrika 1908), as logs. R's
/// `t.test(extra ~ group, paired)` gives -1.58, interval -2.4598858 to -0.7001142, p 0.002832890.
#[test]
fn students_sleep() {
    let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0f64];
    let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4f64];
    let pairs: Vec<(f64, f64)> =
        first.iter().zip(&second).map(|(one, other)| (one.exp(), other.exp())).collect();
    let ratio = Ratio::paired(&pairs).unwrap();
    let interval = ratio.interval.unwrap();
    assert!((ratio.ratio.ln() + 1.58).abs() < 1e-9);
    assert!((interval.low.ln() + 2.459_885_8).abs() < 1e-6);
    assert!((interval.high.ln() + 0.700_114_2).abs() < 1e-6);
    assert!((ratio.p.unwrap() - 0.002_832_890).abs() < 1e-8, "{:?}", ratio.p);
    // Unpaired, by Hassanein's rule, the same data allow no claim.
    let overlap = Overlap::of(&first, &second).unwrap();
    assert!(!overlap.allows_claim && overlap.text().starts_with("no claim"));
    let bootstrap = Ratio::bootstrap(&pairs, 1).unwrap();
    assert!(bootstrap.high < 1.0, "{bootstrap:?}");
}

#[test]
fn intervals_that_lie_apart_allow_a_claim() {
    let overlap = Overlap::of(&[1.0, 1.1, 0.9], &[2.0, 2.1, 1.9]).unwrap();
    assert!(overlap.allows_claim);
    assert!(close(overlap.this.low, 0.9) && close(overlap.baseline.high, 2.1));
    assert_eq!(Overlap::of(&[1.0], &[2.0, 2.1]), None, "one sample has no deviation");
}

#[test]
fn p_without_any_scatter() {
    let same = Ratio::paired(&[(2.0, 2.0), (3.0, 3.0)]).unwrap();
    let twice = Ratio::paired(&[(2.0, 1.0), (2.0, 1.0)]).unwrap();
    assert_eq!((same.p, twice.p), (Some(1.0), Some(0.0)));
    assert_eq!(Ratio::paired(&[(2.0, 1.0)]).unwrap().p, None);
}

/// Four hypotheses with p values 0.01, 0.04, 0.03, 0.005, the usual worked example of Holm's
/// procedure: at 0.05 the fourth and the first are rejected and the others are not.
#[test]
fn holm_worked_example() {
    let adjusted = holm(&[Some(0.01), Some(0.04), None, Some(0.03), Some(0.005)]);
    let expected = [Some(0.03), Some(0.06), None, Some(0.06), Some(0.02)];
    for (found, expected) in adjusted.iter().zip(expected) {
        assert_eq!(found.is_some(), expected.is_some());
        assert!(close(found.unwrap_or(0.0), expected.unwrap_or(0.0)), "{adjusted:?}");
    }
    // R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm")
    let adjusted = holm(&[0.01, 0.02, 0.03, 0.04, 0.05].map(Some));
    for (found, expected) in adjusted.iter().zip([0.05, 0.08, 0.09, 0.09, 0.09]) {
        assert!(close(found.unwrap(), expected), "{adjusted:?}");
    }
    assert_eq!(holm(&[Some(0.9), Some(0.8)]), [Some(1.0), Some(1.0)]);
}

/// Spatial test data A of Efron & Tibshirani (1993, table 14.1), 26 children: the plug-in variance
/// is 171.5, and its 90 % BCa interval from 2000 resamples 115.8 to 259.6 (table 14.2), where
/// percentiles alone give 100.8 to 233.9.
#[test]
fn bootstrap_of_the_spatial_data() {
    let data = [
        48., 36., 20., 29., 42., 42., 20., 42., 22., 41., 45., 14., 6., 0., 33., 28., 34., 4., 32.,
        24., 47., 41., 24., 26., 30., 41.,
    ];
    let variance = |values: &[f64]| {
        let mean = plain(values)?;
        plain(&values.iter().map(|value| (value - mean).powi(2)).collect::<Vec<_>>())
    };
    assert!((variance(&data).unwrap() - 171.5).abs() < 0.05);
    let interval = bootstrap::interval(&data, &variance, 0.9, 1993).unwrap();
    assert!((interval.low - 115.8).abs() < 6.0, "{interval:?}");
    assert!((interval.high - 259.6).abs() < 12.0, "{interval:?}");
    let again = bootstrap::interval(&data, &variance, 0.9, 1993).unwrap();
    assert_eq!(interval, again, "the same seed, the same interval");
}

/// How many of 400 intervals hold the true mean: 95 % of Student's t for normal samples, a little
/// less of the bootstrap, which is known to be narrow for few samples.
#[test]
fn coverage_by_simulation() {
    let mut random = ChaCha8Rng::seed_from_u64(2005);
    // Sums of twelve uniform draws: normal enough, mean 6.
    let mut normal = || (0..12).map(|_| random.random::<f64>()).sum::<f64>();
    let (mut by_t, mut by_bootstrap) = (0, 0);
    let rounds = 400;
    for round in 0..rounds {
        let values: Vec<f64> = (0..15).map(|_| normal()).collect();
        by_t += u32::from(t_interval(&values, 0.95).unwrap().includes(6.0));
        let interval = bootstrap::interval(&values, &plain, 0.95, round).unwrap();
        by_bootstrap += u32::from(interval.includes(6.0));
    }
    let (by_t, by_bootstrap) =
        (f64::from(by_t) / rounds as f64, f64::from(by_bootstrap) / rounds as f64);
    assert!((0.925..=0.975).contains(&by_t), "{by_t}");
    assert!((0.89..=0.97).contains(&by_bootstrap), "{by_bootstrap}");
}

#[test]
fn samples_without_scatter_have_intervals_without_width() {
    let summary = Summary::of(&[2.0; 6], 1).unwrap();
    let point = Some(Interval { low: 2.0, high: 2.0 });
    assert_eq!((summary.t_interval, summary.bootstrap_interval), (point, point));
    assert_eq!((summary.sd, summary.is_scattered()), (Some(0.0), false));
    let one = Summary::of(&[2.0], 1).unwrap();
    assert_eq!((one.sd, one.t_interval, one.bootstrap_interval), (None, None, None));
    assert_eq!(Summary::of(&[], 1), None);
}

proptest! {
    #[test]
    fn a_mean_lies_between_its_samples(values in prop::collection::vec(0.001..1e6f64, 1..40)) {
        let (low, high) = (values.iter().copied().fold(f64::MAX, f64::min),
                           values.iter().copied().fold(f64::MIN, f64::max));
        for how in [Mean::Plain, Mean::Trimmed, Mean::Median] {
            let mean = mean(&values, how).unwrap();
            prop_assert!(mean >= low * (1.0 - 1e-12) && mean <= high * (1.0 + 1e-12));
        }
    }

    #[test]
    fn turning_a_ratio_round_turns_its_interval(
        pairs in prop::collection::vec((0.01..100f64, 0.01..100f64), 2..20)
    ) {
        let back: Vec<_> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
        let (there, back) = (Ratio::paired(&pairs).unwrap(), Ratio::paired(&back).unwrap());
        let (there, back) = (there.interval.unwrap(), back.interval.unwrap());
        prop_assert!((there.low * back.high - 1.0).abs() < 1e-6);
        prop_assert!((there.high * back.low - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_machine_that_drifts_does_not_move_a_paired_ratio(
        factors in prop::collection::vec(0.1..10f64, 2..20), ratio in 0.1..10f64
    ) {
        let pairs: Vec<_> = factors.iter().map(|drift| (ratio * drift, *drift)).collect();
        let found = Ratio::paired(&pairs).unwrap();
        prop_assert!((found.ratio / ratio - 1.0).abs() < 1e-9);
        prop_assert!((found.interval.unwrap().high / ratio - 1.0).abs() < 1e-6);
    }

    #[test]
    fn holm_keeps_the_order_and_only_raises(values in prop::collection::vec(0.0..1f64, 1..30)) {
        let adjusted = holm(&values.iter().copied().map(Some).collect::<Vec<_>>());
        for (one, p) in adjusted.iter().zip(&values) {
            prop_assert!(one.unwrap() >= *p && one.unwrap() <= 1.0);
            for (other, q) in adjusted.iter().zip(&values) {
                prop_assert!(p > q || one <= other);
            }
        }
    }
}

/// "Eliminating the outliers and taking the average" (Hassanein et al. 2008, section 4).
#[test]
fn a_cleaned_mean_leaves_outliers_out() {
    let values = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 50.0, 1.0];
    assert!((mean(&values, Mean::Cleaned).unwrap() - 1.0).abs() < 1e-12);
    assert_eq!(mean(&[], Mean::Cleaned), None);
}
