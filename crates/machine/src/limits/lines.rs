//! The most independent random cache lines per second.
//!
//! The figure that a probe of a table can at best reach: nothing is known about the next line but
//! its number, no load waits for another, and every load is used. A core keeps a limited number of
//! misses in flight, so this is *in flight ÷ latency*; a prefetch into the second level can get
//! past the first level's fill buffers where the core has a longer queue there. Hence three
//! methods, of which the best counts. Random numbers are drawn in blocks ahead of the loads, so
//! that the dependent chain of the generator never limits the loads.
//!
//! Source: the bandwidth of random accesses as in Manegold's Calibrator (CWI, 2000; "throughput"
//! next to "latency"), with prefetch as its own method.
//!
//! Rates are per second of the threads' own CPU time, added up: on a machine that is not idle this
//! leaves out the time in which something else ran.

mod kernel;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::{ElapsedTime, Moment};
use crate::cpus::CpuSet;
use crate::error::Error;
use crate::machine::Machine;
use crate::pages::Pages;

use super::field::{Field, LINE_BYTES, LINE_WORDS};
use super::team;
use kernel::Numbers;

/// How the lines are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Plain loads: the core's out-of-order window finds the misses.
    Plain,
    /// A prefetch into the first-level cache, some loads ahead.
    PrefetchL1,
    /// A prefetch into the second-level cache, more loads ahead.
    PrefetchL2,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Plain, Self::PrefetchL1, Self::PrefetchL2];
}

/// Lines per second of all threads together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LineRate {
    /// By the threads' own CPU time.
    pub per_cpu_s: f64,
    /// By the wall.
    pub per_wall_s: f64,
}

/// Lines per second over one footprint, by all threads together, by their own CPU time: the best
/// pass of each method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinesPoint {
    /// The footprint, which all threads share.
    pub bytes: usize,
    /// Threads, each on its own CPU.
    pub threads: usize,
    /// On these pages.
    pub pages: Pages,
    /// By plain loads.
    pub plain_per_s: f64,
    /// Prefetched into the first-level cache.
    pub prefetch_l1_per_s: f64,
    /// Prefetched into the second-level cache.
    pub prefetch_l2_per_s: f64,
}

impl LinesPoint {
    /// Nothing measured yet.
    pub(super) fn new(bytes: usize, threads: usize, pages: Pages) -> Self {
        let (plain_per_s, prefetch_l1_per_s, prefetch_l2_per_s) = (0.0, 0.0, 0.0);
        Self { bytes, threads, pages, plain_per_s, prefetch_l1_per_s, prefetch_l2_per_s }
    }

    /// The best of the three methods.
    #[must_use]
    pub fn best_per_s(&self) -> f64 {
        self.plain_per_s.max(self.prefetch_l1_per_s).max(self.prefetch_l2_per_s)
    }

    /// Keeps a pass if it is the best yet.
    pub(super) fn keep(&mut self, method: Method, per_s: f64) {
        let best = match method {
            Method::Plain => &mut self.plain_per_s,
            Method::PrefetchL1 => &mut self.prefetch_l1_per_s,
            Method::PrefetchL2 => &mut self.prefetch_l2_per_s,
        };
        *best = best.max(per_s);
    }
}

/// Lines read between two looks at the clock.
const BLOCKS_PER_LOOK: usize = 16;

/// Measures on memory of its own: `threads` threads, each reading random lines of all `bytes`.
/// The threads are put on the best CPUs that the calling thread may use. A study that wants to know
/// its fraction of the limit calls this with its own footprint, in the same run.
///
/// ```
/// use std::time::Duration;
/// use workahead_machine::limits::lines::{Method, measure};
/// use workahead_machine::pages::Pages;
/// let time = Duration::from_millis(2);
/// let per_s = measure(1 << 20, 1, Pages::Huge, Method::Plain, time).unwrap();
/// assert!(per_s > 0.0);
/// ```
///
/// # Errors
/// When the memory or the CPUs are unavailable.
pub fn measure(
    bytes: usize,
    threads: usize,
    pages: Pages,
    method: Method,
    duration: Duration,
) -> Result<f64, Error> {
    let machine = Machine::here();
    let cpus = machine.cpus_for(threads.max(1))?;
    let allowed = machine.allowed_cpus();
    let mut field = Field::new(bytes, pages)?;
    field.touch(bytes, &cpus, allowed)?;
    let rate = on_field(&field, bytes, &cpus, method, duration)?;
    Ok(rate.per_cpu_s)
}

/// Measures on a field that is already touched, over a footprint of at most the whole field, by one
/// thread on each CPU. Takes a third longer than `duration`: the first part only warms up.
///
/// # Errors
/// When a CPU is not allowed.
pub fn on_field(
    field: &Field,
    bytes: usize,
    cpus: &[usize],
    method: Method,
    duration: Duration,
) -> Result<LineRate, Error> {
    // Every call draws other numbers and another window: lines that an earlier call has left in
    // the cache must not come again in the same order.
    static TURN: AtomicU32 = AtomicU32::new(1);
    let turn = TURN.fetch_add(1, Ordering::Relaxed);
    let (start, len) = field.window(bytes, turn as usize);
    let words = &field.words()[start..start + len];
    let allowed = CpuSet::from_iter(cpus.iter().copied());
    let samples = team::together(cpus, &allowed, |thread| {
        let mut numbers = Numbers::new(turn.wrapping_mul(1021).wrapping_add(thread as u32));
        read(words, method, &mut numbers, duration / 3);
        read(words, method, &mut numbers, duration)
    })?;
    let sum = |seconds: fn(&ElapsedTime) -> f64| {
        // A sample that the clock could not see does not count.
        let seen = samples.iter().filter(|(_, elapsed)| seconds(elapsed) > 0.0);
        seen.map(|(lines, elapsed)| *lines as f64 / seconds(elapsed)).sum()
    };
    Ok(LineRate { per_cpu_s: sum(|elapsed| elapsed.cpu_s), per_wall_s: sum(|e| e.wall_s) })
}

/// Reads random lines for a while: how many, and in what time.
fn read(
    words: &[u64],
    method: Method,
    numbers: &mut Numbers,
    duration: Duration,
) -> (u64, ElapsedTime) {
    let lines = u32::try_from(words.len() / LINE_WORDS).unwrap_or(u32::MAX);
    let start = Moment::now();
    let mut read = 0;
    let mut sum = 0u64;
    loop {
        sum = sum.wrapping_add(kernel::sum(words, lines, method, (numbers, BLOCKS_PER_LOOK)));
        read += (BLOCKS_PER_LOOK * kernel::BLOCK) as u64;
        if start.wall_s() >= duration.as_secs_f64() {
            break;
        }
    }
    std::hint::black_box(sum);
    (read, start.elapsed())
}

const _: () = assert!(LINE_BYTES == 64, "the kernels index lines of eight words");

#[cfg(test)]
mod tests;
