//! Random lines: what is drawn, what is counted, every method the same answer.

use super::*;

#[test]
fn a_footprint_that_fits_the_cache_is_faster_than_one_that_does_not() {
    let duration = Duration::from_millis(20);
    let best = |bytes| {
        let rate = |_| measure(bytes, 1, Pages::Huge, Method::PrefetchL1, duration).unwrap();
        (0..3).map(rate).fold(0.0, f64::max)
    };
    let (small, large) = (best(64 << 10), best(256 << 20));
    assert!(small > large, "{small} {large}");
}

#[test]
fn more_threads_than_cpus_are_refused() {
    let time = Duration::from_millis(1);
    let error = measure(1 << 20, 100_000, Pages::Small, Method::Plain, time).unwrap_err();
    assert!(error.to_string().contains("use fewer"), "{error}");
}

#[test]
fn tiny_footprints_are_rounded_up_to_a_line() {
    for bytes in [0, 1, 64, 65] {
        let time = Duration::from_micros(50);
        assert!(measure(bytes, 1, Pages::Small, Method::Plain, time).unwrap() > 0.0);
    }
}
