//! The measurement: what is measured, in which order, and in how much time and memory.
//!
//! ```text
//! for huge pages, then 4 KiB:   touch as much as the budget allows
//!                               passes over all points until the phase's time is up; keep the best
//! ```
//!
//! The first pass is complete, however long it takes; further passes only make figures better. One
//! field is in memory at a time. A first touch can cost seconds per GiB (a virtual machine whose
//! host gives memory lazily), so a field grows by doubling, and stops when the next doubling would
//! take too long: the sizes that are then missing are said.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::error::Error;
use crate::machine::Machine;
use crate::memory::Transparent;
use crate::pages::Pages;

use super::deadline::Deadline;
use super::field::Field;
use super::latency::{self, LatencyPoint};
use super::lines::{self, LinesPoint, Method};
use super::{Knees, Limits, Siblings, VERSION, pause};

/// How much time and memory a measurement may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Time that the phases share.
    time: Duration,
    /// Memory touched at a time.
    memory_bytes: usize,
    /// Whether fewer sizes will do.
    quick: bool,
}

/// More would show nothing new: every cache and every TLB is exhausted long before.
const FOOTPRINT_MAX_BYTES: usize = 4 << 30;
/// Below this a machine has no memory level to measure.
const FOOTPRINT_MIN_BYTES: usize = 32 << 20;
/// More threads than this saturate any memory there is, and pairs of counts cost time.
const THREADS_MAX: usize = 64;
const KIB: usize = 1 << 10;

impl Budget {
    /// About 24 seconds, and a quarter of the memory that may be used now (at most 4 GiB).
    #[must_use]
    pub fn full(machine: &Machine) -> Self {
        Self::new(machine, Duration::from_secs(24), FOOTPRINT_MAX_BYTES)
    }

    /// A rough look: about 3 seconds, at most 128 MiB.
    #[must_use]
    pub fn quick(machine: &Machine) -> Self {
        let budget = Self::new(machine, Duration::from_secs(3), 128 << 20);
        Self { quick: true, ..budget }
    }

    fn new(machine: &Machine, time: Duration, most_bytes: usize) -> Self {
        let quarter = machine
            .memory
            .allowed_bytes
            .map_or(usize::MAX, |bytes| usize::try_from(bytes / 4).unwrap_or(usize::MAX));
        let memory = quarter.clamp(FOOTPRINT_MIN_BYTES, most_bytes);
        // Powers of two, as the sizes are.
        Self { time, memory_bytes: 1 << memory.ilog2(), quick: false }
    }

    fn share(self, percent: u32) -> Duration {
        self.time * percent / 100
    }
}

/// How far a measurement is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress<'a> {
    /// What is measured now.
    pub step: &'a str,
    /// From 0 to 1.
    pub done: f64,
}

impl Limits {
    /// Measures a machine. Takes no longer than 40 seconds with [`Budget::full`], aims at 24.
    ///
    /// # Errors
    /// When a CPU or the memory can't be had, or when `stop` was raised.
    pub fn measure(
        machine: &Machine,
        budget: Budget,
        progress: &mut dyn FnMut(Progress<'_>),
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        let began = Instant::now();
        let threads = thread_counts(machine);
        let cpus = machine.cpus_for(threads.last().copied().unwrap_or(1))?;
        let until = Deadline { at: began + budget.time, stop };
        let mut run = Run { machine, budget, threads, cpus, until, began, progress };
        let mut limits = Self {
            version: VERSION,
            machine: machine.fingerprint(),
            processor: machine.processor.clone(),
            taken_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs()),
            seconds: 0.0,
            quick: budget.quick,
            latency: Vec::new(),
            lines: Vec::new(),
            bandwidth: Vec::new(),
            pause_ns: pause::ns(),
            siblings: Siblings::default(),
            knees: Knees::default(),
            huge_share: None,
            unshown: Vec::new(),
        };
        run.fill(&mut limits)?;
        limits.seconds = began.elapsed().as_secs_f64();
        Ok(limits)
    }
}

/// 1, 2, 4 … and all; at most [`THREADS_MAX`].
fn thread_counts(machine: &Machine) -> Vec<usize> {
    let all = machine.allowed_cpus().len().clamp(1, THREADS_MAX);
    let mut counts: Vec<usize> = (0..).map(|i| 1 << i).take_while(|&count| count < all).collect();
    counts.push(all);
    counts
}

struct Run<'a> {
    machine: &'a Machine,
    budget: Budget,
    threads: Vec<usize>,
    cpus: Vec<usize>,
    until: Deadline<'a>,
    began: Instant,
    progress: &'a mut dyn FnMut(Progress<'_>),
}

impl Run<'_> {
    fn fill(&mut self, limits: &mut Limits) -> Result<(), Error> {
        let never = self.machine.huge_pages.transparent == Transparent::Never;
        if never {
            limits.unshown.push("huge pages: this system gives none".to_owned());
        } else {
            let field = self.field(Pages::Huge, limits)?;
            self.on_pages(&field, limits)?;
        }
        let field = self.field(Pages::Small, limits)?;
        self.on_pages(&field, limits)
    }

    /// As large a field as can be touched in time.
    fn field(&mut self, pages: Pages, _limits: &mut Limits) -> Result<Field, Error> {
        let mut field = Field::new(self.budget.memory_bytes, pages)?;
        let mut bytes = FOOTPRINT_MIN_BYTES.min(self.budget.memory_bytes);
        while field.bytes() < self.budget.memory_bytes {
            self.until.check()?;
            self.say("touching memory");
            field.touch(bytes, &self.cpus, self.machine.allowed_cpus())?;
            bytes *= 2;
        }
        Ok(field)
    }

    fn on_pages(&mut self, field: &Field, limits: &mut Limits) -> Result<(), Error> {
        self.latency(field, limits)?;
        self.lines(field, limits)
    }

    fn latency(&mut self, field: &Field, limits: &mut Limits) -> Result<(), Error> {
        let deadline = self.until.within(self.budget.share(20));
        let pages = field.pages();
        let sizes = sizes(field.bytes(), 2);
        let point = |&bytes: &usize| LatencyPoint { bytes, pages, ns: f64::INFINITY };
        let mut points: Vec<_> = sizes.iter().map(point).collect();
        let sample = Duration::from_millis(10);
        for turn in 0..5 {
            for point in &mut points {
                deadline.check()?;
                let ns = latency::on_field(field, point.bytes, self.cpus[0], turn, sample)?;
                point.ns = point.ns.min(ns);
            }
            self.say("latency");
            if deadline.passed() {
                break;
            }
        }
        limits.latency.extend(points);
        Ok(())
    }

    fn lines(&mut self, field: &Field, limits: &mut Limits) -> Result<(), Error> {
        let deadline = self.until.within(self.budget.share(25));
        let pages = field.pages();
        let sizes = sizes(field.bytes(), 1);
        let mut points = Vec::new();
        for &threads in &self.threads {
            points.extend(sizes.iter().map(|&bytes| LinesPoint::new(bytes, threads, pages)));
        }
        let sample = Duration::from_millis(10);
        for _ in 0..3 {
            for point in &mut points {
                for method in Method::ALL {
                    deadline.check()?;
                    let cpus = &self.cpus[..point.threads];
                    let rate = lines::on_field(field, point.bytes, cpus, method, sample)?;
                    point.keep(method, rate.per_cpu_s);
                }
            }
            self.say("random lines");
            if deadline.passed() {
                break;
            }
        }
        limits.lines.extend(points);
        Ok(())
    }

    fn say(&mut self, step: &str) {
        let done = self.began.elapsed().as_secs_f64() / self.budget.time.as_secs_f64();
        (self.progress)(Progress { step, done: done.min(1.0) });
    }
}

/// Footprints from 16 KiB to `bytes`, so many to an octave.
fn sizes(bytes: usize, per_octave: u32) -> Vec<usize> {
    let size = |i: u32| {
        let exact = 16.0 * KIB as f64 * 2f64.powf(f64::from(i) / f64::from(per_octave));
        exact.round() as usize
    };
    (0..).map(size).take_while(|&size| size <= bytes).collect()
}
