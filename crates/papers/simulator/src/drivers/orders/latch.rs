//! Latches: words that are written to acquire them, and versions by which readers detect changes.
//!
//! ```text
//!   load the word ── free? ──► store it ── … work … ── store it      acquiring or releasing
//!        ▲             └ held: pause, a few times; then another            it writes its line
//!        └────────────────────── client has the CPU
//! ```

use super::engine::{Engine, LatchEvent};
use super::session::Session;
use super::space::{read, write};
use crate::op::Op;

/// Latch mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Shared with other readers.
    Shared,
    /// Exclusive.
    Exclusive,
}

/// A latch, and the version of the data under it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Latch {
    readers: u32,
    writer: bool,
    /// Number of changes.
    pub(super) version: u64,
}

/// Identifies a latch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LatchId {
    /// A group of nodes of a tree.
    Group(usize, u32),
    /// A bucket of the buffer's hash table.
    Page(usize),
    /// A page in the buffer.
    Frame(usize),
    /// The clock hand of page replacement.
    Hand,
    /// A bucket of the lock table.
    Lock(usize),
    /// The end of the log.
    Log,
    /// The end of a growing table.
    End(usize),
}

/// Polls of a held latch before another client runs: a default.
const SPINS: u32 = 32;

/// Cycles of a pause between polls: a default.
const PAUSE_CYCLES: u32 = 40;

impl Latch {
    /// Acquires it if it is free.
    pub(super) fn take(&mut self, mode: Mode) -> bool {
        match mode {
            Mode::Shared if !self.writer => self.readers += 1,
            Mode::Exclusive if !self.writer && self.readers == 0 => self.writer = true,
            _ => return false,
        }
        true
    }

    /// Releases it; an exclusive holder has changed the data.
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
    /// Acquires a latch, waiting as long as it takes.
    pub(super) async fn latch(&self, at: LatchId, mode: Mode) {
        let mut looks = 0;
        loop {
            let address = self.engine().latch(at).1;
            self.push(read(address));
            self.sync().await;
            if self.engine().take(at, mode, self.number) {
                return self.push(write(address));
            }
            looks += 1;
            self.engine().events.spins += 1;
            self.push(Op::Pause { cycles: PAUSE_CYCLES });
            if looks % SPINS == 0 {
                self.give_way().await;
            }
        }
    }

    /// Releases a latch once all earlier operations have begun.
    pub(super) async fn unlatch(&self, at: LatchId, mode: Mode) {
        self.sync().await;
        let mut engine = self.engine();
        engine.give_up(at, mode, self.number);
        let address = engine.latch(at).1;
        self.push(write(address));
    }

    /// Acquires a latch exclusively if the version is unchanged: a compare-and-swap.
    pub(super) async fn swap(&self, at: LatchId, version: u64) -> bool {
        let address = self.engine().latch(at).1;
        self.push(read(address));
        self.sync().await;
        let mut engine = self.engine();
        self.push(write(address));
        engine.latch(at).0.version == version && engine.take(at, Mode::Exclusive, self.number)
    }

    /// Waits until there is no writer, and reads the version.
    pub(super) async fn version(&self, at: LatchId) -> u64 {
        loop {
            let address = self.engine().latch(at).1;
            self.push(read(address));
            self.sync().await;
            let latch = *self.engine().latch(at).0;
            if !latch.is_written() {
                return latch.version;
            }
            self.engine().events.spins += 1;
            self.push(Op::Pause { cycles: PAUSE_CYCLES });
        }
    }

    /// Whether the version is unchanged.
    pub(super) async fn is_version(&self, at: LatchId, version: u64) -> bool {
        let address = self.engine().latch(at).1;
        self.push(read(address));
        self.sync().await;
        let latch = *self.engine().latch(at).0;
        let same = latch.version == version && !latch.is_written();
        self.engine().events.restarts += u64::from(!same);
        same
    }
}

impl Engine {
    fn take(&mut self, at: LatchId, mode: Mode, client: u32) -> bool {
        let taken = self.latch(at).0.take(mode);
        if taken {
            self.note(at, mode, client, true);
        }
        taken
    }

    fn give_up(&mut self, at: LatchId, mode: Mode, client: u32) {
        self.latch(at).0.release(mode);
        self.note(at, mode, client, false);
    }

    /// Records an event for the tests.
    fn note(&mut self, latch: LatchId, mode: Mode, client: u32, taken: bool) {
        if let Some(events) = &mut self.latch_events {
            events.push(LatchEvent { now: self.now, latch, mode, client, taken });
        }
    }
}
