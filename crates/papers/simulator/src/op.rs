//! Operations of a thread.

/// The dependence of an address, and so when it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// Nothing: it is known before.
    None,
    /// The value loaded last.
    Load,
    /// Its announcement, if there was one; else the value loaded last.
    Announcement,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Micro-operations that touch no memory.
    Compute {
        /// Number of them.
        uops: u32,
    },
    /// A read.
    Load {
        /// Address.
        address: u64,
        /// Bytes.
        bytes: u16,
        /// When its address is known.
        after: Dependence,
    },
    /// A write.
    Store {
        /// Address.
        address: u64,
        /// Bytes.
        bytes: u16,
    },
    /// Announces that an address is known and will be used.
    Announce {
        /// Address.
        address: u64,
        /// Whether by a prefetch instruction, which fetches the line.
        hint: bool,
    },
    /// A conditional branch.
    Branch {
        /// Address of the branch.
        at: u64,
        /// Whether it is taken.
        taken: bool,
        /// Whether its target lies before it.
        back: bool,
    },
    /// Instructions from here on are fetched.
    Fetch {
        /// Address.
        address: u64,
        /// Bytes.
        bytes: u16,
        /// Micro-operations of 1,024 bytes of this code, for caches that count these.
        density: u16,
    },
    /// A PAUSE instruction.
    Pause {
        /// Its cycles.
        cycles: u32,
    },
    /// Nothing for a while, without an instruction: the thread has not begun, or there is none.
    Idle {
        /// Its cycles.
        cycles: u32,
    },
    /// A system call. Only [run queues](crate::scheduler) act on it.
    System(Call),
}

/// A system call of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Requeues the thread, behind those with less vruntime.
    Yield,
    /// Sleeps: a disk, a network.
    Sleep {
        /// Duration.
        cycles: u32,
    },
    /// Waits for an item on a channel, and takes it.
    Wait {
        /// Channel number.
        channel: u32,
    },
    /// Puts an item on a channel and wakes the first waiter.
    Post {
        /// Channel number.
        channel: u32,
    },
}

const _: () = assert!(size_of::<Op>() == 16);

/// A sequence of operations.
pub trait Script {
    /// The next operation; `None` at the end. `now` is the thread's own time, in ticks: a script
    /// that reacts to other threads sees what they had done by then.
    fn next(&mut self, now: crate::ticks::Ticks) -> Option<Op>;
}

impl<I: Iterator<Item = Op>> Script for I {
    fn next(&mut self, _: crate::ticks::Ticks) -> Option<Op> {
        Iterator::next(self)
    }
}
