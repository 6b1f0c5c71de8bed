//! A build side on which every key is held once, however often it repeats.
//!
//! Equal keys as several entries are bounded by the table's reach, and a hot key makes its
//! neighbours' probes long. Here the first row of a key is its entry, later ones only count:
//!
//! ```text
//! value   [ further rows of the key : 32 | first row : 32 ]      hit of a later row: the first row
//! ```
//!
//! The caller collects the hits, knows every group's size and first row, and lays the rows of each
//! group out one after the other; [`Table::update_values`] then points the entries there.

use super::build::unless_refused;
use super::{
    Bucket, Build, Compare, EMPTY, REACH, SLOTS, Table, TableError, has_spilled, home, stored,
};
use crate::isa::Detected;
use crate::memory::{Memory, Prefetching, ToL1};
use crate::place::{Intent, Place};
use crate::schedule::{Distance, Schedule};
use crate::walk::{Row, Rows, Sink, Walk};
use crate::with_isa;

/// The value of an entry of a grouped table before its values are updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group(u64);

pub(super) const COUNT_ONE: u64 = 1 << 32;

impl Group {
    /// The group of an entry's value.
    #[must_use]
    pub fn of(value: u64) -> Self {
        Self(value)
    }

    /// The row that came first.
    #[must_use]
    pub fn first_row(self) -> Row {
        self.0 as Row
    }

    /// How many rows came after it.
    #[must_use]
    pub fn further_rows(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// Puts rows into a table that holds each key once. Row `i` is `keys[i]` and called `base + i`; a
/// row whose key is there already is counted and emits the key's first row.
pub struct Grouping<'a, I> {
    table: Table,
    isa: I,
    keys: &'a [u64],
    base: Row,
    refused: usize,
}

impl<'a, I: Compare> Grouping<'a, I> {
    /// Adds rows to a table that is empty or was made by groupings.
    ///
    /// # Panics
    /// When the last row's name does not fit [`Row`].
    #[must_use]
    pub fn new(table: Table, isa: I, keys: &'a [u64], base: Row) -> Self {
        assert!(u32::try_from(keys.len()).is_ok_and(|len| base.checked_add(len).is_some()));
        Self { table, isa, keys, base, refused: 0 }
    }

    /// The table, once every row has been driven.
    ///
    /// # Errors
    /// When keys found no room near their home. The table would miss them, so it is not given.
    pub fn finish(self) -> Result<Table, TableError> {
        unless_refused(self.table, self.refused)
    }
}

/// A row looking for its key.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    row: Row,
    bucket: u32,
}

impl<I: Compare> Walk for Grouping<'_, I> {
    const INTENT: Intent = Intent::Write;
    type Cursor = Cursor;
    type Hit = Row;
    type Asks = Place;

    #[inline(always)]
    fn start<M: Memory>(&mut self, row: Row, memory: &mut M) -> (Cursor, Place) {
        let key = *memory.read_hot(&self.keys[row as usize]);
        let bucket = home(self.table.homes, key);
        (Cursor { row, bucket }, Place::of(&self.table.buckets[bucket as usize]))
    }

    #[inline(always)]
    fn step<M: Memory, S: Sink<Row>>(
        &mut self,
        cursor: &mut Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Place> {
        let key = *memory.read_hot(&self.keys[cursor.row as usize]);
        let row = self.base + cursor.row;
        let bucket = &mut self.table.buckets[cursor.bucket as usize];
        match meet(bucket, self.isa, (stored(key), u64::from(row)), memory) {
            Offer::Put => {
                self.table.entries += 1;
                return None;
            }
            Offer::Held(slot) => {
                let value = *memory.read(&bucket.values[slot]);
                memory.write(&mut bucket.values[slot], value + COUNT_ONE);
                sink.emit(row, Group::of(value).first_row());
                return None;
            }
            Offer::Full => {}
        }
        if (cursor.bucket - home(self.table.homes, key)) as usize == REACH - 1 {
            self.refused += 1;
            return None;
        }
        cursor.bucket += 1;
        Some(Place::of(&self.table.buckets[cursor.bucket as usize]))
    }
}

/// The response of a bucket to an entry whose key is to be held once.
pub(super) enum Offer {
    /// Holds it now.
    Put,
    /// Holds its key, in this slot.
    Held(usize),
    /// Sends it on to the next.
    Full,
}

/// Offers an entry to a bucket.
#[inline(always)]
pub(super) fn meet<I: Compare, M: Memory>(
    bucket: &mut Bucket,
    isa: I,
    (key, value): (u64, u64),
    memory: &mut M,
) -> Offer {
    let held = *memory.read(&bucket.keys);
    let matches = isa.equal(&held, key);
    if matches != 0 {
        return Offer::Held(matches.trailing_zeros() as usize % SLOTS);
    }
    // Slots fill in order: the first empty one, or the bit behind the last.
    let empty = isa.equal(&held, EMPTY) | 1 << SLOTS;
    let taken = empty.trailing_zeros() as usize;
    if taken < SLOTS {
        Build::put(bucket, taken, (key, value), memory);
        return Offer::Put;
    }
    if !has_spilled(&held) {
        // From ascending to descending: the sign that a key went past.
        let values = *memory.read(&bucket.values);
        memory.write(&mut bucket.keys, [held[0], held[1], held[3], held[2]]);
        memory.write(&mut bucket.values, [values[0], values[1], values[3], values[2]]);
    }
    Offer::Full
}

impl Table {
    /// The table with the groups of more rows in it; `repeats` hears of each row whose key was
    /// there.
    ///
    /// # Errors
    /// As [`Grouping::finish`]; the table is then lost.
    ///
    /// # Panics
    /// As [`Grouping::new`].
    pub fn grouped<S: Sink<Row>>(
        self,
        keys: &[u64],
        base: Row,
        repeats: &mut S,
    ) -> Result<Self, TableError> {
        /// Beyond the latency of a miss at the speed of this loop; wider gains nothing.
        const DISTANCE: usize = 32;
        let mut rows = Rows::range(0..keys.len() as u32);
        let mut memory = Prefetching::<ToL1>::default();
        with_isa!(Detected::best(), isa => {
            let mut grouping = Grouping::new(self, isa, keys, base);
            Distance::new(DISTANCE).drive(&mut grouping, &mut rows, &mut memory, repeats);
            grouping.finish()
        })
    }

    /// The value of every entry, in the order of memory.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        self.buckets.iter().flat_map(|bucket| {
            let taken = bucket.keys.iter().take_while(|key| **key != EMPTY).count();
            bucket.values[..taken].iter().copied()
        })
    }

    /// The key of every entry, in the order of memory.
    pub fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        let (others, zeros) = self.buckets.split_at(self.homes as usize + REACH);
        let taken = |bucket: &Bucket| bucket.keys.iter().take_while(|key| **key != EMPTY).count();
        let of_others = others.iter().flat_map(move |bucket| bucket.keys[..taken(bucket)].iter());
        let of_zeros =
            zeros.iter().flat_map(move |bucket| std::iter::repeat_n(EMPTY, taken(bucket)));
        of_others.copied().chain(of_zeros)
    }

    /// Replaces the value of every entry, in the order of memory.
    pub fn update_values(&mut self, mut update: impl FnMut(u64) -> u64) {
        for bucket in self.buckets.iter_mut() {
            for (value, key) in bucket.values.iter_mut().zip(bucket.keys) {
                if key == EMPTY {
                    break;
                }
                *value = update(*value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::Load;
    use super::*;
    use crate::isa::Portable;
    use crate::memory::Direct;
    use crate::schedule::{InTurn, Lanes, Rounds};
    use workahead_machine::pages::Pages;

    /// Groups as the table has them, by key: first row, further rows.
    fn check(table: &Table, keys: &[u64], repeats: &[(Row, Row)]) {
        let mut rows = HashMap::<u64, Vec<Row>>::new();
        for (row, key) in keys.iter().enumerate() {
            rows.entry(*key).or_default().push(row as Row);
        }
        assert_eq!(table.len(), rows.len());
        let mut held: Vec<u64> = table.keys().collect();
        let mut expected: Vec<u64> = rows.keys().copied().collect();
        held.sort_unstable();
        expected.sort_unstable();
        assert_eq!(held, expected);
        for (key, rows) in &rows {
            let [value] = table.values_of(*key)[..] else { panic!("{key} is not held once") };
            let group = Group::of(value);
            assert_eq!(group.further_rows() as usize, rows.len() - 1);
            let later = repeats.iter().filter(|(_, first)| *first == group.first_row());
            let mut all: Vec<Row> = later.map(|(row, _)| *row).collect();
            all.push(group.first_row());
            all.sort_unstable();
            assert_eq!(&all, rows);
        }
        assert_eq!(repeats.len() + rows.len(), keys.len());
    }

    proptest! {
        #[test]
        fn each_key_is_held_once(
            keys in prop::collection::vec(
                prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..60_u64, any::<u64>()], 0..600),
            width in 1..70_usize,
        ) {
            let table = || Table::for_entries(keys.len(), Load::percent(85).unwrap(), Pages::Small);
            let rows = || Rows::range(0..keys.len() as u32);
            let (mut repeats, memory) = (Vec::new(), &mut Direct);
            let mut grouping = Grouping::new(table().unwrap(), Portable, &keys, 0);
            InTurn::new().drive(&mut grouping, &mut rows(), memory, &mut repeats);
            check(&grouping.finish().unwrap(), &keys, &repeats);
            repeats.clear();
            let mut grouping = Grouping::new(table().unwrap(), Portable, &keys, 0);
            Lanes::new(width).drive(&mut grouping, &mut rows(), memory, &mut repeats);
            check(&grouping.finish().unwrap(), &keys, &repeats);
            repeats.clear();
            let mut grouping = Grouping::new(table().unwrap(), Portable, &keys, 0);
            Rounds::new(width).drive(&mut grouping, &mut rows(), memory, &mut repeats);
            check(&grouping.finish().unwrap(), &keys, &repeats);
        }
    }

    #[test]
    fn a_hot_key_has_no_limit() {
        for key in [0, 42] {
            let keys = vec![key; 100_000];
            let table = Table::for_entries(1, Load::HALF, Pages::Small).unwrap();
            let mut repeats: Vec<(Row, Row)> = Vec::new();
            let table = table.grouped(&keys[..5], 0, &mut repeats).unwrap();
            let table = table.grouped(&keys[5..], 5, &mut repeats).unwrap();
            check(&table, &keys, &repeats);
        }
    }

    #[test]
    fn values_can_be_updated() {
        let keys: Vec<u64> = (0..100).collect();
        let table = Table::for_entries(100, Load::HALF, Pages::Small).unwrap();
        let mut table = table.grouped(&keys, 0, &mut Vec::new()).unwrap();
        let mut seen = 0;
        table.update_values(|value| {
            seen += 1;
            value * 3
        });
        assert_eq!(seen, 100);
        assert_eq!(table.values().sum::<u64>(), keys.iter().sum::<u64>() * 3);
        assert!(keys.iter().all(|key| table.values_of(*key) == [key * 3]));
    }

    #[test]
    fn too_many_keys_are_refused() {
        let keys: Vec<u64> = (1..5000).collect();
        let table = Table::for_entries(10, Load::HALF, Pages::Small).unwrap();
        assert!(table.grouped(&keys, 0, &mut Vec::new()).is_err());
    }
}
