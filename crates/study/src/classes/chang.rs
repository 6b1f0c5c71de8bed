//! Chang's arithmetic (2013): what "24 % faster" and "a doubled core" mean there.

/// How much faster, in per cent: the ratio of times less one. 692 s before and 559 s after are
/// 24 % faster.
pub fn percent_faster(before_s: f64, after_s: f64) -> f64 {
    (before_s / after_s - 1.0) * 100.0
}

/// How much more, in per cent: 2253 CPU seconds before and 3374 after are 50 % more.
pub fn percent_more(before: f64, after: f64) -> f64 {
    (after / before - 1.0) * 100.0
}

/// How many CPUs were busy on average.
pub fn cpus_busy(cpu_s: f64, elapsed_s: f64) -> f64 {
    cpu_s / elapsed_s
}

/// Two threads on one core of which both together gain `gain` over one alone (0.3 for 30 %): the
/// speed of each, against a thread that has its core for itself.
pub fn doubled_up_speed(gain: f64) -> f64 {
    (1.0 + gain) / 2.0
}

/// How much longer such a thread takes: at 30 % gain 1.54 times as long, and a plan that waits for
/// all of its threads with it.
pub fn doubled_up_time(gain: f64) -> f64 {
    1.0 / doubled_up_speed(gain)
}
