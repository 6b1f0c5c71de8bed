//! A table of integers that lie close together: a key's place is the key itself.
//!
//! ```text
//! place = key − lowest ──►  ┌──────┬───┬──────┬──────┬───┬─ … ─┬───┐   8 bytes a place
//!                           │ v ⊕ h│ 0 │ v ⊕ h│ v ⊕ h│ 0 │     │ 0 │   0: no such key
//! out of range ─────────────┴──────┴───┴──────┴──────┴───┴─ … ─┴─▲─┘   the last: never any
//!                                                  └─────────────┘
//! ```
//!
//! Surrogate keys are numbers from a sequence: nothing needs to be hashed or compared, and a place
//! is an eighth of a [bucket](crate::bucket) table's line. While at least a quarter of the range is
//! taken it is the smaller table as well (a bucket table at half load has 32 bytes a key).
//! DataFusion and DuckDB do likewise (*perfect hash join*); the idea is as old as arrays.
//!
//! * **A word and no bit tells who is there.** Values are stored with a mask, the *hole*, such that
//!   none of them becomes zero; so a lookup touches one line, fresh pages are an empty table, and
//!   all 64-bit values can be held. If one should equal the hole, another hole is drawn.
//! * **The difference wraps**, so that a range of signed numbers may begin below zero.
//! * **Semantics are those of [`bucket::group`](crate::bucket::group)**: each key is held once,
//!   further rows are counted and told to a sink.

#[cfg(test)]
mod tests;

use workahead_machine::pages::{AllocationError, PageBuffer, Supply};

use crate::answers::{Answers, BLOCK, Blocks};
use crate::draws::Draws;
use crate::memory::{Memory, Prefetching, ToL1};
use crate::place::{Intent, Place};
use crate::walk::{Row, Sink};

/// Bytes of a place.
const PLACE_BYTES: usize = size_of::<u64>();

/// Most places of a table: as many bytes as the largest bucket table's.
const PLACES_MAX: u64 = 1 << 33;

/// A table could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The system has no memory for it.
    #[error(transparent)]
    Memory(#[from] AllocationError),
    /// The range is too long.
    #[error(
        "keys from {lowest} to {highest} are further apart than the {PLACES_MAX} places of a \
         direct table: hash them"
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
/// use workahead_operators::direct::Table;
/// let (lowest, highest) = (-1_i64 as u64, 2);
/// let mut table = Table::for_range(lowest, highest, Pages::Huge)?;
/// let mut repeats = Vec::new();
/// table.group(&[2, 0, u64::MAX, 0], 0, &mut repeats);
/// assert_eq!((table.len(), repeats), (3, vec![(3, 1)]), "row 3 has the key of row 1");
/// assert_eq!(table.value_of(2), Some(0));
/// assert_eq!(table.value_of(1), None);
/// # Ok::<(), workahead_operators::direct::TableError>(())
/// ```
pub struct Table {
    places: PageBuffer<u64>,
    lowest: u64,
    entries: usize,
    /// What a stored value is masked with: no value held equals it.
    hole: u64,
}

/// A row counted beyond the first of its key, as [`Group`](crate::bucket::Group) has it.
const COUNT_ONE: u64 = 1 << 32;

impl Table {
    /// An empty table for keys of a range, both ends included. The highest may be the smaller
    /// number: the range then goes through zero.
    ///
    /// # Errors
    /// When the range is too long, or memory cannot be had.
    pub fn for_range(
        lowest: u64,
        highest: u64,
        pages: impl Into<Supply>,
    ) -> Result<Self, TableError> {
        let Some(bytes) = Self::bytes_for(highest.wrapping_sub(lowest)) else {
            return Err(TableError::TooWide { lowest, highest });
        };
        let places = pages.into().zeroed(bytes / PLACE_BYTES)?;
        Ok(Self { places, lowest, entries: 0, hole: Draws::of(lowest).number() })
    }

    /// Bytes of a table whose highest key is so much above its lowest; `None` where there can be no
    /// such table.
    #[must_use]
    pub fn bytes_for(span: u64) -> Option<usize> {
        // A place for the highest, and one for what is out of range.
        (span <= PLACES_MAX - 2).then(|| (span as usize + 2) * PLACE_BYTES)
    }

    /// Adds the groups of more rows: row `i` is `keys[i]` and called `base + i`. A row whose key is
    /// there already is counted, and `repeats` hears of it and of its key's first row. The values
    /// are read by [`Group`](crate::bucket::Group).
    ///
    /// # Panics
    /// When a key is out of range, or the last row's name does not fit [`Row`].
    pub fn group<S: Sink<Row>>(&mut self, keys: &[u64], base: Row, repeats: &mut S) {
        assert!(u32::try_from(keys.len()).is_ok_and(|len| base.checked_add(len).is_some()));
        for at_key in 0..keys.len() {
            let (at, row) = (self.next_place(keys, at_key), base + at_key as Row);
            match self.places[at] {
                0 => {
                    self.places[at] = u64::from(row) ^ self.hole;
                    self.entries += 1;
                }
                stored => {
                    let value = (stored ^ self.hole) + COUNT_ONE;
                    self.places[at] = value ^ self.hole;
                    repeats.emit(row, value as Row);
                }
            }
        }
    }

    /// The place of a key to be put in. Those of keys some way behind it are announced.
    #[inline(always)]
    fn next_place(&self, keys: &[u64], at_key: usize) -> usize {
        /// Beyond the latency of a miss at the speed of these loops.
        const AHEAD: usize = 32;
        let last = self.places.len() - 1;
        if let Some(ahead) = keys.get(at_key + AHEAD) {
            let ahead = Place::of(&self.places[place(self.lowest, last, *ahead)]);
            Prefetching::<ToL1>::default().fetch(ahead, Intent::Write);
        }
        let key = keys[at_key];
        let at = place(self.lowest, last, key);
        assert!(at < last, "key {key} is out of the table's range");
        at
    }

    /// Adds keys and their values, up to the first key that is there already: true if there is
    /// none. What is the case with most dimensions, and then spares a pass.
    ///
    /// # Panics
    /// When a key is out of range, or keys and values differ in number.
    #[must_use]
    pub fn put_unique(&mut self, keys: &[u64], values: impl ExactSizeIterator<Item = u64>) -> bool {
        assert_eq!(keys.len(), values.len(), "every key needs a value");
        for (at_key, value) in values.enumerate() {
            let at = self.next_place(keys, at_key);
            if self.places[at] != 0 {
                return false;
            }
            if value == self.hole {
                self.move_hole(value);
            }
            self.places[at] = value ^ self.hole;
            self.entries += 1;
        }
        true
    }

    /// Keys held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// All the memory of the table.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.places.bytes()
    }

    /// The value of every key held, by key.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        self.places.iter().filter(|stored| **stored != 0).map(|stored| stored ^ self.hole)
    }

    /// Replaces the value of every key held, by key.
    pub fn update_values(&mut self, mut update: impl FnMut(u64) -> u64) {
        for at in 0..self.places.len() {
            if self.places[at] == 0 {
                continue;
            }
            let value = update(self.places[at] ^ self.hole);
            if value == self.hole {
                self.move_hole(value);
            }
            self.places[at] = value ^ self.hole;
        }
    }

    /// The value of a key: for tests and small uses.
    #[must_use]
    pub fn value_of(&self, key: u64) -> Option<u64> {
        match self.places[place(self.lowest, self.places.len() - 1, key)] {
            0 => None,
            stored => Some(stored ^ self.hole),
        }
    }

    /// Takes another hole, that neither is `value` nor is held: two values in 2⁶⁴ meet by accident
    /// or intent, seldom more than once.
    #[cold]
    fn move_hole(&mut self, value: u64) {
        let mut draws = Draws::of(self.hole);
        let holes = std::iter::repeat_with(|| draws.number());
        let free = |hole: &u64| *hole != value && self.values().all(|held| held != *hole);
        let hole = { holes }.find(free).expect("there are more numbers than places");
        let change = self.hole ^ hole;
        self.places.iter_mut().filter(|stored| **stored != 0).for_each(|stored| *stored ^= change);
        self.hole = hole;
    }
}

/// A key's place: the last one if it is out of range.
#[inline(always)]
fn place(lowest: u64, last: usize, key: u64) -> usize {
    key.wrapping_sub(lowest).min(last as u64) as usize
}

/// Looks up every key. The order of `answers` is the order of `keys`.
///
/// The places of the next 64 keys are announced while these 64 are read, and no branch depends on
/// what is there. For a table in the second-level cache, a memory that ignores announcements is as
/// fast.
#[inline(always)]
pub fn look_up<M: Memory>(table: &Table, keys: &[u64], memory: &mut M, answers: &mut Answers) {
    let (places, last) = (&table.places[..], table.places.len() - 1);
    let blocks = Blocks::of(keys);
    let (found, values) = answers.begin(keys.len());
    let mut at = blocks.block(0).map(|key| place(table.lowest, last, key));
    at.iter().for_each(|at| memory.fetch(Place::of(&places[*at]), Intent::Read));
    for (number, (found, values)) in found.iter_mut().zip(values).enumerate() {
        let next = blocks.block(number + 1);
        for row in 0..BLOCK {
            values[row] = *memory.read(&places[at[row]]);
            at[row] = place(table.lowest, last, next[row]);
            memory.fetch(Place::of(&places[at[row]]), Intent::Read);
        }
        let mut bits = 0;
        for (row, value) in values.iter_mut().enumerate() {
            bits |= u64::from(*value != 0) << row;
            *value ^= table.hole;
        }
        *found = bits & blocks.bits(number);
    }
}
