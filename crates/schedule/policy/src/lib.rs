//! Which thread runs next: TAS and ITAS (Yamada and Kusakabe, cited in `include/itas.h`), once.
//!
//! ```text
//!                    include/itas.h      pure functions; no clock, no loop, no state
//!                   ╱             ╲
//!      this crate (C17)        the BPF object        a simulated run queue, and the real one,
//!             │                      │               decide by the same code
//!         simulator              scheduler
//! ```
//!
//! A core shows the runnable threads of its queue, in order of virtual run time. The decision is
//! the thread to run, the change of the core's count, and the group that a master publishes:
//!
//! ```text
//!   Scan::new(own group, published group)
//!     .see(thread) …        until ENOUGH          B/F head, C/G member, H companion   (IP1)
//!     .choose(role, count)  ─► Choice { pick, count, whose, publish }       (TP1-4, IP2-6)
//! ```
//!
//! [`choose`] does both for an iterable queue. Cases that the paper leaves open:
//!
//! | case | decision |
//! |---|---|
//! | several members of the group | the leftmost in the queue is C (or G, or H); of equals the first shown |
//! | no member in TP2 | as if Eq. 2 were false |
//! | the head is a member | Eq. 2 holds if the bonus is above 0; it counts toward the limit |
//! | G is H (the slave's group is the published one) | H is taken, and the slave's count is reset: only the master's limit and overdue threads end it |
//! | bonus 0 | the head is always chosen: the order is that of fair queueing |
//! | the thread that ran last can continue | it is a candidate for the head and for H, as in CFS, which queues it before picking; never for C, so that a program of one thread gets no bonus |
//! | no thread is runnable | the count is reset and a master withdraws: no slave follows an idle core |
//! | the published group is stale | a slave uses it; it is at most one time slice of the master old |
//! | a published group is gone | a group is a number that is compared and never followed; the scheduler never reuses a number |
//! | the slave finds neither G nor H | F, and the count of E's group is reset |
//! | a thread waits too long | no candidate is preferred, in every role ([`Scan::overdue`]); not in the paper |
//! | a thread is passed over for longer than its slack | a thread that would do so is not a candidate ([`Scan::see_within`]); not in the paper |
//!
//! The paper's slips (IP3 and IP5 name thread E where A must be meant, IP6.2 counts up the bonus,
//! IP6.3 cites Eq. 4 without G) are corrected; [`Reading::Literal`] keeps them as printed.
//!
//! **Bounded waiting.** A thread that is chosen before those of a lower vruntime uses their slack:
//!
//! ```text
//!   queue   B        T               C        C of the group that ran last, to run for `turn`
//!           slack    slack ─ least ─►│        a candidate while turn ≤ the least slack before it,
//!           6 ms     2 ms            2 ms     and it runs no longer than that
//! ```
//!
//! A thread that wakes up has slack: what sleeping has earned it in the queue, or more if it runs
//! for long, by its weight ([`slack_ns`]). Only being passed over uses it up: what a thread waits
//! by its turn in the fair order is not for others' sake. A thread ahead of its share waits until
//! the others have caught up: a bonus of no more than the bound limits that.
//!
//! With the corrected reading every choice but an aggregation resets the count of the group that
//! ran, so one number per core is enough where the paper keeps one per address space and core.

mod choice;
mod ffi;
mod scan;
mod tuner;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

pub use choice::{Choice, Count, GroupRole, Pick, Publish};
pub use ffi::{beats, before, bonus_of_slice, slack_ns};
pub use scan::{CandidateRoles, Core, Group, Scan, ScanResult, Thread, Wait, choose};
pub use tuner::{Outcome, Tuner};

/// The greatest bonus, and the greatest meaningful difference between two vruntimes.
pub const BONUS_MAX: u64 = i64::MAX as u64;

/// The slack of a thread that may be passed over as the bonus has it, nanoseconds.
pub(crate) const UNHURRIED: u64 = BONUS_MAX;

/// Parameters, also changeable at run time (the paper's first system call).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// `agg_bonus`, in nanoseconds of virtual run time; more than [`BONUS_MAX`] is [`BONUS_MAX`].
    pub bonus_ns: u64,
    /// The bonus of H, if different: a group can have a bonus of its own (the paper's "API … to
    /// statically specify the strength of aggregation").
    pub companion_bonus_ns: Option<u64>,
    /// `agg_limit`: most aggregations in a row.
    pub limit: u32,
    /// Reading of the paper's slips.
    pub reading: Reading,
}

impl Default for Tunables {
    /// The paper's values: a bonus of 50 million, a limit of 100.
    fn default() -> Self {
        Self {
            bonus_ns: 50_000_000,
            companion_bonus_ns: None,
            limit: 100,
            reading: Reading::Corrected,
        }
    }
}

impl Tunables {
    /// How far behind the head a thread can be chosen, nanoseconds of vruntime.
    #[must_use]
    pub fn reach_ns(&self) -> u64 {
        self.companion_bonus_ns.map_or(self.bonus_ns, |other| other.max(self.bonus_ns))
    }
}

/// Reading of the paper's slips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reading {
    /// Corrected.
    #[default]
    Corrected,
    /// As printed.
    Literal,
}

/// The role of a core (the paper's second system call).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// TAS: aggregates in time only.
    #[default]
    Alone,
    /// Publishes the group that it aggregates.
    Master,
    /// Follows the published group.
    Slave,
}
