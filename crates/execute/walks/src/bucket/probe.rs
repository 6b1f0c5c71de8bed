//! The probe side of a bucket table.

use std::marker::PhantomData;

use super::{Bucket, Compare, SLOTS, Table, has_spilled, home, stored};
use crate::memory::Memory;
use crate::place::Place;
use crate::walk::{Row, Sink, Walk};
use crate::work_ahead::Preloadable;

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
/// match is requested again, as a step emits one hit.
#[derive(Clone, Copy)]
pub struct Probe<'a, I, N> {
    buckets: &'a [Bucket],
    homes: u32,
    isa: I,
    keys: &'a [u64],
    _matches: PhantomData<N>,
}

impl<'a, I: Compare, N: Matches> Probe<'a, I, N> {
    /// Probes `table` with `keys`, comparing by `isa`.
    #[must_use]
    pub fn new(table: &'a Table, isa: I, keys: &'a [u64]) -> Self {
        Self { buckets: &table.buckets, homes: table.homes, isa, keys, _matches: PhantomData }
    }
}

/// A row, and where its next candidate lies.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    /// The key as the table stores it: read back by a broadcast, and cheaper than the column.
    stored: u64,
    row: Row,
    /// The bucket; for [`Every`] times [`SLOTS`], plus the slot to look from.
    at: u32,
}

impl<I: Compare, N: Matches> Probe<'_, I, N> {
    /// Positions in a bucket that a cursor tells apart.
    const PLACES: u32 = if N::FIRST_ONLY { 1 } else { SLOTS as u32 };
}

impl<I: Compare, N: Matches> Walk for Probe<'_, I, N> {
    type Cursor = Cursor;
    /// The value of the build side.
    type Hit = u64;
    type Asks = Place;

    #[inline(always)]
    fn start<M: Memory>(&mut self, row: Row, memory: &mut M) -> (Cursor, Place) {
        let key = *memory.read_hot(&self.keys[row as usize]);
        let bucket = home(self.homes, key);
        let place = Place::of(&self.buckets[bucket as usize]);
        (Cursor { stored: stored(key), row, at: bucket * Self::PLACES }, place)
    }

    #[inline(always)]
    fn step<M: Memory, S: Sink<u64>>(
        &mut self,
        cursor: &mut Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Place> {
        let at = cursor.at / Self::PLACES;
        let bucket = &self.buckets[at as usize];
        let held = memory.read(&bucket.keys);
        let mut matches = self.isa.equal(held, cursor.stored);
        if !N::FIRST_ONLY {
            matches &= u32::MAX << (cursor.at % Self::PLACES);
        }
        if matches != 0 {
            let slot = matches.trailing_zeros();
            sink.emit(cursor.row, *memory.read(&bucket.values[slot as usize % SLOTS]));
            if N::FIRST_ONLY {
                return None;
            }
            if matches & (matches - 1) != 0 {
                cursor.at = at * Self::PLACES + slot + 1;
                return Some(Place::of(bucket));
            }
        }
        if !has_spilled(held) {
            return None;
        }
        cursor.at = (at + 1) * Self::PLACES;
        Some(Place::of(&self.buckets[at as usize + 1]))
    }
}

// SAFETY: buckets are borrowed, and immutable, for `'a`; a key column is not a place at all.
unsafe impl<I: Compare, N: Matches> Preloadable for Probe<'_, I, N> {}
