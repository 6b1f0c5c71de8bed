//! Test loads: a program of threads that work for a time, and what they did in its middle.
//!
//! ```text
//!   spinning   spins, and yields or not        (the paper's sysbench memory program yields)
//!   memory     walks a block that all its threads share, in an order that no prefetcher knows,
//!              and yields after each pass
//!   answering  sleeps until a request comes, spins; late by what the scheduler lets it wait
//!   wakeups    messengers wake workers and are woken by them (schbench)
//!   messages   every sender writes to every receiver through pipes (hackbench)
//!
//!   start ──settle──►│◄─── time ───►│ end        counted: work, CPU time, delays
//! ```
//!
//! Threads look at the clock themselves: threads that another one has to end would never end if
//! they kept it from running.

mod messages;
mod wakeups;

use std::time::{Duration, Instant};

use workahead_machine::{CpuSet, clock, pin};

/// Turns of a spin: some tens of microseconds.
const SPIN: u64 = 20_000;
/// Between two requests.
const PAUSE: Duration = Duration::from_millis(3);
/// A block that a core's own cache holds, and two of them hardly.
const BLOCK_BYTES: usize = 1 << 20;
/// Delays that a thread keeps, the first ones: 8 MB.
const DELAYS_MAX: usize = 1 << 20;

/// The work of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Spin, without an end.
    Spinning,
    /// Yield after a number of spins.
    Yielding {
        /// Spins between two yields.
        spins: u64,
    },
    /// Walk memory that they share.
    Memory,
    /// Sleep until a request comes, and spin.
    Answering,
    /// Workers on each CPU that are woken, spin, and wake the messenger; two messengers.
    Wakeups,
    /// Senders, and as many receivers.
    Messages,
}

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The work of its threads.
    pub work: Work,
    /// Their number on each CPU; of [`Work::Messages`] the number of senders.
    pub threads: usize,
    /// Whether threads stay on the CPU that they are counted for; not those that wait for others.
    pub is_pinned: bool,
}

/// When work is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Work before that.
    pub settle: Duration,
    /// Its length.
    pub time: Duration,
}

/// The work of a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadResult {
    /// Spins, passes over the block, answers, wake-ups or messages.
    pub work: u64,
    /// CPU time of threads that spin or walk.
    pub cpu_s: f64,
    /// How late threads ran that slept until a time, or were woken; ascending.
    pub delays_ns: Vec<u64>,
}

impl Load {
    /// Runs from now until the window is over.
    ///
    /// # Errors
    ///
    /// If the allowed CPUs are unknown, or there are no threads or pipes.
    pub fn run(&self, window: Window) -> std::io::Result<LoadResult> {
        let clock = Clock::new(window);
        let cpus: Vec<usize> = pin::affinity().map_err(std::io::Error::other)?.iter().collect();
        let mut done = match self.work {
            Work::Wakeups => wakeups::run(self.threads * cpus.len(), &clock)?,
            Work::Messages => messages::run(self.threads, &clock)?,
            _ => self.on_cpus(&cpus, &clock),
        };
        done.delays_ns.sort_unstable();
        Ok(done)
    }

    fn on_cpus(&self, cpus: &[usize], clock: &Clock) -> LoadResult {
        let block =
            if self.work == Work::Memory { ring(BLOCK_BYTES / LINE_BYTES) } else { Vec::new() };
        let mut done = LoadResult::default();
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for cpu in cpus.iter().flat_map(|cpu| std::iter::repeat_n(*cpu, self.threads)) {
                let block = &block;
                threads.push(scope.spawn(move || {
                    let here: CpuSet = [cpu].into_iter().collect();
                    if self.is_pinned && pin::stay_on(&here).is_err() {
                        return LoadResult::default();
                    }
                    self.thread(block, clock)
                }));
            }
            threads
                .into_iter()
                .flat_map(std::thread::ScopedJoinHandle::join)
                .for_each(|one| done.add(one));
        });
        done
    }

    fn thread(&self, block: &[Line], clock: &Clock) -> LoadResult {
        let mut done = LoadResult::default();
        let mut at = 0;
        let mut cpu = None;
        loop {
            let before = clock.now();
            if before == Phase::Over {
                break;
            }
            let mut delay = None;
            let work = match self.work {
                Work::Answering => {
                    let due = Instant::now() + PAUSE;
                    std::thread::sleep(PAUSE);
                    delay = Some(due.elapsed());
                    spin(SPIN);
                    1
                }
                Work::Memory => {
                    at = pass(block, at);
                    std::thread::yield_now();
                    1
                }
                Work::Yielding { spins } => {
                    spin(SPIN * spins);
                    std::thread::yield_now();
                    spins
                }
                _ => {
                    spin(SPIN);
                    1
                }
            };
            // CPU time between the ends of the first and the last piece in the window.
            if clock.now() == Phase::Counted {
                let (first, last) =
                    (cpu.map_or(clock::thread_cpu_s(), |(first, _)| first), clock::thread_cpu_s());
                cpu = Some((first, last));
                done.count(work, delay.filter(|_| before == Phase::Counted));
            }
        }
        done.cpu_s = cpu.map_or(0.0, |(first, last)| last - first);
        done
    }
}

impl LoadResult {
    fn count(&mut self, work: u64, delay: Option<Duration>) {
        self.work += work;
        if let Some(delay) = delay.filter(|_| self.delays_ns.len() < DELAYS_MAX) {
            self.delays_ns.push(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    fn add(&mut self, other: Self) {
        self.work += other.work;
        self.cpu_s += other.cpu_s;
        self.delays_ns.extend(other.delays_ns);
    }

    /// The delay of all but `1 - quantile` of the runs.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list"
    )]
    pub fn delay_ns_at(&self, quantile: f64) -> Option<u64> {
        let place = (self.delays_ns.len() as f64 * quantile).ceil() as usize;
        self.delays_ns.get(place.saturating_sub(1)).copied()
    }
}

/// Where in its life a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Settling,
    Counted,
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Clock {
    start: Instant,
    window: Window,
}

impl Clock {
    fn new(window: Window) -> Self {
        Self { start: Instant::now(), window }
    }

    fn now(&self) -> Phase {
        let elapsed = self.start.elapsed();
        match elapsed.checked_sub(self.window.settle) {
            None => Phase::Settling,
            Some(counted) if counted < self.window.time => Phase::Counted,
            Some(_) => Phase::Over,
        }
    }
}

fn spin(turns: u64) {
    for turn in 0..turns {
        std::hint::black_box(turn);
    }
}

const LINE_BYTES: usize = 64;

/// A cache line with the number of the next one.
#[repr(align(64))]
#[derive(Clone, Copy, Debug)]
struct Line(u32);

/// Lines in one ring, by the method of Sattolo (1986), always in the same order.
fn ring(lines: usize) -> Vec<Line> {
    let mut next: Vec<u32> = (0..u32::try_from(lines).unwrap_or(u32::MAX)).collect();
    // The generator of Knuth's MMIX.
    let mut random = 2010_u64;
    for last in (1..lines).rev() {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        next.swap(last, (random >> 33) as usize % last);
    }
    next.into_iter().map(Line).collect()
}

/// Once over all lines, from one on, and back to it.
fn pass(block: &[Line], from: usize) -> usize {
    block.iter().fold(from, |at, _| std::hint::black_box(block[at].0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window =
        Window { settle: Duration::from_millis(10), time: Duration::from_millis(60) };

    #[test]
    fn a_pass_sees_every_line_once() {
        let block = ring(1000);
        let mut seen = vec![false; 1000];
        let mut at = 0;
        for _ in 0..1000 {
            assert!(!std::mem::replace(&mut seen[at], true));
            at = block[at].0 as usize;
        }
        assert_eq!((at, pass(&block, 7)), (0, 7));
    }

    #[test]
    fn every_load_works_and_ends() {
        for work in [
            Work::Spinning,
            Work::Yielding { spins: 2 },
            Work::Memory,
            Work::Answering,
            Work::Wakeups,
            Work::Messages,
        ] {
            let start = Instant::now();
            let load = Load { work, threads: 2, is_pinned: work == Work::Answering };
            let done = load.run(WINDOW).unwrap();
            assert!(done.work > 0, "{work:?} did nothing");
            let is_late = matches!(work, Work::Answering | Work::Wakeups);
            assert_eq!(done.delay_ns_at(0.99).is_some(), is_late, "{work:?}");
            assert!(done.delays_ns.is_sorted());
            assert!(start.elapsed() >= WINDOW.settle + WINDOW.time);
        }
    }

    #[test]
    fn quantiles_are_those_of_the_list() {
        let done = LoadResult { delays_ns: (1..=1000).collect(), ..LoadResult::default() };
        let at = |quantile| done.delay_ns_at(quantile).unwrap();
        assert_eq!((at(0.0), at(0.5), at(0.99), at(0.999), at(1.0)), (1, 500, 990, 999, 1000));
        assert_eq!(LoadResult::default().delay_ns_at(0.5), None);
    }
}
