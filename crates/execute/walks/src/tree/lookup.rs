//! Index nested-loop join: one descent of the tree for every outer record.
//!
//! A step is a node. The upper levels that stay in cache can be walked at once when a row starts:
//! a miss that does not happen needs no step of its own (Zhou & Ross, VLDB 2003, on the buffering
//! of accesses to trees; here the levels are simply few and hot).

use bytemuck::{Pod, Zeroable};

use super::node::{self, Node};
use super::{Search, Tree};
use crate::memory::{Branch, Memory};
use crate::place::Place;
use crate::walk::{Row, Sink, Walk};
use crate::work_ahead::Preloadable;

/// A record of the outer table: 64 bytes, as the papers' rows.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct KeyedRecord {
    /// Join key.
    pub key: f32,
    /// Everything else the query carries along.
    pub payload: [u32; 15],
}

const _: () = assert!(size_of::<KeyedRecord>() == 64);

/// The outer side of the join: where a row's key and RID come from (Zhou et al., §5.1).
pub trait Outer: Copy {
    /// Rows of the stream.
    fn rows(&self) -> usize;
    /// The record to be dereferenced for the key, if there is one.
    fn input(&self, row: Row) -> Option<Place>;
    /// Key and RID of a row.
    fn probe<M: Memory>(&self, row: Row, memory: &mut M) -> (f32, u32);
}

/// Contiguous (key, RID) pairs with keys in any order.
#[derive(Debug, Clone, Copy)]
pub struct Clustered<'a>(pub &'a [(f32, u32)]);

impl Outer for Clustered<'_> {
    fn rows(&self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn input(&self, _: Row) -> Option<Place> {
        None
    }
    #[inline(always)]
    fn probe<M: Memory>(&self, row: Row, memory: &mut M) -> (f32, u32) {
        *memory.read_hot(&self.0[row as usize])
    }
}

/// RIDs in any order, each dereferenced for its key.
#[derive(Debug, Clone, Copy)]
pub struct Unclustered<'a> {
    /// The stream.
    pub rids: &'a [u32],
    /// The records that the RIDs name.
    pub records: &'a [KeyedRecord],
    /// Whether a row's record is announced before it is read, as a stage of its own. Zhou et al.
    /// (2005, §5) have none: their main thread reads it when it starts a probe.
    pub row_stage: bool,
}

impl Outer for Unclustered<'_> {
    fn rows(&self) -> usize {
        self.rids.len()
    }
    #[inline(always)]
    fn input(&self, row: Row) -> Option<Place> {
        self.row_stage.then(|| Place::of(&self.records[self.rids[row as usize] as usize]))
    }
    #[inline(always)]
    fn probe<M: Memory>(&self, row: Row, memory: &mut M) -> (f32, u32) {
        let rid = *memory.read_hot(&self.rids[row as usize]);
        (memory.read(&self.records[rid as usize]).key, rid)
    }
}

/// Looks every row of the outer stream up; a hit is a pair (outer RID, inner RID).
#[derive(Clone, Copy)]
pub struct Lookup<'a, N, O, S> {
    tree: &'a Tree<N>,
    outer: O,
    search: S,
    levels_at_once: usize,
}

impl<'a, N: Node, O: Outer, S: Search> Lookup<'a, N, O, S> {
    /// A step for every level.
    #[must_use]
    pub fn new(tree: &'a Tree<N>, outer: O, search: S) -> Self {
        Self { tree, outer, search, levels_at_once: 0 }
    }

    /// Walks the upper levels that fit in `budget_bytes` at once when a row starts.
    #[must_use]
    pub fn upper_levels_within(self, budget_bytes: usize) -> Self {
        Self { levels_at_once: self.tree.levels_within(budget_bytes), ..self }
    }

    /// Levels walked at once.
    #[must_use]
    pub fn levels_at_once(&self) -> usize {
        self.levels_at_once
    }

    #[inline(always)]
    fn child<M: Memory>(&self, node: &N, key: f32, memory: &mut M) -> u32 {
        node::group(node) + self.search.child(node, key, memory) * node::units::<N>() as u32
    }
}

/// A lookup between two nodes: the paper's slot state.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    key: f32,
    row: Row,
    rid: u32,
    /// Offset of the node asked for; in a leaf, plus the first slot not yet looked at.
    at: u32,
}

impl<N: Node, O: Outer, S: Search> Walk for Lookup<'_, N, O, S> {
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
        let mut at = 0;
        for _ in 0..self.levels_at_once {
            let node = memory.read_hot(self.tree.at(at));
            at = self.child(node, key, memory);
        }
        (Cursor { key, row, rid, at }, Place::of(self.tree.at(at)))
    }

    #[inline(always)]
    fn step<M: Memory, K: Sink<Self::Hit>>(
        &mut self,
        cursor: &mut Cursor,
        memory: &mut M,
        sink: &mut K,
    ) -> Option<Place> {
        let node = memory.read(self.tree.at(cursor.at));
        if memory.decided(Branch::Inner, !self.tree.is_leaf(cursor.at)) {
            cursor.at = self.child(node, cursor.key, memory);
            return Some(Place::of(self.tree.at(cursor.at)));
        }
        let from = cursor.at % node::units::<N>() as u32;
        let equal = self.search.equal(node, cursor.key, memory) >> from << from;
        if !memory.decided(Branch::Found, equal != 0) {
            return None;
        }
        let slot = equal.trailing_zeros();
        sink.emit(cursor.row, (cursor.rid, node::rid(node, slot)));
        if equal & (equal - 1) != 0 {
            // The same leaf again: one hit a step.
            cursor.at += slot + 1 - from;
        } else if node::goes_on(node, slot) {
            cursor.at += node::units::<N>() as u32 - from;
        } else {
            return None;
        }
        Some(Place::of(self.tree.at(cursor.at)))
    }
}

// SAFETY: the tree's nodes are borrowed, and immutable, for `'a`; pairs in memory order are
// not a place at all.
unsafe impl<N: Node, S: Search> Preloadable for Lookup<'_, N, Clustered<'_>, S> {
    const BLOCK_BYTES: usize = size_of::<N>();
}
// SAFETY: as above; the records are borrowed too.
unsafe impl<N: Node, S: Search> Preloadable for Lookup<'_, N, Unclustered<'_>, S> {
    const BLOCK_BYTES: usize = size_of::<N>();
}
