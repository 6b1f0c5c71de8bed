//! The build side of a bucket table.

use super::{Bucket, EMPTY, REACH, SLOTS, Table, TableError, has_spilled, home, stored};
use crate::memory::Memory;
use crate::place::{Intent, Place};
use crate::walk::{Row, Sink, Walk};

/// Puts pairs into a table: row `i` is `keys[i]` with `values[i]`.
///
/// A row starts at the home of its key and takes a step for each bucket up to the first with room.
/// It finds nothing, so any sink will do.
pub struct Build<'a> {
    table: Table,
    keys: &'a [u64],
    values: &'a [u64],
    refused: usize,
}

impl<'a> Build<'a> {
    /// Adds pairs to a table.
    ///
    /// # Panics
    /// If keys and values differ in number.
    #[must_use]
    pub fn new(table: Table, keys: &'a [u64], values: &'a [u64]) -> Self {
        assert_eq!(keys.len(), values.len(), "every key needs a value");
        Self { table, keys, values, refused: 0 }
    }

    /// The table, once every row has been driven.
    ///
    /// # Errors
    /// When entries found no room near their home. The table would miss them, so it is not given.
    pub fn finish(self) -> Result<Table, TableError> {
        unless_refused(self.table, self.refused)
    }

    /// Writes an entry into the first empty slot.
    #[inline(always)]
    pub(super) fn put<M: Memory>(
        bucket: &mut Bucket,
        taken: usize,
        entry: (u64, u64),
        memory: &mut M,
    ) {
        let (mut key, mut value) = entry;
        let before = taken.wrapping_sub(1) % SLOTS;
        if taken == SLOTS - 1 && key < bucket.keys[before] {
            // The bucket is full now and has not spilled: its last two keys ascend.
            let entry = (bucket.keys[before], bucket.values[before]);
            memory.write(&mut bucket.keys[before], key);
            memory.write(&mut bucket.values[before], value);
            (key, value) = entry;
        }
        memory.write(&mut bucket.keys[taken], key);
        memory.write(&mut bucket.values[taken], value);
    }
}

pub(super) fn unless_refused(table: Table, refused: usize) -> Result<Table, TableError> {
    match refused {
        0 => Ok(table),
        _ => Err(TableError::Crowded { refused, entries: table.entries + refused }),
    }
}

/// A row looking for room.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    row: Row,
    bucket: u32,
}

impl Walk for Build<'_> {
    const INTENT: Intent = Intent::Write;
    type Cursor = Cursor;
    type Hit = ();
    type Asks = Place;

    #[inline(always)]
    fn start<M: Memory>(&mut self, row: Row, memory: &mut M) -> (Cursor, Place) {
        let key = *memory.read_hot(&self.keys[row as usize]);
        let bucket = home(self.table.homes, key);
        (Cursor { row, bucket }, Place::of(&self.table.buckets[bucket as usize]))
    }

    #[inline(always)]
    fn step<M: Memory, S: Sink<()>>(
        &mut self,
        cursor: &mut Cursor,
        memory: &mut M,
        _: &mut S,
    ) -> Option<Place> {
        let key = *memory.read_hot(&self.keys[cursor.row as usize]);
        let bucket = &mut self.table.buckets[cursor.bucket as usize];
        let held = *memory.read(&bucket.keys);
        let taken = held.iter().filter(|held| **held != EMPTY).count();
        self.table.repeats |= held.contains(&stored(key));
        if taken < SLOTS {
            let value = *memory.read_hot(&self.values[cursor.row as usize]);
            Self::put(bucket, taken, (stored(key), value), memory);
            self.table.entries += 1;
            return None;
        }
        if (cursor.bucket - home(self.table.homes, key)) as usize == REACH - 1 {
            self.refused += 1;
            return None;
        }
        if !has_spilled(&held) {
            // From ascending to descending: the sign that a key went past.
            let values = *memory.read(&bucket.values);
            memory.write(&mut bucket.keys, [held[0], held[1], held[3], held[2]]);
            memory.write(&mut bucket.values, [values[0], values[1], values[3], values[2]]);
        }
        cursor.bucket += 1;
        Some(Place::of(&self.table.buckets[cursor.bucket as usize]))
    }
}

/// For walks that find nothing.
impl Sink<()> for () {
    fn emit(&mut self, _: Row, (): ()) {}
}
