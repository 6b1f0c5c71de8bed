//! References split into stages: the paper's counter-example to entries of several references.
//!
//! ```text
//! together   ask for p, q, r ─────────────────────► use them
//! apart      ask for p ──► ask for q ──► ask for r ──► use them
//! ```
//!
//! A statement `*p = *q + *r` can be divided into stages of one reference each. But "by the time
//! the operation is executed, a relatively long time has passed since the first elements were
//! preloaded, and they may have since been evicted" (Zhou et al., VLDB 2005, §4.1); the paper saw
//! that, and keeps references that are available together in one stage. [`SplitReferences`] is any
//! walk with its references asked for one at a time, so that the effect can be measured against
//! the walk itself.
//!
//! A step then reads places that older steps asked for, which is the point, and which law 1 of
//! [`Walk`] forbids: this is a walk for that measurement and for no other use.

use crate::memory::Memory;
use crate::place::{Intent, Place, References};
use crate::walk::{Row, Sink, Walk};
use crate::work_ahead::Preloadable;

/// A walk that asks for one place at a time.
#[derive(Debug, Clone, Copy)]
pub struct SplitReferences<W>(pub W);

/// A row of the walk inside, and how many of its references have been requested.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<C, A> {
    inner: C,
    asks: A,
    requested: usize,
}

impl<C, A: References> Cursor<C, A> {
    /// The next of the references, if any is left.
    #[inline(always)]
    fn next(&mut self) -> Option<Place> {
        let (wanted, mut at, mut next) = (self.requested, 0, None);
        self.asks.each(|place| {
            if at == wanted {
                next = Some(place);
            }
            at += 1;
        });
        self.requested += 1;
        next
    }
}

impl<W: Walk> Walk for SplitReferences<W> {
    const INTENT: Intent = W::INTENT;
    type Cursor = Cursor<W::Cursor, W::Asks>;
    type Hit = W::Hit;
    type Asks = Place;

    #[inline(always)]
    fn input(&self, row: Row) -> Option<Place> {
        self.0.input(row)
    }

    #[inline(always)]
    fn start<M: Memory>(&mut self, row: Row, memory: &mut M) -> (Self::Cursor, Place) {
        const { assert!(W::Asks::LEAST > 0) };
        let (inner, asks) = self.0.start(row, memory);
        let mut cursor = Cursor { inner, asks, requested: 0 };
        let first = cursor.next().expect("a step asks for a place at least");
        (cursor, first)
    }

    #[inline(always)]
    fn step<M: Memory, S: Sink<W::Hit>>(
        &mut self,
        cursor: &mut Self::Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Place> {
        if let Some(place) = cursor.next() {
            return Some(place);
        }
        cursor.asks = self.0.step(&mut cursor.inner, memory, sink)?;
        cursor.requested = 0;
        cursor.next()
    }
}

// SAFETY: its places are those of the walk inside.
unsafe impl<W: Preloadable> Preloadable for SplitReferences<W> {}

#[cfg(test)]
mod tests {
    use workahead_machine::pages::Pages;

    use super::*;
    use crate::join_index::{Draft, JoinIndex, LeftOuter, Pairs};
    use crate::materialise::Materialise;
    use crate::memory::Direct;
    use crate::random::Random;
    use crate::record::{JoinedRecord, Record, drawn_table};
    use crate::schedule::every::under_every_schedule;
    use crate::walk::Rows;

    fn with_pairs(check: impl FnOnce(&Pairs, JoinIndex<'_, LeftOuter>)) {
        let random = &mut Random::of(4);
        let left = drawn_table(200, 200, random, Pages::Small).unwrap();
        let right = drawn_table(200, 200, random, Pages::Small).unwrap();
        let draft = Draft { pairs: 500, left_rows: 200, right_rows: 200, ..Draft::PAPER_OUTER };
        let pairs = draft.draw(random, Pages::Small).unwrap();
        let mut output = vec![JoinedRecord { probe: Record::NULL, build: Record::NULL }; 500];
        let (_, destination) = Materialise::announced(&mut output);
        check(&pairs, JoinIndex::new(&pairs, &left, &right, destination));
    }

    #[test]
    fn the_answer_is_that_of_the_walk_inside() {
        with_pairs(|pairs, walk| {
            under_every_schedule(
                || SplitReferences(walk),
                Rows::range(0..500),
                50,
                |name, hits| {
                    assert_eq!(hits.len(), 500, "{name}");
                    for ((_, pair), [left, right]) in hits.iter().zip(pairs.all()) {
                        let found = pair.right.map_or(u32::MAX, |right| right.row);
                        assert_eq!((pair.left.row, found), (*left, *right), "{name}");
                    }
                },
            );
        });
    }

    #[test]
    fn each_reference_is_asked_for_by_a_step_of_its_own_in_order() {
        with_pairs(|_, mut walk| {
            let mut apart = SplitReferences(walk);
            for row in 0..500 {
                let (_, together) = walk.start(row, &mut Direct);
                let mut expected = Vec::new();
                together.each(|place| expected.push(place));
                let (mut cursor, first) = apart.start(row, &mut Direct);
                let mut requested = vec![first];
                let mut hits = Vec::new();
                while let Some(place) = apart.step(&mut cursor, &mut Direct, &mut hits) {
                    assert!(hits.is_empty(), "nothing is used before all is there");
                    requested.push(place);
                }
                assert_eq!((requested, hits.len()), (expected, 1));
            }
        });
    }
}
