//! The policy as a scheduler for Linux, in BPF programs of sched_ext.
//!
//! ```text
//!   Settings, Roles ──maps──► bpf/scheduler.bpf.c ──includes──► policy's itas.h
//!                                    │ a queue per CPU by vruntime; weights, affinity, balance
//!   Stats ◄────────────maps──────────┘
//!
//!   Scheduler::attach ─► (the kernel schedules by it) ─► drop, stop(), its error, its death
//!                                                        ─► the kernel's own scheduler again
//!   External::start ─► it schedules by another program of sched_ext, until that is stopped
//!   Observer::attach ─► the same counts of switches, whichever scheduler runs
//!   RunQueues (/proc) ─► GroupedLoad::advice: whether aggregation can help, before any of it
//! ```
//!
//! **How long a task waits.** Aggregation passes over a thread that wakes up for at most
//! [`Settings::max_delay_ns`], and for no longer than half a slice or four times as long as it then
//! runs: that is its slack (`slack_ns` of the policy), and a turn that would take more is not given
//! (`Scan::see_within`, `see_current_within`). A turn ends at a tick, and so may last one longer. A
//! bonus is at most the bound.
//!
//! Fair queueing alone lets a thread wait until all others have caught up with it. A task that
//! has waited longer than [`Settings::patience_ns`] goes first, the longest wait before others:
//! with *n* runnable tasks on a CPU, of which at most [`Settings::scan_max`] are examined, none
//! waits longer than `patience + (n + 1) × slice` (`1.25 × patience` with more tasks than are
//! examined), while no higher scheduling class takes the CPU and its control group has a quota
//! left. [`Stats::wait_max_ns`] is the longest wait seen.
//!
//! Without the feature `bpf` there are settings, roles and statistics only, and no part of libbpf
//! is built. The BPF object is under GPL-2.0-only, as the kernel requires for its functions; it is
//! a loaded program, not linked, and the rest of the crate is under Apache-2.0.

#![forbid(unsafe_code)]

mod advice;
mod error;
#[cfg(feature = "bpf")]
mod external;
#[cfg(feature = "bpf")]
mod features;
#[cfg(feature = "bpf")]
mod kernel;
#[cfg(feature = "bpf")]
mod live;
mod load;
mod metrics;
#[cfg(target_os = "linux")]
mod notify;
mod roles;
mod run_queues;
#[cfg(feature = "bpf")]
mod service;
#[cfg(feature = "bpf")]
mod session;
mod settings;
mod stats;
#[cfg(feature = "bpf")]
mod tuning;
mod wire;
mod words;

pub use advice::{Advice, CacheLevel, GroupLoad, GroupedLoad, Obstacle};
pub use error::Error;
#[cfg(feature = "bpf")]
pub use external::{External, program};
#[cfg(feature = "bpf")]
pub use kernel::attachable;
#[cfg(feature = "bpf")]
pub use live::{ExitInfo, Fault, Observer, Remote, Scheduler, VerifiedProgram};
pub use load::{Load, LoadResult, Window, Work};
pub use metrics::Metrics;
#[cfg(target_os = "linux")]
pub use notify::notify;
pub use roles::Roles;
pub use run_queues::{GroupUse, KEYS, RunQueues, UsedPages};
#[cfg(feature = "bpf")]
pub use service::Service;
#[cfg(feature = "bpf")]
pub use session::{Event, run};
pub use settings::{Bonus, Key, Settings};
pub use stats::Stats;
#[cfg(feature = "bpf")]
pub use tuning::{Objective, tune};
pub use words::{WORDS, changed, nanoseconds};
