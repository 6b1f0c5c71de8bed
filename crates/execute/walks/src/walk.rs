//! The walk: one operator, per row, without any opinion on when.

use alloc::vec::Vec;

use crate::memory::Memory;
use crate::place::{Intent, Place, References};

/// A row of the input, by position.
pub type Row = u32;

/// An operator over memory, cut into steps at every place that may not be in cache.
///
/// The running example: probing a chained table. `start` hashes the key of a row and asks for the
/// bucket head; a `step` reads what it asked for (head, cell, build tuple), emits at most one hit,
/// and asks for the next place, or returns `None` when the row is finished.
///
/// # Laws
/// Checked by `conformance` over a recording memory, for every walk and every schedule.
/// 1. *Only the requested place*: what a step reads or writes lies in a place that the previous
///    call asked for, in the row's own [`input`](Walk::input), or is declared hot. Where a row has
///    no input, its start may read one value that nothing announces, the row itself, and nothing
///    that it then asks for.
/// 2. *One hit a step*: a full sink is noticed once a round and overshoots by at most the width.
/// 3. *Carry places, not facts*: another row may have written between two steps; a cursor holds
///    handles and re-reads what they name.
/// 4. *Run to completion*: a step neither allocates, locks nor waits.
/// 5. *Any schedule, the same multiset of hits*; only the order-keeping schedules promise row
///    order.
pub trait Walk {
    /// The purpose of the walk's accesses.
    const INTENT: Intent = Intent::Read;
    /// Where a row is between two steps: plain data that every schedule can store and resume.
    type Cursor: Copy;
    /// The result for a row that finds something.
    type Hit;
    /// The place, or places, of one step.
    type Asks: References;

    /// The place `start` will read for this row, if it is not simply next in memory: the record a
    /// row id points to. Schedules announce it some rows ahead, so that a new row is ready when a
    /// lane is free.
    #[inline(always)]
    fn input(&self, _row: Row) -> Option<Place> {
        None
    }

    /// Begins a row.
    fn start<M: Memory>(&mut self, row: Row, memory: &mut M) -> (Self::Cursor, Self::Asks);

    /// Touches what was requested, and says what is needed next; `None` when the row is finished.
    fn step<M: Memory, S: Sink<Self::Hit>>(
        &mut self,
        cursor: &mut Self::Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Self::Asks>;
}

/// Where hits go.
pub trait Sink<H> {
    /// Takes a hit of a row.
    fn emit(&mut self, row: Row, hit: H);
    /// Whether the drive should pause. Asked once a round: keep room for one hit per lane.
    #[inline(always)]
    fn is_full(&self) -> bool {
        false
    }
}

/// Collects hits as they come: for tests and small uses.
impl<H> Sink<H> for Vec<(Row, H)> {
    fn emit(&mut self, row: Row, hit: H) {
        self.push((row, hit));
    }
}

/// The rows a schedule has yet to start: `next, next + stride, …` below `end`.
///
/// Stride 2 is bi-threading's even and odd rows (Zhou et al., §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    next: Row,
    end: Row,
    stride: Row,
}

impl Rows {
    /// All rows of a range.
    #[must_use]
    pub const fn range(rows: core::ops::Range<Row>) -> Self {
        Self { next: rows.start, end: rows.end, stride: 1 }
    }

    /// Every `stride`-th row of `0..end`, from `first`.
    ///
    /// # Panics
    /// If `stride` is zero.
    #[must_use]
    pub const fn strided(first: Row, end: Row, stride: Row) -> Self {
        assert!(stride > 0);
        Self { next: first, end, stride }
    }

    /// The row that will be started `distance` rows from now, if there is one.
    #[inline(always)]
    #[must_use]
    pub fn ahead(&self, distance: Row) -> Option<Row> {
        let row = self.next.wrapping_add(distance.wrapping_mul(self.stride));
        (row < self.end).then_some(row)
    }

    /// Leaves out the next `rows` rows.
    pub fn skip_rows(&mut self, rows: Row) {
        self.next = self.next.saturating_add(rows.saturating_mul(self.stride));
    }

    /// The next `rows` rows, or as many as are left, which then are not among these any more.
    #[must_use]
    pub fn take_rows(&mut self, rows: Row) -> Self {
        let before = self.next;
        self.skip_rows(rows);
        Self { next: before, end: self.end.min(self.next), stride: self.stride }
    }

    /// Rows left.
    #[must_use]
    pub fn left(&self) -> usize {
        (self.end.saturating_sub(self.next)).div_ceil(self.stride) as usize
    }
}

impl Iterator for Rows {
    type Item = Row;
    #[inline(always)]
    fn next(&mut self) -> Option<Row> {
        let row = self.next;
        if row < self.end {
            // Saturating: the last strided row may lie within a stride of the largest `Row`.
            self.next = row.saturating_add(self.stride);
            Some(row)
        } else {
            None
        }
    }
}
