//! What a thread does, one thing at a time.

/// Where an address comes from, and so when it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// From nowhere: it was known before.
    Nothing,
    /// From what was loaded last.
    Load,
    /// From where it was announced, if it was; else from what was loaded last.
    Announcement,
}

/// One thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Micro-operations that touch no memory.
    Compute {
        /// How many.
        uops: u32,
    },
    /// A read.
    Load {
        /// Where.
        address: u64,
        /// How much.
        bytes: u16,
        /// When its address is known.
        after: After,
    },
    /// A write.
    Store {
        /// Where.
        address: u64,
        /// How much.
        bytes: u16,
    },
    /// Says that an address is known now and will be used.
    Announce {
        /// Where.
        address: u64,
        /// Whether by a prefetch instruction, which brings the line.
        hint: bool,
    },
    /// A conditional branch.
    Branch {
        /// Where the branch is.
        at: u64,
        /// Which way it goes.
        taken: bool,
        /// Whether its target lies before it.
        back: bool,
    },
    /// Instructions from here on are fetched.
    Fetch {
        /// Where.
        address: u64,
        /// How many bytes.
        bytes: u16,
    },
    /// Nothing, for some cycles: PAUSE.
    Pause {
        /// How many.
        cycles: u32,
    },
    /// Asks who shares the CPUs out. Only [run queues](crate::schedule) heed it.
    System(Call),
}

/// What a thread asks of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// To be queued again, behind whoever is due before.
    Yield,
    /// To sleep: a disk, a network.
    Sleep {
        /// How long.
        cycles: u32,
    },
    /// To sleep until there is something on a channel, and take it.
    Wait {
        /// Which.
        channel: u32,
    },
    /// To put something on a channel, which wakes the first who waits there.
    Post {
        /// Which.
        channel: u32,
    },
}

const _: () = assert!(size_of::<Op>() == 16);

/// Does one thing after the other.
pub trait Script {
    /// The next thing; `None` when it is finished. `now` is the thread's own time, in ticks: who
    /// reacts to others sees what they had done by then.
    fn next(&mut self, now: crate::ticks::Ticks) -> Option<Op>;
}

impl<I: Iterator<Item = Op>> Script for I {
    fn next(&mut self, _: crate::ticks::Ticks) -> Option<Op> {
        Iterator::next(self)
    }
}
