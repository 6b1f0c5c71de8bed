//! Index nested-loop join: a look-up for every row of an outer stream (Zhou et al., VLDB 2005,
//! §5.1), as a walk that the studies drive by every technique.

use core::ops::ControlFlow;

use workahead_walks::memory::Branch;
use workahead_walks::tree::{Clustered, Outer, Unclustered};
use workahead_walks::work_ahead::Preloadable;
use workahead_walks::{Memory, Place, Row, Sink, Walk};

use super::OrderedIndex;
use super::lookup::{Descent, Stop};

/// Looks every row of an outer stream up; a hit is a pair (outer RID, inner RID).
#[derive(Clone, Copy)]
pub struct NestedLoop<'t, O> {
    descent: Descent<'t, u32, u32>,
    outer: O,
}

impl OrderedIndex<u32, u32> {
    /// The join of an outer stream with the RIDs of an index by the *bits* of keys, which for
    /// numbers that are not negative are in the order of the numbers.
    pub fn nested_loop<O: Outer>(&self, outer: O) -> NestedLoop<'_, O> {
        NestedLoop { descent: self.descent(), outer }
    }
}

impl<O> NestedLoop<'_, O> {
    /// Walks every level by a step of its own, as the paper does: none is taken for cached.
    #[must_use]
    pub fn stepwise(mut self) -> Self {
        self.descent.hot = 0;
        self
    }
}

/// A look-up under way.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    key: u32,
    rid: u32,
    row: Row,
    stop: Stop,
}

impl<O: Outer> Walk for NestedLoop<'_, O> {
    type Cursor = Cursor;
    type Hit = (u32, u32);
    type Asks = Place;

    #[inline(always)]
    fn input(&self, row: Row) -> Option<Place> {
        self.outer.input(row)
    }

    #[inline(always)]
    fn start<M: Memory>(&mut self, row: Row, memory: &mut M) -> (Cursor, Place) {
        let (key, rid) = self.outer.probe(row, memory);
        let key = key.to_bits();
        let (stop, place) = self.descent.start(&key, memory);
        (Cursor { key, rid, row, stop }, place)
    }

    #[inline(always)]
    fn step<M: Memory, S: Sink<Self::Hit>>(
        &mut self,
        cursor: &mut Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Place> {
        match self.descent.step(&mut cursor.stop, &cursor.key, memory) {
            ControlFlow::Continue(place) => Some(place),
            ControlFlow::Break(position) => {
                let found = self.descent.nodes.at(position, &cursor.key);
                if memory.decided(Branch::Found, found.is_some())
                    && let Some(inner) = found
                {
                    sink.emit(cursor.row, (cursor.rid, *memory.read(inner)));
                }
                None
            }
        }
    }
}

/// A leaf is two lines: keys, then RIDs.
const LEAF_BYTES: usize = 128;

// SAFETY: nodes are borrowed, and nobody changes or frees them meanwhile; pairs in memory order are
// not a place at all.
unsafe impl Preloadable for NestedLoop<'_, Clustered<'_>> {
    const BLOCK_BYTES: usize = LEAF_BYTES;
}
// SAFETY: as above; the records are borrowed too.
unsafe impl Preloadable for NestedLoop<'_, Unclustered<'_>> {
    const BLOCK_BYTES: usize = LEAF_BYTES;
}

#[cfg(test)]
mod tests {
    use workahead_walks::tree::KeyedRecord;
    use workahead_walks::{Rows, conformance};

    use super::*;
    use crate::Pages;

    #[test]
    #[cfg_attr(miri, ignore = "hundreds of schedules")]
    fn the_walk_keeps_the_laws() {
        let entries = (0..2000_u32).map(|key| ((2 * key) as f32, key));
        let index = entries.map(|(key, rid)| (key.to_bits(), rid));
        let index = OrderedIndex::from_sorted(index, Pages::Usual);
        let key = |rid: u32| (rid * 7919 % 4001) as f32;
        let records: Vec<KeyedRecord> =
            (0..900).map(|rid| KeyedRecord { key: key(rid), payload: [0; 15] }).collect();
        let rids: Vec<u32> = (0..900).rev().collect();
        let pairs: Vec<(f32, u32)> = rids.iter().map(|rid| (key(*rid), *rid)).collect();
        // Every even number below 4000 is there, and half of it is its RID.
        let expected: Vec<(Row, (u32, u32))> = (0..)
            .zip(&pairs)
            .filter(|(_, (key, _))| *key < 4000.0 && key % 2.0 == 0.0)
            .map(|(row, (key, rid))| (row, (*rid, *key as u32 / 2)))
            .collect();
        assert!(!expected.is_empty());
        let rows = || Rows::range(0..900);
        let hits = |walk: NestedLoop<'_, _>, found| {
            let _: Unclustered<'_> = walk.outer;
            conformance::hits(&expected, |hit: (u32, u32)| hit)(walk, found)
        };
        let outer = Unclustered { rids: &rids, records: &records, row_stage: true };
        conformance::check(|| index.nested_loop(outer), rows(), hits).unwrap();
        conformance::check(|| index.nested_loop(outer).stepwise(), rows(), hits).unwrap();
        let hits = conformance::hits(&expected, |hit: (u32, u32)| hit);
        conformance::check(|| index.nested_loop(Clustered(&pairs)), rows(), hits).unwrap();
    }
}
