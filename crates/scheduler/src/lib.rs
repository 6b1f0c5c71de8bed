//! The policy as a scheduler for Linux: sched_ext, that is, BPF programs that the kernel asks.
//!
//! ```text
//!   Settings, Roles ──maps──► bpf/scheduler.bpf.c ──includes──► policy's itas.h
//!                                    │ a queue per CPU by vruntime; weights, affinity, balance
//!   Stats ◄────────────maps──────────┘
//!
//!   Scheduler::attach ─► (the kernel schedules by it) ─► drop, stop(), its error, its death
//!                                                        ─► the kernel's own scheduler again
//! ```
//!
//! **How long a task waits.** While a queue's head has waited less than [`Settings::patience_ns`],
//! others may be chosen before it, by at most the bonus in vruntime each. A head that has waited
//! longer goes first, so from then on the queue is served in plain order of vruntime: with *n*
//! runnable tasks of equal weight on a CPU that nobody else takes, none waits longer than
//! `patience + (n + 1) × slice`. [`Stats::wait_max_ns`] is the longest wait seen.
//!
//! Without the feature `bpf` there are settings, roles and statistics only, and nothing of libbpf is
//! built. The BPF object is under GPL-2.0-only, as the kernel wants of those who use its functions;
//! it is a program that is loaded, not linked, and the rest of the crate is under Apache-2.0.

#![forbid(unsafe_code)]

mod error;
#[cfg(feature = "bpf")]
mod live;
mod roles;
mod settings;
mod stats;
mod wire;

pub use error::Error;
#[cfg(feature = "bpf")]
pub use live::{Ended, Fault, Remote, Scheduler, Verified};
pub use roles::Roles;
pub use settings::{Bonus, Key, Settings};
pub use stats::Stats;
