//! Which thread runs next: TAS and ITAS (Yamada and Kusakabe, cited in `include/itas.h`), once.
//!
//! ```text
//!                    include/itas.h      pure functions; no clock, no loop, no state
//!                   ╱             ╲
//!      this crate (C17)        the BPF object        a simulated run queue, and the real one,
//!             │                      │               decide by the same lines
//!         simulator              scheduler
//! ```
//!
//! A core shows the runnable threads of its queue, in order of virtual run time, and is given which
//! one to run, what becomes of its count, and what a master publishes:
//!
//! ```text
//!   Scan::new(own group, published group)
//!     .see(thread) …        until ENOUGH          B/F head, C/G sibling, H companion   (IP1)
//!     .choose(role, count)  ─► Choice { pick, count, whose, publish }       (TP1-4, IP2-6)
//! ```
//!
//! [`choose`] does both for a queue that can be iterated. What the paper leaves open is decided so:
//!
//! | case | decision |
//! |---|---|
//! | several siblings | the leftmost in the queue is C (or G, or H); of equals the first shown |
//! | no sibling in TP2 | as if Eq. 2 were false |
//! | the head is a sibling | Eq. 2 holds if the bonus is above 0; it counts toward the limit |
//! | G is H (the slave's group is the published one) | H is taken, and the slave's count is reset: only the master's limit and those who wait too long brake |
//! | bonus 0 | the head is always chosen: the order is that of fair queueing |
//! | the thread that ran last can go on | it is a candidate for the head and for H, as in CFS, which queues it before picking; never its own sibling, so that a program of one thread gets no bonus |
//! | nobody is runnable | the count is reset and a master withdraws: nobody follows an idle core |
//! | the published group is old | a slave uses what it reads; at most one time slice of the master old |
//! | a published group is gone | a group is a number that is compared and never followed; the scheduler never reuses a number |
//! | the slave finds neither G nor H | F, and the count of E's group is reset |
//! | somebody waits too long | nobody is preferred, in every role ([`Scan::overdue`]); not in the paper |
//!
//! The paper's slips (IP3 and IP5 name thread E where A must be meant, IP6.2 counts up the bonus,
//! IP6.3 cites Eq. 4 without G) are corrected; [`Reading::Literal`] keeps them as printed.
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

pub use choice::{Choice, Count, Pick, Publish, Whose};
pub use ffi::{beats, before, bonus_of_slice};
pub use scan::{Chosen, Core, Group, Scan, Seen, Thread, choose};
pub use tuner::{Outcome, Tuner};

/// The greatest bonus, and the greatest difference between two vruntimes that is understood.
pub const BONUS_MAX: u64 = i64::MAX as u64;

/// What can be set, at run time too (the paper's first system call).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// `agg_bonus`, in nanoseconds of virtual run time; more than [`BONUS_MAX`] is [`BONUS_MAX`].
    pub bonus_ns: u64,
    /// The bonus of H, where it isn't the same: a group can have a bonus of its own, and brings it
    /// along (the paper's "API … to statically specify the strength of aggregation").
    pub companion_bonus_ns: Option<u64>,
    /// `agg_limit`: at most a given number of aggregations in a row.
    pub limit: u32,
    /// How the paper's slips are read.
    pub reading: Reading,
}

impl Default for Tunables {
    /// What the paper evaluates: a bonus of 50 million, a limit of 100.
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
    /// How far behind the head anybody can be chosen, nanoseconds of vruntime.
    #[must_use]
    pub fn reach_ns(&self) -> u64 {
        self.companion_bonus_ns.map_or(self.bonus_ns, |other| other.max(self.bonus_ns))
    }
}

/// How the paper's slips are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reading {
    /// As they must be meant.
    #[default]
    Corrected,
    /// As they are printed.
    Literal,
}

/// What a core does for others (the paper's second system call).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// TAS: it aggregates in time only.
    #[default]
    Alone,
    /// It publishes the group that it aggregates.
    Master,
    /// It follows the published group.
    Slave,
}
