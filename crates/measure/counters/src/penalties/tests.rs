//! The cost of misses by limits made by hand, and the bar that they add up to.

use workahead_machine::limits::{CacheSizes, LatencyPoint, Limits, LinesPoint, Siblings, VERSION};

use super::*;
use crate::metric;
use crate::metrics::MetricValue;

/// 1 ns in L1, 5 in L2, 20 in the last level, 100 in memory; small pages add 30 there.
fn limits() -> Limits {
    let point = |bytes, pages, ns| LatencyPoint { bytes, pages, ns, median_ns: ns };
    let huge = [(16 << 10, 1.0), (512 << 10, 5.0), (16 << 20, 20.0), (256 << 20, 100.0)];
    let mut latency: Vec<LatencyPoint> =
        huge.map(|(bytes, ns)| point(bytes, Pages::Huge, ns)).into();
    latency.push(point(256 << 20, Pages::Small, 130.0));
    Limits {
        version: VERSION,
        machine: String::new(),
        processor: None,
        taken_unix_s: 0,
        seconds: 1.0,
        quick: false,
        latency,
        lines: vec![LinesPoint {
            bytes: 1 << 10,
            threads: 1,
            pages: Pages::Huge,
            plain_per_s: 1e9,
            prefetch_l1_per_s: 1e9,
            prefetch_l2_per_s: 1e9,
        }],
        bandwidth: Vec::new(),
        instruction_sets: Vec::new(),
        pause_ns: 10.0,
        siblings: Siblings::default(),
        cache_sizes: CacheSizes { l2_bytes: Some(1 << 20), useful_llc_bytes: Some(32 << 20) },
        huge_share: Some(1.0),
        presence: 1.0,
        limitations: Vec::new(),
    }
}

fn metrics(values: &[(&str, f64)]) -> Metrics {
    let valued = |(name, value): &(&str, f64)| MetricValue {
        metric: metric::named(name).unwrap(),
        privilege: Privilege::User,
        cpu: None,
        value: Some(*value),
        why: None,
        instead: None,
        slots: 6,
        noisy: false,
    };
    values.iter().map(valued).collect()
}

const ALL: [(&str, f64); 9] = [
    ("computation_cpi", 0.5),
    ("resource_stall_cpi", 0.3),
    ("l1i_mpki", 20.0),
    ("l1d_mpki", 30.0),
    ("l2_mpki", 10.0),
    ("l3_mpki", 2.0),
    ("itlb_mpki", 1.0),
    ("dtlb_mpki", 3.0),
    ("branch_mpki", 4.0),
];

#[test]
fn a_miss_is_charged_the_step_to_the_next_level() {
    let penalties = Penalties::of(&limits()).unwrap();
    let expected = Penalties { l1_ns: 4.0, l2_ns: 15.0, l3_ns: 80.0, walk_ns: Some(30.0) };
    assert_eq!(penalties, expected);
}

#[test]
fn nothing_is_charged_by_limits_that_do_not_know_a_level() {
    let mut unknown = limits();
    unknown.cache_sizes.useful_llc_bytes = None;
    assert_eq!(Penalties::of(&unknown), None);
    let mut one_size = limits();
    one_size.latency.retain(|point| point.pages == Pages::Huge);
    assert_eq!(Penalties::of(&one_size).unwrap().walk_ns, None);
}

#[test]
fn the_bar_is_the_sum_of_its_parts() {
    let penalties = Penalties::of(&limits()).unwrap();
    let bar = penalties.non_overlapped(&metrics(&ALL), Privilege::User, 2.0);
    // 2 cycles a nanosecond.
    let expected = 0.5
        + 0.3
        + 0.020 * 8.0
        + 0.030 * 8.0
        + 0.010 * 30.0
        + 0.002 * 160.0
        + 0.004 * 60.0
        + 0.004 * 15.0;
    assert!((bar.cpi().unwrap() - expected).abs() < 1e-12, "{:?}", bar.cpi());
}

#[test]
fn a_part_that_was_not_counted_leaves_no_sum() {
    let penalties = Penalties::of(&limits()).unwrap();
    let without: Vec<(&str, f64)> =
        ALL.iter().copied().filter(|(name, _)| *name != "l3_mpki").collect();
    let bar = penalties.non_overlapped(&metrics(&without), Privilege::User, 2.0);
    assert!(bar.cpi().unwrap_err().to_string().contains("l3_mpki"));
}

#[test]
fn stalls_are_charged_the_same_steps() {
    let cycles = |limits: &Limits| -> Vec<(StallCause, f64)> {
        let penalties = Penalties::of(limits).unwrap().of_stalls(3.0);
        penalties.iter().map(|penalty| (penalty.cause, penalty.cycles)).collect()
    };
    let mut limits = limits();
    let cycles_of = cycles(&limits);
    let of = |cause| cycles_of.iter().find(|(one, _)| *one == cause).unwrap().1;
    let ours = Penalties::of(&limits).unwrap();
    assert!((of(StallCause::L3) - 3.0 * ours.l3_ns).abs() < 1e-9);
    assert!((of(StallCause::L2) - 3.0 * ours.l2_ns).abs() < 1e-9);
    assert!((of(StallCause::Dtlb) - 90.0).abs() < 1e-9, "30 ns at 3 GHz");
    assert!((of(StallCause::Branch) - 15.0).abs() < 1e-9, "cycles, whatever the clock");
    limits.latency.retain(|point| point.pages == Pages::Huge);
    assert!(cycles(&limits).iter().all(|(cause, _)| *cause != StallCause::Dtlb), "not measured");
}
