//! Parameters of fair queueing (Linux 2.6.24, kernel/sched_fair.c).

use crate::ticks::{CYCLE, Ticks};

/// Slices and wake-up preemption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fair {
    /// Period in which every runnable thread runs once, `sched_latency`; also the largest credit of
    /// a sleeper.
    pub latency_ns: u64,
    /// Shortest slice, however many threads share the period, `sched_min_granularity`.
    pub granularity_ns: u64,
    /// How far behind a woken thread must be to preempt the current one,
    /// `sched_wakeup_granularity`.
    pub wakeup_ns: u64,
}

impl Fair {
    /// Linux 2.6.24's on `cpus` CPUs: 20, 4 and 10 ms, times 1 + log2 of the CPUs.
    #[must_use]
    pub fn linux_2_6_24(cpus: u32) -> Self {
        let factor = 1 + u64::from(cpus.max(1).ilog2());
        let of = |milliseconds: u64| milliseconds * 1_000_000 * factor;
        Self { latency_ns: of(20), granularity_ns: of(4), wakeup_ns: of(10) }
    }
}

/// The same in a machine's ticks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slices {
    pub(super) latency: Ticks,
    pub(super) granularity: Ticks,
    pub(super) wakeup: Ticks,
}

impl Slices {
    pub(super) fn of(fair: &Fair, ghz: f64) -> Self {
        Self {
            latency: from_ns(fair.latency_ns, ghz).max(1),
            granularity: from_ns(fair.granularity_ns, ghz).max(1),
            wakeup: from_ns(fair.wakeup_ns, ghz),
        }
    }

    /// The slice of a thread: its weight's part of the period for `runnable` threads with total
    /// `load`.
    pub(super) fn slice(&self, weight: u32, load: u64, runnable: u64) -> Ticks {
        let most = (self.latency / self.granularity).max(1);
        let period = match runnable > most {
            true => self.latency * runnable / most,
            false => self.latency,
        };
        (period * u64::from(weight) / load.max(1)).max(1)
    }
}

/// Vruntime of `ticks` on a CPU for a weight.
pub(super) fn virtual_ticks(ticks: Ticks, weight: u32) -> Ticks {
    ticks * u64::from(super::WEIGHT) / u64::from(weight)
}

/// Ticks of a time at a clock rate.
pub(super) fn from_ns(ns: u64, ghz: f64) -> Ticks {
    (ns as f64 * ghz * CYCLE as f64).round() as Ticks
}
