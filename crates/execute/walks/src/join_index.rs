//! Join index: rows that join, written down beforehand, are fetched and put together.
//!
//! ```text
//! index     (left, right) (left, null) (left, right) …      read in order
//!              │     └──────────────────┐
//!              ▼                        ▼
//! tables    64-byte record           64-byte record         anywhere in memory
//!              └───────────┬────────────┘
//!                          ▼
//! output               128-byte record                      the slot of the pair
//! ```
//!
//! Valduriez, *Join Indices*, TODS 12(2), 1987; used as in Zhou et al., VLDB 2005, appendix A.1:
//! one stage of three references, both inputs and the output, all known once the pair is read. The
//! left outer variant has pairs without a right row and asks for two references there, which makes
//! it the paper's case of entries with `m = 2` and `M = 3` (§4.1).
//!
//! The output's place is requested like the inputs', to be read: one thread then owns the line and
//! its store costs no more, and a helper's load takes no line away from its writer for long. What
//! is written lies at the slot that was requested, so the output keeps the order of the index under
//! every schedule.

mod pairs;

#[cfg(test)]
mod tests;

use std::marker::PhantomData;

use crate::materialise::{Destination, Materialise};
use crate::memory::Memory;
use crate::place::{Place, References};
use crate::record::{JoinedRecord, OneLine, Payload, Record};
use crate::walk::{Row, Sink, Walk};

pub use pairs::{Draft, NULL, Order, Pairs, UnmatchedRows};

/// Whether pairs without a right row occur: how many references an entry has.
pub trait Variant: Copy + sealed::Sealed {
    /// Whether a right row may be missing.
    const OUTER: bool;
}

mod sealed {
    pub trait Sealed {}
}

/// Every pair has a right row: three references.
#[derive(Debug, Clone, Copy)]
pub struct Inner;
/// Some pairs have none: two or three references.
#[derive(Debug, Clone, Copy)]
pub struct LeftOuter;

impl sealed::Sealed for Inner {}
impl sealed::Sealed for LeftOuter {}

impl Variant for Inner {
    const OUTER: bool = false;
}

impl Variant for LeftOuter {
    const OUTER: bool = true;
}

/// Requests of a pair: its rows, a reference for each of their lines, and the row of the output,
/// one reference however long it is, since nobody waits for its stores.
#[derive(Debug, Clone, Copy)]
pub struct Asks<V, P> {
    left: Place,
    /// The output again where there is none.
    right: Place,
    output: Place,
    has_right: bool,
    _walk: PhantomData<(V, P)>,
}

impl<V: Variant, P: Payload> References for Asks<V, P> {
    const LEAST: usize = if V::OUTER { P::RECORD_LINES + 1 } else { Self::MOST };
    const MOST: usize = 2 * P::RECORD_LINES + 1;
    type Input = Place;

    #[inline(always)]
    fn each(&self, mut visit: impl FnMut(Place)) {
        P::Asks::from(self.left).each(&mut visit);
        if !V::OUTER || self.has_right {
            P::Asks::from(self.right).each(&mut visit);
        }
        visit(self.output);
    }

    #[inline(always)]
    fn count(&self) -> usize {
        if !V::OUTER || self.has_right { Self::MOST } else { Self::LEAST }
    }
}

/// The join of two tables by the pairs of an index.
#[derive(Debug, Clone, Copy)]
pub struct JoinIndex<'a, V, P: Payload = OneLine> {
    pairs: &'a [[u32; 2]],
    left: &'a [Record<P>],
    right: &'a [Record<P>],
    output: Destination<'a, JoinedRecord<P>>,
    /// Output slot of the pair to be started next.
    next_slot: u32,
    _variant: PhantomData<V>,
}

impl<'a, V: Variant, P: Payload> JoinIndex<'a, V, P> {
    /// Row `i` is pair `i` of `pairs`, which name rows of `left` and `right`. The `k`-th row
    /// started is written to slot `k` of `output`, and from slot 0 again when it is full: an
    /// output as long as the pairs holds all of the result, a shorter one must hold at least the
    /// rows in flight. Each thread has a walk and an output of its own.
    ///
    /// # Panics
    /// If an [`Inner`] join is given pairs without a right row. The walk panics where a pair names
    /// a row beyond its table.
    #[must_use]
    pub fn new(
        pairs: &'a Pairs,
        left: &'a [Record<P>],
        right: &'a [Record<P>],
        output: Destination<'a, JoinedRecord<P>>,
    ) -> Self {
        assert!(V::OUTER || pairs.nulls() == 0, "an inner join index has no null: use LeftOuter");
        Self { pairs: pairs.all(), left, right, output, next_slot: 0, _variant: PhantomData }
    }

    #[inline(always)]
    fn right(&self, rid: u32) -> Option<&'a Record<P>> {
        if V::OUTER && rid == NULL { None } else { Some(&self.right[rid as usize]) }
    }
}

/// A pair whose rows were requested.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    row: Row,
    left: u32,
    right: u32,
    slot: u32,
}

/// Two rows that join, or a left row alone, and the slot of the output that was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair<'a, P: Payload = OneLine> {
    /// From the left table.
    pub left: &'a Record<P>,
    /// From the right table, if the pair has one.
    pub right: Option<&'a Record<P>>,
    /// Position in the output.
    pub slot: u32,
}

impl<'a, V: Variant, P: Payload> Walk for JoinIndex<'a, V, P> {
    type Cursor = Cursor;
    type Hit = Pair<'a, P>;
    type Asks = Asks<V, P>;

    #[inline(always)]
    fn start<M: Memory>(&mut self, row: Row, memory: &mut M) -> (Cursor, Self::Asks) {
        let [left, right] = *memory.read_hot(&self.pairs[row as usize]);
        let slot = self.next_slot;
        self.next_slot = self.output.after(slot);
        let output = self.output.place(slot);
        let place = self.right(right).map(Place::of);
        let asks = Asks {
            left: Place::of(&self.left[left as usize]),
            right: place.unwrap_or(output),
            output,
            has_right: place.is_some(),
            _walk: PhantomData,
        };
        (Cursor { row, left, right, slot }, asks)
    }

    #[inline(always)]
    fn step<M: Memory, S: Sink<Pair<'a, P>>>(
        &mut self,
        cursor: &mut Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Self::Asks> {
        let &mut Cursor { row, left, right, slot } = cursor;
        let left = memory.read(&self.left[left as usize]);
        let right = self.right(right).map(|right| memory.read(right));
        sink.emit(row, Pair { left, right, slot });
        None
    }
}

// SAFETY: both tables are borrowed, and immutable, for `'a`; the output is borrowed for `'a` by the
// sink that its destination comes from.
unsafe impl<V: Variant, P: Payload> crate::work_ahead::Preloadable for JoinIndex<'_, V, P> {}

impl<P: Payload> Sink<Pair<'_, P>> for Materialise<'_, JoinedRecord<P>> {
    #[inline(always)]
    fn emit(&mut self, _: Row, Pair { left, right, slot }: Pair<'_, P>) {
        let right = right.unwrap_or(P::NULL);
        *self.slot(slot, left.row, right.row) = JoinedRecord { probe: *left, build: *right };
    }
}
