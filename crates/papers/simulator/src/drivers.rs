//! Workloads as scripts: what an engine's threads fetch, read, write and decide, step by step.
//!
//! ```text
//!   plan: one step ──► code: the functions that it calls ──► operations ──► thread ──► machine
//!           └─ pages, records, locks that it touches ──────────┘
//! ```
//!
//! A driver is an engine in miniature that really computes its answer; what its code would be is a
//! [synthetic footprint](code), which every result names. Its threads share a machine as
//! [`run`](crate::run) says.

pub mod code;
pub mod micro;
pub mod orders;
mod space;
pub mod sysbench;

use crate::bus::BusCounts;
use crate::core::Processor;
use crate::hierarchy::Found;
use crate::run::{Ran, Slices, Thread, run};
use crate::schedule::{Figures, Schedule, Task, schedule};
use crate::ticks::Ticks;

/// Threads, and where they run.
pub struct Program<'s> {
    /// What runs.
    pub threads: Vec<Thread<'s>>,
    /// The logical CPU of each.
    pub placement: Vec<usize>,
    /// How those of one CPU take turns.
    pub slices: Slices,
}

/// What came of a program.
#[derive(Debug, Clone)]
pub struct Driven {
    /// By CPU and by thread.
    pub ran: Ran,
    /// What each CPU's accesses found.
    pub found: Vec<Found>,
    /// What the bus did.
    pub bus: BusCounts,
}

/// Runs a program to its end, on a machine as an earlier program left it (S0.10: a first run warms
/// up).
///
/// # Panics
/// If a thread is placed on a CPU that the machine doesn't have.
pub fn drive(processor: &mut Processor, program: Program<'_>) -> Driven {
    let Program { threads, placement, slices } = program;
    let begun = together(processor);
    let ran = run(processor, threads, &placement, slices);
    done(processor, ran, begun)
}

/// The same for tasks whose run queues are modelled.
///
/// # Panics
/// Where [`schedule`] does.
pub fn drive_by(
    processor: &mut Processor,
    tasks: Vec<Task<'_>>,
    by: &Schedule,
) -> (Driven, Figures) {
    let begun = together(processor);
    let (ran, figures) = schedule(processor, tasks, by);
    (done(processor, ran, begun), figures)
}

/// All begin together, whoever had more to do before.
fn together(processor: &mut Processor) -> Ticks {
    processor.hierarchy.found.fill(Found::default());
    processor.hierarchy.bus.counts = BusCounts::default();
    let cpus = processor.preset().cpus() as usize;
    let begun = (0..cpus).map(|cpu| processor.now(cpu)).max().unwrap_or_default();
    (0..cpus).for_each(|cpu| processor.idle_until(cpu, begun));
    begun
}

fn done(processor: &Processor, mut ran: Ran, begun: Ticks) -> Driven {
    ran.ticks = ran.ticks.saturating_sub(begun);
    for (_, finished) in &mut ran.threads {
        *finished = finished.saturating_sub(begun);
    }
    let (found, bus) = (processor.hierarchy.found.clone(), processor.hierarchy.bus.counts);
    Driven { ran, found, bus }
}
