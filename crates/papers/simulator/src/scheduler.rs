//! Run queues: which thread has a CPU, when, and for how long.
//!
//! ```text
//!   CPU 0   ▓A1▓▓A2▓▓A3▓│ B1 …      queue by vruntime  B1 C1 A4 …     asleep  C2 until 310
//!   CPU 1   ▓A5▓▓B2▓▓A6▓│ …                            C3 …
//!           always the CPU whose time is least does one operation; a thread runs until its
//!           slice ends, it yields, sleeps or ends, or a thread with less vruntime wakes
//! ```
//!
//! An extension of [`run`](crate::run). Fair queueing is CFS of Linux 2.6.24, which Yamada and
//! Kusakabe (2010) changed; their change is the crate `policy`, and the other schedulers are those
//! they compare with. Threads stay on their CPU: load is not balanced.
//!
//! Simplified: slices end exactly and not at a tick, a decision costs nothing beside the switch,
//! and kernel threads have no work.

mod choice;
mod dispatcher;
mod fair;
mod figures;
mod queue;
#[cfg(test)]
mod tests;

pub use fair::Fair;
pub use figures::{Dispatch, Figures, Wait};
pub use workahead_policy::{Group, Role, Tunables};

use std::sync::atomic::AtomicBool;

use crate::core::Processor;
use crate::run::{RunResult, Thread};

/// A thread with its scheduling parameters.
pub struct Task<'s> {
    /// Its script and address space.
    pub thread: Thread<'s>,
    /// Its CPU.
    pub cpu: usize,
    /// Its share of the CPU is its part of the CPU's weights: 1024 at nice 0.
    pub weight: u32,
    /// Its aggregation group: an address space, or a guest's threads.
    pub group: Option<Group>,
    /// Its working set, for disciplines that use it.
    pub working_set_bytes: u64,
}

/// The weight of nice 0.
pub const WEIGHT: u32 = 1024;

/// The role of a CPU, and the channel of published groups that it writes or follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RoleAssignment {
    /// Its role.
    pub role: Role,
    /// Its channel: each of several masters has one (S3.10).
    pub channel: usize,
}

/// How the next thread is chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum Discipline {
    /// The least vruntime: CFS.
    Fair,
    /// The earliest virtual deadline of the threads that had no more than their share: EEVDF
    /// (Stoica and Abdel-Wahab 1995), without Linux's placement of sleepers.
    Deadline,
    /// TAS where every CPU's role is alone, ITAS otherwise.
    Aggregating {
        /// Bonus and limit; the paper's slips are always corrected here.
        tunables: Tunables,
        /// Role and channel by CPU.
        roles: Vec<RoleAssignment>,
    },
    /// One group at a time on all CPUs, for a slot each (Feitelson and Rudolph 1992); a CPU without
    /// a thread of the group runs its least vruntime. Switching all CPUs at once costs nothing
    /// here.
    Gang {
        /// Length of a slot.
        slot_ns: u64,
    },
    /// The first thread within a distance of the head in vruntime whose working set fits the last
    /// cache together with those of the running threads (Fedorova et al. 2005); the head if none
    /// does. Working sets are given, not sampled.
    Fitting {
        /// The distance.
        reach_ns: u64,
    },
}

/// How threads share CPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Scheduler {
    /// Slices and wake-up preemption.
    pub fair: Fair,
    /// How the next thread is chosen.
    pub discipline: Discipline,
    /// Cycles of a context switch, without its misses.
    pub switch: f64,
    /// Once a thread has waited in the queue for longer than this, the one that waited longest runs
    /// next.
    pub delay_max_ns: Option<u64>,
}

/// Runs tasks until those that the run waits for have ended, or `stop` is set; tasks of a CPU are
/// queued in the given order.
///
/// # Panics
/// If a task is on a CPU that the machine doesn't have, has no weight, or there are fewer roles
/// than CPUs.
pub(crate) fn run_tasks(
    processor: &mut Processor,
    tasks: Vec<Task<'_>>,
    by: &Scheduler,
    stop: &AtomicBool,
) -> (RunResult, Figures) {
    dispatcher::Dispatcher::new(processor, tasks, by, stop).finish()
}
