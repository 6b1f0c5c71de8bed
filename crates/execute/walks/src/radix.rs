//! Both sides cut into partitions, then joined one partition after the other: the radix join.
//!
//! ```text
//! build ─► scattered │ 0 │ 1 │ 2 │ …      for each partition, by any thread:
//! probe ─► scattered │ 0 │ 1 │ 2 │ …          build rows ─► window ◄─ probe rows ─► hits
//!          in memory, streamed                             in L2
//! ```
//!
//! A lookup in a table beyond the caches costs a line of memory, most of which is not wanted.
//! Moving a row to its partition costs what the row has, read twice and written once, and makes
//! every lookup one in L2. So partitions can win where rows are narrow and the table is large, and
//! lose where rows are wide (all of them move), where few probe rows come, and where the order of
//! the probe side, or a pipeline, is to be kept. (Shatdal, Kant, Naughton, VLDB 1994; Manegold,
//! Boncz, Kersten, *Optimizing Main-Memory Join on Modern Hardware*, TKDE 2002; Balkesen, Teubner,
//! Alonso, Özsu, ICDE 2013; when not to: Bandle, Giceva, Neumann, *To Partition, or Not to
//! Partition, That is the Join Question in a Real System*, SIGMOD 2021.) `benches/radix.rs` has
//! both beside each other.
//!
//! * **A partition is a part of the bucket table** that would have been made
//!   ([`Parts`](crate::bucket::Parts)): cut by the high bits of the hash, which also choose
//!   the home within; so the partitions' tables are as full as the whole one would be, in any
//!   number of partitions, and no bit decides twice.
//! * **One pass or two**, by how many partitions' [lanes](scatter) stay in L2, and their pages in
//!   the TLB. In two passes, the second is of one coarse partition, just before it is joined.
//! * **No cliff where rows crowd in a partition**: the window holds each key once, however often it
//!   repeats; partitions are dealt out by size, the largest first; and one with more probe rows
//!   than a thread's fair piece is dealt in pieces, each with a window of its own.

mod join;
pub mod scatter;
mod stream;
#[cfg(test)]
mod tests;

pub use join::{Join, RadixError};
pub use scatter::{Histogram, Scatter, Scattered, Value, scattered};

use crate::bucket::{Load, Parts, TableError};

/// Most partitions: of two passes.
const PARTITIONS_MAX: usize = 1 << 16;

/// What a machine has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Second-level cache of a thread.
    pub l2_bytes: usize,
    /// Pages that the TLB translates at once, if it is known, and the bytes of one.
    pub tlb_entries: Option<usize>,
    /// Bytes of a page.
    pub page_bytes: usize,
}

/// How both sides are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    parts: Parts,
    /// log2 of the parts of a coarse partition; zero where one pass does.
    fine_bits: u32,
}

impl Cut {
    /// For a build side of a given number of different keys, and at most a given number of rows on
    /// either side.
    ///
    /// # Errors
    /// When there are more keys than partitions for them.
    pub fn of(entries: usize, rows: usize, room: Room) -> Result<Self, TableError> {
        let parts = Parts::at_most(PARTITIONS_MAX, entries, Load::HALF, room.l2_bytes / 2)?;
        let bits = parts.count().next_power_of_two().ilog2();
        let fine_bits = if parts.count() <= room.partitions(rows) { 0 } else { bits / 2 };
        Ok(Self { parts, fine_bits })
    }

    /// The same in a given number of passes, one or two.
    #[must_use]
    pub fn with_passes(self, passes: usize) -> Self {
        let bits = self.parts.count().next_power_of_two().ilog2();
        Self { fine_bits: if passes < 2 { 0 } else { bits / 2 }, ..self }
    }

    /// How often a row moves.
    #[must_use]
    pub fn passes(self) -> usize {
        if self.fine_bits == 0 { 1 } else { 2 }
    }

    /// Partitions that are joined.
    #[must_use]
    pub fn partitions(self) -> usize {
        self.parts.count()
    }

    /// The parts of a table that partitions are.
    #[must_use]
    pub fn parts(self) -> Parts {
        self.parts
    }

    /// Partitions of the first pass.
    fn coarse(self) -> usize {
        self.partitions().div_ceil(1 << self.fine_bits)
    }

    #[inline(always)]
    fn coarse_of(self, key: u64) -> usize {
        self.parts.part(key) >> self.fine_bits
    }

    #[inline(always)]
    fn fine_of(self, key: u64) -> usize {
        self.parts.part(key) & ((1 << self.fine_bits) - 1)
    }
}

impl Room {
    /// Partitions that a number of rows can be written to at a time.
    fn partitions(self, rows: usize) -> usize {
        let cached = self.l2_bytes / Scatter::<u32>::LANE_BYTES;
        let pages = Scatter::<u32>::bytes_for(rows).div_ceil(self.page_bytes.max(1));
        match self.tlb_entries {
            // Keys and values are two streams.
            Some(entries) if pages > entries => cached.min(entries / 2),
            _ => cached,
        }
    }
}
