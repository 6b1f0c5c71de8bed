//! The statistics against values worked by hand, and their properties.

use proptest::prelude::*;

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
        assert!((quantile(degrees) - t).abs() < 1e-6, "{degrees}: {}", quantile(degrees));
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
    assert_eq!(ratio.shown(), Shown::NoDifference, "2 ± 2.48 includes 0");
}

#[test]
fn what_is_shown() {
    let faster = Ratio::paired(&[(2.0, 1.0), (2.1, 1.0), (1.9, 1.0)]).unwrap();
    assert_eq!(faster.shown(), Shown::Faster);
    let slower = Ratio::paired(&[(1.0, 2.0), (1.0, 2.1), (1.0, 1.9)]).unwrap();
    assert_eq!(slower.shown(), Shown::Slower);
    let once = Ratio::paired(&[(2.0, 1.0)]).unwrap();
    assert_eq!(
        (once.shown(), once.interval),
        (Shown::NoDifference, None),
        "one pair shows nothing"
    );
    assert_eq!(Ratio::paired(&[]), None);
    assert_eq!(Ratio::paired(&[(1.0, 0.0)]), None);
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
}
