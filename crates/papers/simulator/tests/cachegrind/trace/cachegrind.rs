//! valgrind's cachegrind caches: the model compared with another program's.
//!
//! ```text
//!   instruction ──► I1 ─┐ missed      LRU, allocated by reads and writes alike, one thread;
//!   data ─────────► D1 ─┴──► LL       an access is one miss, of two lines too
//! ```
//!
//! As in `cg_sim.c` of valgrind 3.19: an access that misses goes to the last level with all of its
//! lines; one that reads and writes is a read (its write can't miss); data longer than the shortest
//! line are cut to it, so that no access has three lines (`cg_main.c`, `addEvent_Dr`).

use super::{Kind, Record};
use workahead_simulator::cache::{Cache, Replacement, State};
use workahead_simulator::geometry::Geometry;

/// References and misses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Misses {
    /// References.
    pub(crate) references: u64,
    /// Misses of the first level.
    pub(crate) first: u64,
    /// Misses of the last level.
    pub(crate) last: u64,
}

/// References by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct References {
    /// Instructions: Ir, I1mr, ILmr.
    pub(crate) instructions: Misses,
    /// Data read, or read and written: Dr, D1mr, DLmr.
    pub(crate) reads: Misses,
    /// Data written: Dw, D1mw, DLmw.
    pub(crate) writes: Misses,
}

/// Two levels of caches with counts.
#[derive(Debug, Clone)]
pub(crate) struct Cachegrind {
    instructions: Cache,
    data: Cache,
    last: Cache,
    line_min: u16,
    /// Counts so far.
    pub(crate) counts: References,
}

impl Cachegrind {
    /// Empty caches: of instructions, of data, and the last level.
    #[must_use]
    pub(crate) fn new(instructions: Geometry, data: Geometry, last: Geometry) -> Self {
        let lines = [instructions, data, last].map(Geometry::line);
        let cache = |geometry| Cache::new(geometry, Replacement::Lru);
        Self {
            instructions: cache(instructions),
            data: cache(data),
            last: cache(last),
            // Lines have at most 4096 bytes.
            line_min: lines.into_iter().min().unwrap_or(64) as u16,
            counts: References::default(),
        }
    }

    /// Counts a record; announcements and computation don't access the caches.
    pub(crate) fn touch(&mut self, record: &Record) {
        let (nearest, counts) = match record.kind {
            Kind::Fetch => (&mut self.instructions, &mut self.counts.instructions),
            Kind::Load | Kind::Modify => (&mut self.data, &mut self.counts.reads),
            Kind::Store => (&mut self.data, &mut self.counts.writes),
            Kind::Compute | Kind::Announce | Kind::Hint => return,
        };
        let last = record.address + u64::from(record.bytes.clamp(1, self.line_min)) - 1;
        counts.references += 1;
        if missed(nearest, record.address, last) {
            counts.first += 1;
            counts.last += u64::from(missed(&mut self.last, record.address, last));
        }
    }
}

/// Whether any line of an address range was missing. All are present afterwards.
#[inline(always)]
fn missed(cache: &mut Cache, first: u64, last: u64) -> bool {
    let mut missed = false;
    let (mut line, last) = (cache.line_of(first), cache.line_of(last));
    // Mostly one line: the end is tested after it.
    loop {
        if cache.touch(line) == State::Invalid {
            cache.insert(line, State::Shared, ());
            missed = true;
        }
        if line >= last {
            return missed;
        }
        line += 1;
    }
}
