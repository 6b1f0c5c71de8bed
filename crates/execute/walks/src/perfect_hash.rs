//! A perfect hash table of integers that lie close together: a key's slot is the key itself.
//!
//! ```text
//! slot = key − lowest ───►  ┌──────┬───┬──────┬──────┬───┬─ … ─┬───┐   8 bytes a slot
//!                           │ v ⊕ h│ 0 │ v ⊕ h│ v ⊕ h│ 0 │     │ 0 │   0: no such key
//! out of range ─────────────┴──────┴───┴──────┴──────┴───┴─ … ─┴─▲─┘   the last: never any
//!                                                  └─────────────┘
//! ```
//!
//! Surrogate keys are numbers from a sequence: nothing needs to be hashed or compared, and a slot
//! is an eighth of a [bucket](crate::bucket) table's line. While at least a quarter of the range is
//! taken it is the smaller table as well (a bucket table at half load has 32 bytes a key).
//! DataFusion and DuckDB do likewise (*perfect hash join*); the idea is as old as arrays.
//!
//! * **No extra bit says whether a slot is taken.** Values are stored with a mask, the *hole*, such
//!   that none of them becomes zero; so a lookup touches one line, fresh pages are an empty table,
//!   and all 64-bit values can be held. If one should equal the hole, another hole is drawn.
//! * **The difference wraps**, so that a range of signed numbers may begin below zero.
//! * **Semantics are those of [`bucket::group`](crate::bucket::group)**: each key is held once,
//!   further rows are counted and passed to a sink.

mod atomics;
pub mod set;
pub mod shared;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use workahead_machine::pages::{AllocationError, PageBuffer, Supply};

use crate::memory::Memory;
use crate::place::{Intent, LINE_BYTES, Place};
use crate::random::Random;
use crate::selection::{BLOCK, Blocks, SelectionVector};
use crate::walk::{Row, Sink};
use shared::Share;

/// Bytes of a slot.
const SLOT_BYTES: usize = size_of::<u64>();

/// Most slots of a table: as many bytes as the largest bucket table's.
const SLOTS_MAX: u64 = 1 << 33;

/// A table could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The system has no memory for it.
    #[error(transparent)]
    Memory(#[from] AllocationError),
    /// The range is too long.
    #[error(
        "keys from {lowest} to {highest} are further apart than the {SLOTS_MAX} slots of a \
         perfect hash table: hash them"
    )]
    TooWide {
        /// Lowest key.
        lowest: u64,
        /// Highest key.
        highest: u64,
    },
}

/// A table from the 64-bit keys of a range to 64-bit values.
///
/// ```
/// use workahead_machine::pages::Pages;
/// use workahead_walks::perfect_hash::Table;
/// let (lowest, highest) = (-1_i64 as u64, 2);
/// let mut table = Table::for_range(lowest, highest, Pages::Huge)?;
/// let mut repeats = Vec::new();
/// table.group(&[2, 0, u64::MAX, 0], 0, &mut repeats);
/// assert_eq!((table.len(), repeats), (3, vec![(3, 1)]), "row 3 has the key of row 1");
/// assert_eq!(table.value_of(2), Some(0));
/// assert_eq!(table.value_of(1), None);
/// # Ok::<(), workahead_walks::perfect_hash::TableError>(())
/// ```
pub struct Table {
    slots: PageBuffer<u64>,
    lowest: u64,
    entries: AtomicUsize,
    /// The mask of stored values: no value held equals it.
    hole: u64,
}

/// A row counted beyond the first of its key, as [`Group`](crate::bucket::Group) has it.
const COUNT_ONE: u64 = 1 << 32;

impl Table {
    /// The line that a lookup of a key touches, by its number in the table.
    #[must_use]
    pub fn line(&self, key: u64) -> usize {
        slot(self.lowest, self.slots.len() - 1, key) * size_of::<u64>() / LINE_BYTES
    }

    /// An empty table for keys of a range, both ends included. The highest may be the smaller
    /// number: the range then goes through zero.
    ///
    /// # Errors
    /// When the range is too long, or memory cannot be allocated.
    pub fn for_range(
        lowest: u64,
        highest: u64,
        pages: impl Into<Supply>,
    ) -> Result<Self, TableError> {
        let pages = pages.into();
        Self::over(lowest, highest, |slots| pages.zeroed(slots))
    }

    fn over(
        lowest: u64,
        highest: u64,
        slots: impl FnOnce(usize) -> Result<PageBuffer<u64>, AllocationError>,
    ) -> Result<Self, TableError> {
        let Some(bytes) = Self::bytes_for(highest.wrapping_sub(lowest)) else {
            return Err(TableError::TooWide { lowest, highest });
        };
        // No group has the highest bit: there are fewer rows.
        let hole = Random::of(lowest).number() | 1 << (u64::BITS - 1);
        let slots = slots(bytes / SLOT_BYTES)?;
        Ok(Self { slots, lowest, entries: AtomicUsize::new(0), hole })
    }

    /// Bytes of a table whose highest key is so much above its lowest; `None` where there can be no
    /// such table.
    #[must_use]
    pub fn bytes_for(span: u64) -> Option<usize> {
        // A slot for the highest, and one for what is out of range.
        (span <= SLOTS_MAX - 2).then(|| (span as usize + 2) * SLOT_BYTES)
    }

    /// The same, where pages that were used before are cleared by a given number of threads.
    ///
    /// # Errors
    /// As [`for_range`](Self::for_range).
    pub fn for_range_by(
        threads: usize,
        (lowest, highest): (u64, u64),
        pages: &Supply,
    ) -> Result<Self, TableError> {
        let mut table = Self::over(lowest, highest, |slots| pages.any(slots))?;
        if pages.is_pooled() {
            table.clear(threads);
        }
        Ok(table)
    }

    /// Takes all keys out, by a given number of threads.
    pub fn clear(&mut self, threads: usize) {
        *self.entries.get_mut() = 0;
        by_threads(&mut self.slots, threads, |slots| slots.fill(0));
    }

    /// Adds the groups of more rows: row `i` is `keys[i]` and called `base + i`. A row whose key is
    /// there already is counted, and `repeats` gets it with its key's first row. The values
    /// are read by [`Group`](crate::bucket::Group).
    ///
    /// # Panics
    /// When a key is out of range, or the last row's name does not fit [`Row`].
    pub fn group<S: Sink<Row>>(&mut self, keys: &[u64], base: Row, repeats: &mut S) {
        self.shared().grouping(Share::WHOLE).add(keys, base, repeats);
    }

    /// Whether as many slots are taken as keys were put, so that none was put twice; counted by
    /// `threads` threads.
    #[must_use]
    pub fn is_unique(&mut self, threads: usize) -> bool {
        let taken = |slots: &mut [u64]| slots.iter().filter(|slot| **slot != 0).count();
        by_threads(&mut self.slots, threads, taken).into_iter().sum::<usize>()
            == *self.entries.get_mut()
    }

    /// Keys held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All the memory of the table.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.slots.bytes()
    }

    /// The value of every key held, by key.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        self.slots.iter().filter(|stored| **stored != 0).map(|stored| stored ^ self.hole)
    }

    /// Replaces the value of every key held, by key.
    pub fn update_values(&mut self, mut update: impl FnMut(u64) -> u64) {
        for at in 0..self.slots.len() {
            if self.slots[at] == 0 {
                continue;
            }
            let value = update(self.slots[at] ^ self.hole);
            if value == self.hole {
                self.move_hole(value);
            }
            self.slots[at] = value ^ self.hole;
        }
    }

    /// The value of a key: for tests and small uses.
    #[must_use]
    pub fn value_of(&self, key: u64) -> Option<u64> {
        match self.slots[slot(self.lowest, self.slots.len() - 1, key)] {
            0 => None,
            stored => Some(stored ^ self.hole),
        }
    }

    /// Takes another hole, that neither is `value` nor is held: two values in 2⁶⁴ meet by accident
    /// or intent, seldom more than once.
    #[cold]
    fn move_hole(&mut self, value: u64) {
        let mut random = Random::of(self.hole);
        let holes = std::iter::repeat_with(|| random.number());
        let free = |hole: &u64| *hole != value && self.values().all(|held| held != *hole);
        let hole = { holes }.find(free).expect("there are more numbers than slots");
        let change = self.hole ^ hole;
        self.slots.iter_mut().filter(|stored| **stored != 0).for_each(|stored| *stored ^= change);
        self.hole = hole;
    }
}

/// Does something with every slot, a run of them by each of a given number of threads. One that
/// does not start is one less.
fn by_threads<T: Send>(
    slots: &mut [u64],
    threads: usize,
    work: impl Fn(&mut [u64]) -> T + Sync,
) -> Vec<T> {
    let share = slots.len().div_ceil(threads.max(1)).max(1);
    let runs = Mutex::new(slots.chunks_mut(share));
    let next = || runs.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || std::iter::from_fn(&next).map(&work).collect::<Vec<_>>();
    let done: Vec<Vec<T>> = thread::scope(|scope| {
        let others =
            (1..threads).map_while(|_| thread::Builder::new().spawn_scoped(scope, run).ok());
        let others: Vec<_> = others.collect();
        let own = run();
        let others = others.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(own).chain(others).collect()
    });
    done.into_iter().flatten().collect()
}

/// A key's slot: the last one if it is out of range.
#[inline(always)]
fn slot(lowest: u64, last: usize, key: u64) -> usize {
    key.wrapping_sub(lowest).min(last as u64) as usize
}

/// Looks up every key. The order of `selection` is the order of `keys`.
///
/// The slots of the next 64 keys are announced while these 64 are read, and no branch depends on
/// what is there. For a table in the second-level cache, a memory that ignores announcements is as
/// fast.
#[inline(always)]
pub fn look_up<M: Memory>(
    table: &Table,
    keys: &[u64],
    memory: &mut M,
    selection: &mut SelectionVector,
) {
    let (slots, last) = (&table.slots[..], table.slots.len() - 1);
    let blocks = Blocks::of(keys);
    let (found, values) = selection.begin(keys.len());
    let mut at = blocks.block(0).map(|key| slot(table.lowest, last, key));
    at.iter().for_each(|at| memory.fetch(Place::of(&slots[*at]), Intent::Read));
    for (number, (found, values)) in found.iter_mut().zip(values).enumerate() {
        let next = blocks.block(number + 1);
        for row in 0..BLOCK {
            values[row] = *memory.read(&slots[at[row]]);
            at[row] = slot(table.lowest, last, next[row]);
            memory.fetch(Place::of(&slots[at[row]]), Intent::Read);
        }
        let mut bits = 0;
        for (row, value) in values.iter_mut().enumerate() {
            bits |= u64::from(*value != 0) << row;
            *value ^= table.hole;
        }
        *found = bits & blocks.bits(number);
    }
}
