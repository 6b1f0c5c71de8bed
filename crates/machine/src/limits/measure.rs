//! The measurement: what is measured, in which order, and in how much time and memory.
//!
//! ```text
//! pause, siblings
//! for huge pages, then 4 KiB:   touch as much as the budget allows
//!                               latency, random lines, on the first field bandwidth:
//!                               passes over all points until the phase's time is up; keep the best
//!                               (of latency the median too: it tells what neighbours leave)
//! ```
//!
//! The first pass is complete; further ones only make figures better. One field is in memory at a
//! time. A first touch can cost seconds per GiB (a virtual machine whose host gives memory lazily),
//! so a field grows by doubling, and stops when the next doubling would take too long: the sizes
//! that are then missing are said.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::error::Error;
use crate::machine::Machine;
use crate::memory::Transparent;
use crate::pages::Pages;

use super::bandwidth::{self, BandwidthPoint};
use super::budget::{Budget, Progress};
use super::curve::Curve;
use super::deadline::Deadline;
use super::field::Field;
use super::lines::{self, LineRate, LinesPoint, Method};
use super::{CacheSizes, Limits, Siblings, VERSION, limitations, pause};

/// The budget of each phase, in hundredths of the whole. Touching comes twice.
mod percent {
    pub(super) const SIBLINGS: u32 = 5;
    pub(super) const TOUCH: u32 = 11;
    /// More time for touching where memory is handed out slowly: 29 s become 38.
    pub(super) const TOUCH_SLACK: u32 = 30;
    pub(super) const LATENCY: u32 = 31;
    pub(super) const LINES: u32 = 19;
    pub(super) const BANDWIDTH: u32 = 4;
    pub(super) const SMALL_LATENCY: u32 = 4;
    pub(super) const SMALL_LINES: u32 = 15;
    const _: () = assert!(
        SIBLINGS + 2 * TOUCH + LATENCY + LINES + BANDWIDTH + SMALL_LATENCY + SMALL_LINES == 100
    );
}

/// More threads than this saturate any memory there is.
pub(super) const THREADS_MAX: usize = 64;
/// Passes that the time of a sample is chosen for.
const PASSES: u32 = 4;
/// Shorter than this a sample is all start and end; longer shows nothing more.
const SAMPLE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(15));

impl Limits {
    /// Measures a machine: with [`Budget::full`] in about 29 seconds, at most 40.
    ///
    /// # Errors
    /// When a CPU or the memory cannot be allocated, or when `stop` was raised.
    pub fn measure(
        machine: &Machine,
        budget: Budget,
        progress: &mut dyn FnMut(Progress<'_>),
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        let began = Instant::now();
        let threads = thread_counts(machine.allowed_cpus().len());
        let cpus = machine.cpus_for(threads.last().copied().unwrap_or(1))?;
        let deadline =
            Deadline { at: began + budget.time() + budget.percent(percent::TOUCH_SLACK), stop };
        let presence = Presence::default();
        let mut run = Run { machine, budget, threads, cpus, deadline, began, progress, presence };
        let mut limits = run.empty();
        run.fill(&mut limits)?;
        limits.presence = run.presence.share();
        limits.limitations.extend(limitations::of(machine, &limits));
        limits.seconds = began.elapsed().as_secs_f64();
        Ok(limits.rounded())
    }
}

/// 1, 2, 4 … and all; at most [`THREADS_MAX`].
fn thread_counts(cpus: usize) -> Vec<usize> {
    let all = cpus.clamp(1, THREADS_MAX);
    let mut counts: Vec<usize> = (0..).map(|i| 1 << i).take_while(|&count| count < all).collect();
    counts.push(all);
    counts
}

struct Run<'a> {
    machine: &'a Machine,
    budget: Budget,
    threads: Vec<usize>,
    cpus: Vec<usize>,
    /// The end of everything: after it no phase takes a second pass.
    deadline: Deadline<'a>,
    began: Instant,
    progress: &'a mut dyn FnMut(Progress<'_>),
    presence: Presence,
}

/// The share of the time for which samples had their CPUs.
#[derive(Default)]
struct Presence {
    shares: f64,
    samples: f64,
}

impl Presence {
    fn keep(&mut self, rate: LineRate) {
        self.shares += rate.per_wall_s / rate.per_cpu_s;
        self.samples += 1.0;
    }

    fn share(&self) -> f64 {
        let share = self.shares / self.samples;
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 1.0 }
    }
}

impl<'a> Run<'a> {
    fn empty(&self) -> Limits {
        Limits {
            version: VERSION,
            machine: self.machine.fingerprint(),
            processor: self.machine.processor.clone(),
            taken_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs()),
            seconds: 0.0,
            quick: self.budget.is_quick(),
            latency: Vec::new(),
            lines: Vec::new(),
            bandwidth: Vec::new(),
            instruction_sets: bandwidth::instruction_sets(),
            pause_ns: 0.0,
            siblings: Siblings::default(),
            cache_sizes: CacheSizes::default(),
            huge_share: None,
            presence: 1.0,
            limitations: Vec::new(),
        }
    }

    fn fill(&mut self, limits: &mut Limits) -> Result<(), Error> {
        self.say("pause and siblings");
        limits.pause_ns = pause::ns();
        limits.siblings = Siblings::probe(self.machine, self.within(percent::SIBLINGS))?;
        if self.machine.huge_pages.transparent != Transparent::Never {
            self.on_huge_pages(limits)?;
        }
        let mut field = self.field(Pages::Small, limits)?;
        if limits.lines.is_empty() {
            self.latency(&field, limits, percent::LATENCY)?;
            self.bandwidth(&mut field, limits)?;
            limits.cache_sizes = CacheSizes::of(&limits.latency);
        } else {
            self.latency(&field, limits, percent::SMALL_LATENCY)?;
        }
        self.lines(&field, limits, percent::SMALL_LINES)
    }

    /// All phases on huge pages, if the system gives any.
    fn on_huge_pages(&mut self, limits: &mut Limits) -> Result<(), Error> {
        let mut field = self.field(Pages::Huge, limits)?;
        let share = field.huge_bytes().map(|huge| huge as f64 / field.bytes() as f64);
        limits.huge_share = share.map(|share| share.min(1.0));
        // Figures of small pages must not pass for those of huge ones.
        if share.is_some_and(|share| share < HUGE_SHARE_LEAST) {
            return Ok(());
        }
        self.latency(&field, limits, percent::LATENCY)?;
        limits.cache_sizes = CacheSizes::of(&limits.latency);
        self.bandwidth(&mut field, limits)?;
        self.lines(&field, limits, percent::LINES)
    }

    /// As large a field as can be touched in time.
    fn field(&mut self, pages: Pages, limits: &mut Limits) -> Result<Field, Error> {
        let most = self.budget.memory_bytes();
        let mut field = Field::new(most, pages)?;
        let deadline = self.within(percent::TOUCH + percent::TOUCH_SLACK);
        let mut bytes = FIRST_TOUCH_BYTES;
        loop {
            deadline.check()?;
            self.say("touching memory");
            let began = Instant::now();
            field.touch(bytes.min(most), &self.near(), self.machine.allowed_cpus())?;
            // The next doubling touches twice as much, and later memory may come more slowly.
            let next = began.elapsed() * 3;
            if bytes >= most {
                return Ok(field);
            }
            if Instant::now() + next > deadline.at {
                limits.limitations.push(format!(
                    "{} pages beyond {} MiB: this machine hands out memory too slowly now; \
                     measure again when it has had it",
                    words(pages),
                    bytes >> 20
                ));
                return Ok(field);
            }
            bytes *= 2;
        }
    }

    /// The CPUs that touch memory: those of the first one's node, so that it lies there.
    fn near(&self) -> Vec<usize> {
        let node = |cpu: &usize| self.machine.core_of(*cpu).and_then(|core| core.node);
        let first = self.cpus.first().and_then(node);
        self.cpus.iter().copied().filter(|cpu| node(cpu) == first).collect()
    }

    fn latency(&mut self, field: &Field, limits: &mut Limits, percent: u32) -> Result<(), Error> {
        let (deadline, pages) = (self.within(percent), field.pages());
        // Cache sizes are read from the first curve only.
        let sizes = if limits.latency.is_empty() {
            self.budget.fine_sizes(field.bytes())
        } else {
            self.budget.coarse_sizes(field.bytes())
        };
        let mut curve = Curve::over(sizes);
        self.say("latency");
        while curve.turn(field, self.cpus[0], deadline)? {
            self.say("latency");
        }
        limits.latency.extend(curve.points(pages));
        Ok(())
    }

    fn lines(&mut self, field: &Field, limits: &mut Limits, percent: u32) -> Result<(), Error> {
        let (deadline, pages) = (self.within(percent), field.pages());
        let sizes = self.budget.coarse_sizes(field.bytes());
        let of_threads =
            |&threads| sizes.iter().map(move |&bytes| LinesPoint::new(bytes, threads, pages));
        let mut points: Vec<_> = self.threads.iter().flat_map(of_threads).collect();
        // A third of a sample is spent on warming up.
        let sample = sample(self.budget.percent(percent) * 3 / 4, points.len() * Method::ALL.len());
        for pass in 0.. {
            for point in &mut points {
                deadline.check()?;
                if pass > 0 && deadline.passed() {
                    limits.lines.append(&mut points);
                    return Ok(());
                }
                for method in Method::ALL {
                    let cpus = &self.cpus[..point.threads];
                    let rate = lines::on_field(field, point.bytes, cpus, method, sample)?;
                    point.keep(method, rate.per_cpu_s);
                    self.presence.keep(rate);
                }
            }
            self.say("random lines");
        }
        Ok(())
    }

    fn bandwidth(&mut self, field: &mut Field, limits: &mut Limits) -> Result<(), Error> {
        let deadline = self.within(percent::BANDWIDTH);
        let bytes = field.bytes().min(bandwidth::FOOTPRINT_BYTES);
        let mut points: Vec<_> =
            self.threads.iter().map(|&threads| BandwidthPoint::new(bytes, threads)).collect();
        // About six operations a point: three in each of two instruction sets.
        let sample = sample(self.budget.percent(percent::BANDWIDTH), points.len() * 6);
        for pass in 0.. {
            for point in &mut points {
                deadline.check()?;
                if pass > 0 && deadline.passed() {
                    limits.bandwidth.append(&mut points);
                    return Ok(());
                }
                point.pass(field, &self.cpus[..point.threads], sample)?;
            }
            self.say("bandwidth");
        }
        Ok(())
    }

    /// So much of the time from now, but no later than the end of everything.
    fn within(&self, percent: u32) -> Deadline<'a> {
        let phase = self.deadline.within(self.budget.percent(percent));
        Deadline { at: phase.at.min(self.deadline.at), ..phase }
    }

    fn say(&mut self, step: &str) {
        let done = self.began.elapsed().as_secs_f64() / self.budget.time().as_secs_f64();
        (self.progress)(Progress { step, done: done.min(1.0) });
    }
}

/// Less of it on huge pages, and there are none to speak of.
const HUGE_SHARE_LEAST: f64 = 0.1;
const FIRST_TOUCH_BYTES: usize = 32 << 20;

fn words(pages: Pages) -> &'static str {
    match pages {
        Pages::Huge => "huge",
        Pages::Small => "4 KiB",
    }
}

/// How long one of a given number of samples may take for [`PASSES`] passes in a time.
fn sample(time: Duration, samples: usize) -> Duration {
    let samples = u32::try_from(samples).unwrap_or(u32::MAX).saturating_mul(PASSES).max(1);
    (time / samples).clamp(SAMPLE.0, SAMPLE.1)
}

#[cfg(test)]
mod tests;
