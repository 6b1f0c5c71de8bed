//! A whole quick measurement, how its time is divided, and what it says it could not show.

use super::*;

#[test]
fn thread_counts_double_up_to_all() {
    assert_eq!(thread_counts(0), [1]);
    assert_eq!(thread_counts(1), [1]);
    assert_eq!(thread_counts(2), [1, 2]);
    assert_eq!(thread_counts(6), [1, 2, 4, 6]);
    assert_eq!(thread_counts(64), [1, 2, 4, 8, 16, 32, 64]);
    assert_eq!(thread_counts(500).last(), Some(&64));
}

#[test]
fn samples_share_the_time() {
    assert_eq!(sample(Duration::from_secs(4), 100), Duration::from_millis(10));
    assert_eq!(sample(Duration::from_secs(4), 1), SAMPLE.1);
    assert_eq!(sample(Duration::from_secs(4), 1_000_000), SAMPLE.0);
}

#[test]
fn a_quick_measurement_of_this_machine_is_complete() {
    let machine = Machine::here();
    let budget = Budget::quick(&machine);
    let mut steps = Vec::new();
    let mut progress = |progress: Progress<'_>| {
        assert!((0.0..=1.0).contains(&progress.done));
        steps.push(progress.step.to_owned());
    };
    let limits = Limits::measure(&machine, budget, &mut progress, &AtomicBool::new(false)).unwrap();
    assert!(limits.quick);
    assert_eq!(limits.machine, machine.fingerprint());
    for step in ["pause and siblings", "touching memory", "latency", "random lines", "bandwidth"] {
        assert!(steps.iter().any(|said| said == step), "{step}");
    }
    // Whatever was touched was measured, up to its end.
    let largest = limits.lines.iter().map(|point| point.bytes).max().unwrap();
    assert!(largest <= budget.memory_bytes());
    for pages in [Pages::Huge, Pages::Small] {
        for threads in 1..=machine.allowed_cpus().len().min(THREADS_MAX) {
            let rate = limits.lines_per_s(1 << 20, threads, pages).unwrap();
            assert!(rate.is_finite() && rate > 0.0);
        }
    }
    let (small, large) =
        (limits.latency_ns(16 << 10).unwrap(), limits.latency_ns(largest).unwrap());
    assert!(0.0 < small && small < large, "{small} {large}");
    assert!(limits.bandwidth.iter().all(|point| point.read_bytes_per_s > 0.0));
    assert!(limits.bandwidth.iter().all(|point| point.store_bytes_per_s > 0.0));
    // Saved limits come back the same: no figure is infinite or not a number.
    let json = serde_json::to_string(&limits).unwrap();
    assert_eq!(serde_json::from_str::<Limits>(&json).unwrap(), limits);
}
