//! A perfect hash table that several threads fill together.
//!
//! ```text
//! unique keys     thread 0 │ thread 1 │ …   each any rows: a store for each, unconditionally
//!                 then all slots that are taken are counted: as many as rows, or a key repeats
//! groups          thread 0 │ thread 1 │ …   each all rows, and puts those whose slots are its own
//! ```
//!
//! * **Different keys have different slots**, so that rows of unique keys may come in any order
//!   and from any thread, by plain stores. Two threads with one key at the same time may both find
//!   its slot free, and one row is lost: then there are fewer slots taken than rows put, which is
//!   how it comes out. A counted slot costs less than an exchange that locks its line.
//! * **Repeated keys must be counted in the order of their rows**. Every thread reads all keys,
//!   which is a stream, and handles those of its own blocks of slots, drawn by a hash so that
//!   clustered keys are spread over all threads: the result is that of one thread, bit by bit.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::atomics::atomics;
use super::{COUNT_ONE, Table, slot};
use crate::memory::{Memory, Prefetching, ToL1};
use crate::place::{Intent, Place};
use crate::walk::{Row, Sink};

/// Keys whose slots are announced ahead: beyond the latency of a miss at the speed of these loops.
const AHEAD: usize = 32;

/// log2 of the slots of a block, which is one thread's: far more than a line or a page's worth of
/// neighbours, far fewer than a table beyond the second-level cache has.
const BLOCK_SHIFT: u32 = 12;

/// A table lent to threads that fill it.
#[derive(Clone, Copy)]
pub struct SharedTable<'t> {
    slots: &'t [AtomicU64],
    lowest: u64,
    hole: u64,
    entries: &'t AtomicUsize,
}

/// One of several equal parts of a table's slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    part: u32,
    of: u32,
}

impl Share {
    /// All slots.
    pub const WHOLE: Self = Self { part: 0, of: 1 };

    /// Part number `part` of `of`.
    ///
    /// # Panics
    /// If `part` is not below `of`.
    #[must_use]
    pub fn of(part: usize, of: usize) -> Self {
        assert!(part < of, "part {part} of {of}");
        let [part, of] = [part, of].map(|n| u32::try_from(n).expect("threads fit 32 bits"));
        Self { part, of }
    }

    #[inline(always)]
    fn has(self, at: usize) -> bool {
        let drawn = ((at >> BLOCK_SHIFT) as u32).wrapping_mul(0x9E37_79B9);
        (u64::from(drawn) * u64::from(self.of)) >> u32::BITS == u64::from(self.part)
    }
}

/// Adds groups of rows to a share of a table: a thread's own.
pub struct Grouping<'t> {
    table: SharedTable<'t>,
    share: Share,
    /// The rows of the share, of those that are being added.
    mine: Vec<u32>,
}

impl Table {
    /// Lends the table to threads that fill it together.
    pub fn shared(&mut self) -> SharedTable<'_> {
        let (slots, entries) = (atomics(&mut self.slots), &self.entries);
        SharedTable { slots, lowest: self.lowest, hole: self.hole, entries }
    }
}

impl<'t> SharedTable<'t> {
    /// Puts keys and their values; any thread any of them. False where it could not: a key is there
    /// already, or a value is the one that stands for none. The table is then good for nothing, or
    /// for being [cleared](Table::clear). True does not say that no other thread had one of the
    /// keys: [`Table::is_unique`] does.
    ///
    /// # Panics
    /// When a key is out of range, or keys and values differ in number.
    #[must_use]
    pub fn put(&self, keys: &[u64], values: impl ExactSizeIterator<Item = u64>) -> bool {
        assert_eq!(keys.len(), values.len(), "every key needs a value");
        for (at_key, value) in values.enumerate() {
            if let Some(ahead) = keys.get(at_key + AHEAD) {
                self.announce(*ahead);
            }
            let at = self.slot(keys[at_key]);
            if self.slots[at].load(Ordering::Relaxed) != 0 || value == self.hole {
                return false;
            }
            self.slots[at].store(value ^ self.hole, Ordering::Relaxed);
        }
        self.entries.fetch_add(keys.len(), Ordering::Relaxed);
        true
    }

    /// For adding groups of all rows to a share of the slots. Every share must be given the same
    /// rows in the same order, and nothing else may be put meanwhile.
    #[must_use]
    pub fn grouping(self, share: Share) -> Grouping<'t> {
        Grouping { table: self, share, mine: Vec::new() }
    }

    #[inline(always)]
    fn announce(&self, key: u64) {
        let at = slot(self.lowest, self.slots.len() - 1, key);
        Prefetching::<ToL1>::default().fetch(Place::of(&self.slots[at]), Intent::Write);
    }

    /// The place of a key to be put in.
    #[inline(always)]
    fn slot(&self, key: u64) -> usize {
        let last = self.slots.len() - 1;
        let at = slot(self.lowest, last, key);
        assert!(at < last, "key {key} is out of the table's range");
        at
    }

    /// Counts a row. True if its key is new.
    #[inline(always)]
    fn count<S: Sink<Row>>(&self, key: u64, row: Row, repeats: &mut S) -> bool {
        // No other thread has this slot: a load and a store are enough.
        let slot = &self.slots[self.slot(key)];
        let stored = slot.load(Ordering::Relaxed);
        if stored == 0 {
            slot.store(u64::from(row) ^ self.hole, Ordering::Relaxed);
            return true;
        }
        let value = (stored ^ self.hole) + COUNT_ONE;
        slot.store(value ^ self.hole, Ordering::Relaxed);
        repeats.emit(row, value as Row);
        false
    }
}

impl Grouping<'_> {
    /// Adds the groups of more rows, of which row `i` is `keys[i]` and called `base + i`, as far as
    /// they are in the share. A row whose key is there already is counted, and `repeats` gets it
    /// with its key's first row. The values are read by [`Group`](crate::bucket::Group).
    ///
    /// # Panics
    /// When a key is out of range, or the last row's name does not fit [`Row`].
    pub fn add<S: Sink<Row>>(&mut self, keys: &[u64], base: Row, repeats: &mut S) {
        assert!(u32::try_from(keys.len()).is_ok_and(|len| base.checked_add(len).is_some()));
        if self.share == Share::WHOLE {
            return self.add_rows(keys, base, keys.len(), |at| at, repeats);
        }
        let mut mine = std::mem::take(&mut self.mine);
        mine.clear();
        mine.resize(keys.len(), 0);
        let mut rows = 0;
        for (row, key) in keys.iter().enumerate() {
            // Decided by no branch: which thread's a row is can't be guessed.
            mine[rows] = row as u32;
            rows += usize::from(self.share.has(self.table.slot(*key)));
        }
        self.add_rows(keys, base, rows, |at| mine[at] as usize, repeats);
        self.mine = mine;
    }

    #[inline(always)]
    fn add_rows<S: Sink<Row>>(
        &self,
        keys: &[u64],
        base: Row,
        rows: usize,
        row: impl Fn(usize) -> usize,
        repeats: &mut S,
    ) {
        let (table, mut new) = (self.table, 0);
        for at in 0..rows {
            if at + AHEAD < rows {
                table.announce(keys[row(at + AHEAD)]);
            }
            let row = row(at);
            new += usize::from(table.count(keys[row], base + row as Row, repeats));
        }
        table.entries.fetch_add(new, Ordering::Relaxed);
    }
}
