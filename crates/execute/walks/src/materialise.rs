//! Results written out, counted and summed.
//!
//! A join that only counts its matches never writes; one that only writes is never checked. This
//! sink does both: rows go to a buffer in the order they come, and a checksum that does not depend
//! on that order is kept beside it, for about a nanosecond a row.

use std::marker::PhantomData;
use std::num::NonZero;
use std::ptr::NonNull;

use crate::place::Place;
use crate::record::{JoinedRecord, Payload, Record};
use crate::walk::{Row, Sink};

/// Writes hits to `rows` from its start, and from its start again when it is full: a buffer as long
/// as the result holds it whole, a short one stays in cache.
pub struct Materialise<'a, T = JoinedRecord> {
    rows: &'a mut [T],
    at: usize,
    /// Rows written before the buffer was last begun again, and rows that knew their slot.
    earlier: usize,
    checksum: u64,
}

impl<'a, T> Materialise<'a, T> {
    /// An empty result in `rows`.
    ///
    /// # Panics
    /// If `rows` is empty.
    pub fn new(rows: &'a mut [T]) -> Self {
        assert!(!rows.is_empty(), "a result needs room for a row");
        Self { rows, at: 0, earlier: 0, checksum: 0 }
    }

    /// An empty result in `rows`, and where its rows lie, for a walk that asks for them beforehand.
    ///
    /// # Panics
    /// If `rows` is empty, or longer than rows are counted.
    pub fn announced(rows: &'a mut [T]) -> (Self, Destination<'a, T>) {
        let first = NonNull::from(&mut *rows).addr();
        let count = rows.len().try_into().expect("rows are counted in 32 bits");
        // The sink keeps the only borrow of the rows; `'a` binds the destination to it.
        (Self::new(rows), Destination { first, rows: count, _lent: PhantomData })
    }

    /// Hits taken.
    #[must_use]
    pub fn written(&self) -> usize {
        self.earlier + self.at
    }

    /// Sum over the hits of [`pair_checksum`] of their row ids, modulo 2^64.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        self.checksum
    }

    /// The next row to be written, counted with the pair of row ids it is for.
    #[inline(always)]
    pub(crate) fn next(&mut self, left: u32, right: u32) -> &mut T {
        self.checksum = self.checksum.wrapping_add(pair_checksum(left, right));
        if self.at == self.rows.len() {
            self.begin_again();
        }
        let at = self.at;
        self.at = at + 1;
        &mut self.rows[at]
    }

    #[cold]
    fn begin_again(&mut self) {
        self.earlier += self.at;
        self.at = 0;
    }

    /// The row of a hit that knows its slot, counted likewise.
    #[inline(always)]
    pub(crate) fn slot(&mut self, slot: u32, left: u32, right: u32) -> &mut T {
        self.checksum = self.checksum.wrapping_add(pair_checksum(left, right));
        self.earlier += 1;
        &mut self.rows[slot as usize]
    }
}

/// Where the rows of a result lie: their places, and no right to read or write them.
///
/// The result is borrowed, exclusively, for `'a` by its [`Materialise`], so the places stay mapped
/// while a destination lives.
#[derive(Debug, Clone, Copy)]
pub struct Destination<'a, T = JoinedRecord> {
    /// An address and not a pointer: a walk goes to whatever thread it is run on.
    first: NonZero<usize>,
    rows: u32,
    _lent: PhantomData<&'a T>,
}

impl<T> Destination<'_, T> {
    /// Rows of the result.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The slot after `slot`, round to the first after the last.
    #[inline(always)]
    pub(crate) fn after(&self, slot: u32) -> u32 {
        if slot + 1 == self.rows { 0 } else { slot + 1 }
    }

    /// The place of a slot.
    #[inline(always)]
    pub(crate) fn place(&self, slot: u32) -> Place {
        debug_assert!(slot < self.rows);
        Place::of_lent::<T>(self.first.saturating_add(slot as usize * size_of::<T>()))
    }
}

/// A pair of row ids as one number, mixed so that sums of different sets of pairs differ.
#[inline(always)]
#[must_use]
pub const fn pair_checksum(left: u32, right: u32) -> u64 {
    ((left as u64) << 32 | right as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl<P: Payload> Sink<(&Record<P>, &Record<P>)> for Materialise<'_, JoinedRecord<P>> {
    #[inline(always)]
    fn emit(&mut self, _: Row, (probe, build): (&Record<P>, &Record<P>)) {
        // Record by record: whole lines are copied as lines, a struct of both field by field.
        let joined = self.next(probe.row, build.row);
        joined.probe = *probe;
        joined.build = *build;
    }
}

impl Sink<(u32, u32)> for Materialise<'_, [u32; 2]> {
    #[inline(always)]
    fn emit(&mut self, _: Row, (outer, inner): (u32, u32)) {
        *self.next(outer, inner) = [outer, inner];
    }
}

impl Sink<u64> for Materialise<'_, [u32; 2]> {
    /// The hit is the position of a build row.
    #[inline(always)]
    fn emit(&mut self, row: Row, build_row: u64) {
        *self.next(row, build_row as u32) = [row, build_row as u32];
    }
}
