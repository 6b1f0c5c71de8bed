//! Workloads as scripts: the operations of an engine's threads, step by step.
//!
//! ```text
//!   plan: one step ──► code: the functions that it calls ──► operations ──► thread ──► machine
//!           └─ pages, records, locks that it touches ──────────┘
//! ```
//!
//! A driver is an engine in miniature that really computes its answer; its code is a [synthetic
//! footprint](code), named with every result. Its threads share a machine as in
//! [`run`](crate::run).

pub mod code;
pub mod micro;
pub mod orders;
mod space;
pub mod sysbench;

use std::sync::atomic::AtomicBool;

use crate::bus::BusCounts;
use crate::core::Processor;
use crate::hierarchy::AccessCounts;
use crate::run::{RunResult, Slices, Thread, run};
use crate::scheduler::{Figures, Scheduler, Task, run_tasks};
use crate::ticks::Ticks;

/// Threads with their placement.
pub struct Program<'s> {
    /// The threads.
    pub threads: Vec<Thread<'s>>,
    /// The logical CPU of each.
    pub placement: Vec<usize>,
    /// Time slices of threads on one CPU.
    pub slices: Slices,
}

/// The result of a program.
#[derive(Debug, Clone)]
pub struct ProgramResult {
    /// By CPU and by thread.
    pub run: RunResult,
    /// Where the accesses of each CPU found their lines.
    pub found: Vec<AccessCounts>,
    /// Counts of the bus.
    pub bus: BusCounts,
}

/// Runs a program to its end, or until `stop` is set. The machine's caches keep the contents of an
/// earlier program (S0.10: a first run warms up).
///
/// # Panics
/// If a thread is placed on a CPU that the machine doesn't have.
pub fn drive(processor: &mut Processor, program: Program<'_>, stop: &AtomicBool) -> ProgramResult {
    let Program { threads, placement, slices } = program;
    let begun = together(processor);
    let result = run(processor, threads, &placement, slices, stop);
    done(processor, result, begun)
}

/// [`drive`] for tasks with modelled run queues.
///
/// # Panics
/// As [`run_tasks`].
pub fn drive_by(
    processor: &mut Processor,
    tasks: Vec<Task<'_>>,
    by: &Scheduler,
    stop: &AtomicBool,
) -> (ProgramResult, Figures) {
    let begun = together(processor);
    let (result, figures) = run_tasks(processor, tasks, by, stop);
    (done(processor, result, begun), figures)
}

/// Sets all CPUs to the same time.
fn together(processor: &mut Processor) -> Ticks {
    processor.hierarchy.found.fill(AccessCounts::default());
    processor.hierarchy.bus.counts = BusCounts::default();
    let cpus = processor.preset().cpus() as usize;
    let begun = (0..cpus).map(|cpu| processor.now(cpu)).max().unwrap_or_default();
    (0..cpus).for_each(|cpu| processor.idle_until(cpu, begun));
    begun
}

fn done(processor: &Processor, mut run: RunResult, begun: Ticks) -> ProgramResult {
    run.ticks = run.ticks.saturating_sub(begun);
    for thread in &mut run.threads {
        thread.finished = thread.finished.saturating_sub(begun);
    }
    let (found, bus) = (processor.hierarchy.found.clone(), processor.hierarchy.bus.counts);
    ProgramResult { run, found, bus }
}
