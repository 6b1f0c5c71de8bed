//! Run queues: who of many threads has a CPU, when, and for how long.
//!
//! ```text
//!   CPU 0   ▓A1▓▓A2▓▓A3▓│ B1 …      queue by vruntime  B1 C1 A4 …     asleep  C2 until 310
//!   CPU 1   ▓A5▓▓B2▓▓A6▓│ …                            C3 …
//!           always the CPU whose time is least does one operation; a thread goes on until its
//!           slice ends, it yields, sleeps or ends, or somebody wakes who is due before
//! ```
//!
//! A richer sibling of [`run`](crate::run). Fair queueing is CFS of Linux 2.6.24, which Yamada and
//! Kusakabe (2010) changed; what they changed is the crate `policy`, and the other schedulers are
//! what they name beside theirs. Threads stay on their CPU: nobody balances load.
//!
//! Simplified: slices end exactly and not at a tick, deciding costs nothing beside the switch, and
//! threads of the kernel have no work.

mod choice;
mod fair;
mod figures;
mod queue;
mod running;
#[cfg(test)]
mod tests;

pub use fair::Fair;
pub use figures::{Figures, Turn, Wait};
pub use workahead_policy::{Group, Role, Tunables};

use crate::core::Processor;
use crate::run::{Ran, Thread};

/// A thread, and what a scheduler knows of it.
pub struct Task<'s> {
    /// What it does; its address space costs translations.
    pub thread: Thread<'s>,
    /// Its CPU.
    pub cpu: usize,
    /// Its share is its part of the weights of its CPU: 1024 at nice 0.
    pub weight: u32,
    /// Its siblings are those of the same group: an address space, or a guest's threads.
    pub group: Option<Group>,
    /// Bytes that it touches, for those who look at that.
    pub working_set_bytes: u64,
}

/// The weight of nice 0.
pub const WEIGHT: u32 = 1024;

/// What a CPU does for others, and which of the published groups it writes or follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seat {
    /// What it does.
    pub role: Role,
    /// Which published group: several masters have one each (S3.10).
    pub channel: usize,
}

/// Who is chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum Choosing {
    /// The least vruntime: CFS.
    Fair,
    /// Of those who had no more than their share, the earliest virtual deadline: EEVDF (Stoica and
    /// Abdel-Wahab 1995), without what Linux adds for sleepers.
    Deadline,
    /// TAS where all CPUs are alone, ITAS else.
    Aggregating {
        /// Bonus and limit; slips of the paper are always corrected here.
        tunables: Tunables,
        /// By CPU.
        seats: Vec<Seat>,
    },
    /// One group at a time on all CPUs, for a slot each (Feitelson and Rudolph 1992); a CPU
    /// without a thread of it does what is due else. That all change at once costs nothing here.
    Gang {
        /// How long a slot is.
        slot_ns: u64,
    },
    /// The first, up to so far behind the head in vruntime, whose working set fits the last cache
    /// beside those of the threads that run (Fedorova et al. 2005); the head where none does. What
    /// they sample is given.
    Fitting {
        /// How far.
        reach_ns: u64,
    },
}

/// How threads share CPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Slices and what a wake-up is worth.
    pub fair: Fair,
    /// Who is chosen.
    pub choosing: Choosing,
    /// Cycles that a change takes, without its misses.
    pub switch: f64,
    /// Nobody is preferred while somebody of the queue waits for longer than this: whoever waited
    /// longest runs.
    pub delay_max_ns: Option<u64>,
}

/// Runs tasks until those that count have ended: those of a CPU as if they had come in the order
/// given.
///
/// # Panics
/// If a task is on a CPU that the machine doesn't have, has no weight, or there are fewer seats
/// than CPUs.
pub fn schedule(processor: &mut Processor, tasks: Vec<Task<'_>>, by: &Schedule) -> (Ran, Figures) {
    running::Running::new(processor, tasks, by).finish()
}
