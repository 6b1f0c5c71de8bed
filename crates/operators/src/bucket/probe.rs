//! The probe side of a bucket table.

use std::marker::PhantomData;

use super::{Compare, SLOTS, Table, has_spilled, home, stored};
use crate::memory::Memory;
use crate::place::Place;
use crate::walk::{Row, Sink, Walk};

/// What a probe finds: the value of an entry with its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    /// The key of both sides.
    pub key: u64,
    /// The value of the build side.
    pub value: u64,
}

/// How many matches of a row are wanted.
pub trait Matches: Copy + Send + Sync + sealed::Sealed {
    /// Whether the first ends the row.
    const FIRST_ONLY: bool;
}

mod sealed {
    pub trait Sealed {}
}

/// One: all there are where no key repeats, and what a semi join needs where some do.
#[derive(Debug, Clone, Copy)]
pub struct First;
/// Every entry with the key.
#[derive(Debug, Clone, Copy)]
pub struct Every;

impl sealed::Sealed for First {}
impl sealed::Sealed for Every {}
impl Matches for First {
    const FIRST_ONLY: bool = true;
}
impl Matches for Every {
    const FIRST_ONLY: bool = false;
}

/// Looks keys up: row `i` is `keys[i]`.
///
/// A step reads one bucket and emits its lowest match. With [`Every`], a bucket with a further
/// match is asked for again, as a step emits one hit.
#[derive(Clone, Copy)]
pub struct Probe<'a, I, N> {
    table: &'a Table,
    isa: I,
    keys: &'a [u64],
    _matches: PhantomData<N>,
}

impl<'a, I: Compare, N: Matches> Probe<'a, I, N> {
    /// Probes `table` with `keys`, comparing by `isa`.
    #[must_use]
    pub fn new(table: &'a Table, isa: I, keys: &'a [u64]) -> Self {
        Self { table, isa, keys, _matches: PhantomData }
    }
}

/// A row, and where its next candidate lies: bucket times [`SLOTS`] plus slot.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    row: Row,
    slot: u32,
}

impl<I: Compare, N: Matches> Walk for Probe<'_, I, N> {
    type Cursor = Cursor;
    type Hit = Match;
    type Asks = Place;

    #[inline(always)]
    fn start<M: Memory>(&mut self, row: Row, memory: &mut M) -> (Cursor, Place) {
        let key = *memory.read_hot(&self.keys[row as usize]);
        let bucket = home(self.table.homes, key);
        let place = Place::of(&self.table.buckets[bucket as usize]);
        (Cursor { row, slot: bucket * SLOTS as u32 }, place)
    }

    #[inline(always)]
    fn step<M: Memory, S: Sink<Match>>(
        &mut self,
        cursor: &mut Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Place> {
        let key = *memory.read_hot(&self.keys[cursor.row as usize]);
        let at = cursor.slot / SLOTS as u32;
        let bucket = &self.table.buckets[at as usize];
        let held = memory.read(&bucket.keys);
        let mut matches = self.isa.equal(held, stored(key));
        if !N::FIRST_ONLY {
            matches &= u32::MAX << (cursor.slot % SLOTS as u32);
        }
        if matches != 0 {
            let slot = matches.trailing_zeros();
            let value = *memory.read(&bucket.values[slot as usize % SLOTS]);
            sink.emit(cursor.row, Match { key, value });
            if N::FIRST_ONLY {
                return None;
            }
            if matches & (matches - 1) != 0 {
                cursor.slot = at * SLOTS as u32 + slot + 1;
                return Some(Place::of(bucket));
            }
        }
        if !has_spilled(held) {
            return None;
        }
        cursor.slot = (at + 1) * SLOTS as u32;
        Some(Place::of(&self.table.buckets[at as usize + 1]))
    }
}
