//! Latches: words that are really taken, and versions that tell a reader that it read too early.
//!
//! ```text
//!   load the word ── free? ──► store it ── … work … ── store it      whoever takes or gives up
//!        ▲             └ held: pause, a few times; then another            a latch writes its line
//!        └────────────────────── client has the CPU
//! ```

use super::session::Session;
use super::space::{read, write};
use super::world::World;
use crate::op::Op;

/// How a latch is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// With other readers.
    Shared,
    /// Alone.
    Exclusive,
}

/// A latch, and the version of what it protects.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Latch {
    readers: u32,
    writer: bool,
    /// Changes so far.
    pub(super) version: u64,
}

/// What is latched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum At {
    /// A group of nodes of a tree.
    Group(usize, u32),
    /// A bucket of the buffer's hash table.
    Page(usize),
    /// A page in the buffer.
    Frame(usize),
    /// The hand that looks for a page to be replaced.
    Hand,
    /// A bucket of the lock table.
    Lock(usize),
    /// The end of the log.
    Log,
    /// The end of a table that grows.
    End(usize),
}

/// Looks at a held latch before another client has the CPU: a default.
const SPINS: u32 = 32;

/// Cycles of a pause in between: a default.
const PAUSE_CYCLES: u32 = 40;

impl Latch {
    /// Takes it, if it is free.
    pub(super) fn take(&mut self, mode: Mode) -> bool {
        match mode {
            Mode::Shared if !self.writer => self.readers += 1,
            Mode::Exclusive if !self.writer && self.readers == 0 => self.writer = true,
            _ => return false,
        }
        true
    }

    /// Gives it up; who had it alone changed what it protects.
    pub(super) fn release(&mut self, mode: Mode) {
        match mode {
            Mode::Shared => self.readers -= 1,
            Mode::Exclusive => {
                debug_assert!(self.writer, "only who has it gives it up");
                self.writer = false;
                self.version += 1;
            }
        }
    }

    pub(super) fn is_written(&self) -> bool {
        self.writer
    }

    pub(super) fn is_free(&self) -> bool {
        !self.writer && self.readers == 0
    }
}

impl Session {
    /// Takes a latch, however long that takes.
    pub(super) async fn latch(&self, at: At, mode: Mode) {
        let mut looks = 0;
        loop {
            let address = self.world().latch(at).1;
            self.push(read(address));
            self.sync().await;
            if self.world().take(at, mode, self.number) {
                return self.push(write(address));
            }
            looks += 1;
            self.world().events.spins += 1;
            self.push(Op::Pause { cycles: PAUSE_CYCLES });
            if looks % SPINS == 0 {
                self.give_way().await;
            }
        }
    }

    /// Gives a latch up once all before is done.
    pub(super) async fn unlatch(&self, at: At, mode: Mode) {
        self.sync().await;
        let mut world = self.world();
        world.give_up(at, mode, self.number);
        let address = world.latch(at).1;
        self.push(write(address));
    }

    /// Takes what has a version alone, if it still has that one: a compare-and-swap.
    pub(super) async fn swap(&self, at: At, version: u64) -> bool {
        let address = self.world().latch(at).1;
        self.push(read(address));
        self.sync().await;
        let mut world = self.world();
        self.push(write(address));
        world.latch(at).0.version == version && world.take(at, Mode::Exclusive, self.number)
    }

    /// Waits until nobody writes, and reads the version.
    pub(super) async fn version(&self, at: At) -> u64 {
        loop {
            let address = self.world().latch(at).1;
            self.push(read(address));
            self.sync().await;
            let latch = *self.world().latch(at).0;
            if !latch.is_written() {
                return latch.version;
            }
            self.world().events.spins += 1;
            self.push(Op::Pause { cycles: PAUSE_CYCLES });
        }
    }

    /// Whether nobody wrote since a version was read.
    pub(super) async fn is_version(&self, at: At, version: u64) -> bool {
        let address = self.world().latch(at).1;
        self.push(read(address));
        self.sync().await;
        let latch = *self.world().latch(at).0;
        let same = latch.version == version && !latch.is_written();
        self.world().events.restarts += u64::from(!same);
        same
    }
}

impl World {
    fn take(&mut self, at: At, mode: Mode, client: u32) -> bool {
        let taken = self.latch(at).0.take(mode);
        if taken {
            self.note(at, (mode, client), true);
        }
        taken
    }

    fn give_up(&mut self, at: At, mode: Mode, client: u32) {
        self.latch(at).0.release(mode);
        self.note(at, (mode, client), false);
    }

    /// Remembers who held what, for the proof that nobody else did.
    fn note(&mut self, at: At, (mode, client): (Mode, u32), taken: bool) {
        if let Some(held) = &mut self.held {
            held.push((self.now, at, mode, client, taken));
        }
    }
}
