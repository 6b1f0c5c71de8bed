//! Results written out, counted and summed.
//!
//! A join that only counts its matches never writes; one that only writes is never checked. This
//! sink does both: rows go to a buffer in the order they come, and a checksum that does not depend
//! on that order is kept beside it, for about a nanosecond a row.

use crate::record::{Joined, Record};
use crate::walk::{Row, Sink};

/// Writes hits to `rows` from its start, and from its start again when it is full: a buffer as long
/// as the result holds it whole, a short one stays in cache.
pub struct Materialise<'a, T = Joined> {
    rows: &'a mut [T],
    at: usize,
    written: usize,
    checksum: u64,
}

impl<'a, T> Materialise<'a, T> {
    /// An empty result in `rows`.
    ///
    /// # Panics
    /// If `rows` is empty.
    pub fn new(rows: &'a mut [T]) -> Self {
        assert!(!rows.is_empty(), "a result needs room for a row");
        Self { rows, at: 0, written: 0, checksum: 0 }
    }

    /// Hits taken.
    #[must_use]
    pub fn written(&self) -> usize {
        self.written
    }

    /// Sum over the hits of [`pair_checksum`] of their row ids, modulo 2^64.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        self.checksum
    }

    /// The next row to be written, counted with the pair of row ids it is for.
    #[inline(always)]
    fn next(&mut self, left: u32, right: u32) -> &mut T {
        self.checksum = self.checksum.wrapping_add(pair_checksum(left, right));
        self.written += 1;
        let at = if self.at == self.rows.len() { 0 } else { self.at };
        self.at = at + 1;
        &mut self.rows[at]
    }
}

/// A pair of row ids as one number, mixed so that sums of different sets of pairs differ.
#[inline(always)]
#[must_use]
pub const fn pair_checksum(left: u32, right: u32) -> u64 {
    ((left as u64) << 32 | right as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Sink<(&Record, &Record)> for Materialise<'_, Joined> {
    #[inline(always)]
    fn emit(&mut self, _: Row, (probe, build): (&Record, &Record)) {
        *self.next(probe.row, build.row) = Joined { probe: *probe, build: *build };
    }
}

impl Sink<(u32, u32)> for Materialise<'_, [u32; 2]> {
    #[inline(always)]
    fn emit(&mut self, _: Row, (outer, inner): (u32, u32)) {
        *self.next(outer, inner) = [outer, inner];
    }
}
