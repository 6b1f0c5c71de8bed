//! Traced memory: what a walk touches, written down so that it can be replayed.
//!
//! ```text
//! one value a thread      Traced(0)  Traced(1)          plain loads and stores, each recorded
//!                            │          │
//! merged                  Trace: by sequence, then thread      one of the possible interleavings
//!                            │
//! relative to regions     "cells + 32, 16 bytes, read"         the same in every process
//! ```
//!
//! A cache simulator replays a [`Trace`] (its accesses have addresses); a person and a golden test
//! read [`Trace::relative_to`] (its [`Spot`]s have names and offsets). Announcements are recorded
//! as what they are, so a replay may follow or ignore them.

mod regions;
#[cfg(test)]
mod tests;

pub use regions::{Overlap, Regions, Spot, UnnamedAccess};

use crate::memory::Memory;
use crate::place::{Intent, Place};

/// The kind of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A read of what was requested.
    Read,
    /// A read declared to be in cache always.
    HotRead,
    /// A write of what was requested.
    Write,
    /// An announcement: the place will be read or written soon.
    Fetch(Intent),
}

/// One access of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Address of the first byte, in the process that was traced.
    pub address: usize,
    /// Position in its thread's trace, from 0.
    pub sequence: u64,
    /// Length.
    pub bytes: u32,
    /// Who.
    pub thread: u16,
    /// Its kind.
    pub kind: Kind,
}

/// Plain loads and stores, each of them recorded; announcements are recorded and otherwise ignored.
///
/// ```
/// use workahead_walks::traced::{Kind, Traced};
/// use workahead_walks::Memory;
/// let cell = 7_u32;
/// let mut memory = Traced::thread(0);
/// assert_eq!(*memory.read(&cell), 7);
/// let trace = memory.finish();
/// assert_eq!((trace.accesses()[0].kind, trace.accesses()[0].bytes), (Kind::Read, 4));
/// ```
#[derive(Debug, Clone)]
pub struct Traced {
    thread: u16,
    accesses: Vec<Access>,
}

impl Traced {
    /// Nothing recorded yet, for one thread.
    #[must_use]
    pub const fn thread(thread: u16) -> Self {
        Self { thread, accesses: Vec::new() }
    }

    /// The recorded accesses.
    #[must_use]
    pub fn finish(self) -> Trace {
        Trace { accesses: self.accesses }
    }

    fn record(&mut self, address: *const u8, bytes: usize, kind: Kind) {
        // Places are below 64 KiB; longer values saturate rather than wrap.
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let sequence = self.accesses.len() as u64;
        let thread = self.thread;
        self.accesses.push(Access { address: address.addr(), sequence, bytes, thread, kind });
    }
}

impl Memory for Traced {
    fn read<'a, T>(&mut self, at: &'a T) -> &'a T {
        self.record((&raw const *at).cast(), size_of::<T>(), Kind::Read);
        at
    }

    fn read_hot<'a, T>(&mut self, at: &'a T) -> &'a T {
        self.record((&raw const *at).cast(), size_of::<T>(), Kind::HotRead);
        at
    }

    fn write<T>(&mut self, at: &mut T, value: T) {
        self.record((&raw const *at).cast(), size_of::<T>(), Kind::Write);
        *at = value;
    }

    fn fetch(&mut self, place: Place, intent: Intent) {
        self.record(place.address(), place.bytes(), Kind::Fetch(intent));
    }
}

/// The accesses of one or more threads, in an order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    accesses: Vec<Access>,
}

impl Trace {
    /// All of them.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// The traces of several threads as one that takes an access of each in turn.
    ///
    /// Real threads interleave otherwise, and differently each time; this order is the same every
    /// time, and fair.
    #[must_use]
    pub fn merged(traces: impl IntoIterator<Item = Trace>) -> Self {
        let mut accesses: Vec<Access> =
            traces.into_iter().flat_map(|trace| trace.accesses).collect();
        accesses.sort_by_key(|access| (access.sequence, access.thread));
        Self { accesses }
    }

    /// The trace without addresses: each access by its region and its offset there.
    ///
    /// # Errors
    /// For the first access that is in no region.
    pub fn relative_to(&self, regions: &Regions) -> Result<Vec<Spot>, UnnamedAccess> {
        self.accesses.iter().map(|access| regions.spot(access)).collect()
    }
}
