//! Limits at sizes, threads and pages that were and were not measured.

use super::*;
use crate::limits::sample::limits;

fn assert_near(value: Option<f64>, expected: f64) {
    let value = value.unwrap();
    assert!((value / expected - 1.0).abs() < 1e-9, "{value} instead of {expected}");
}

#[test]
fn measured_sizes_are_exact_and_others_lie_between_in_logarithms() {
    let limits = limits();
    assert_near(limits.lines_per_s(1 << 10, 1, Pages::Huge), 1000.0);
    assert_near(limits.lines_per_s(16 << 10, 1, Pages::Huge), 100.0);
    assert_near(limits.lines_per_s(4 << 10, 1, Pages::Huge), 1000f64.sqrt() * 10.0);
    assert_near(limits.latency_ns(32 << 10), 10.0);
}

#[test]
fn beyond_the_sizes_measured_the_nearest_holds() {
    let limits = limits();
    assert_near(limits.lines_per_s(0, 1, Pages::Huge), 1000.0);
    assert_near(limits.lines_per_s(usize::MAX, 1, Pages::Huge), 100.0);
    assert_near(limits.latency_ns(1), 1.0);
    assert_near(limits.latency_ns(1 << 40), 100.0);
}

#[test]
fn threads_between_two_counts_lie_between_and_more_are_unknown() {
    let limits = limits();
    assert_near(limits.lines_per_s(1 << 10, 2, Pages::Huge), 2000.0);
    assert_near(limits.lines_per_s(1 << 10, 4, Pages::Huge), 4000.0);
    assert_eq!(limits.lines_per_s(1 << 10, 5, Pages::Huge), None);
    assert_eq!(limits.lines_per_s(1 << 10, 2, Pages::Small), None);
    assert_eq!(limits.lines_per_s(1 << 10, 0, Pages::Huge), None);
}

#[test]
fn without_huge_pages_those_who_ask_get_the_figures_of_small_ones() {
    let mut limits = limits();
    assert_near(limits.lines_per_s(1 << 10, 1, Pages::Small), 500.0);
    limits.lines.retain(|point| point.pages == Pages::Small);
    assert_near(limits.lines_per_s(1 << 10, 1, Pages::Huge), 500.0);
    limits.lines.clear();
    assert_eq!(limits.lines_per_s(1 << 10, 1, Pages::Huge), None);
}

#[test]
fn caches_and_pauses_are_handed_out() {
    let limits = limits();
    assert_eq!((limits.l2_bytes(), limits.useful_llc_bytes()), (Some(1 << 19), None));
    assert_near(Some(limits.pause_ns()), 10.0);
}
