//! CSB+-tree: a B+-tree whose nodes spend their lines on keys.
//!
//! ```text
//!  level 0            [ s0 s1 … | group ]            one offset for all children
//!                          │
//!  level 1    [ … ][ … ][ … ]                        children of a node are contiguous:
//!                     │                              child = group + position
//!  leaves     [keys | rids][keys | rids] …           all leaves contiguous, in key order
//! ```
//!
//! Rao & Ross, *Making B+-Trees Cache Conscious in Main Memory*, SIGMOD 2000; used as in Zhou et
//! al., VLDB 2005, §5.1 and §6.1: 32-bit floating-point keys, 32-bit offsets, bulk-loaded, nodes up
//! to 75 % full, probed once per outer record of an index nested-loop join.
//!
//! Bulk-loaded and immutable: each level is one run of nodes, root first. Keys may repeat: every
//! pair of an equal key is found, leaf by leaf to the right. A separator is the largest key below
//! its child, so that a search comes down left of the first pair of its key.

mod bulk;
mod compare;
mod lookup;
mod node;
mod search;

#[cfg(test)]
mod tests;

use workahead_machine::pages::{AllocationError, PageBuffer};

pub use compare::Compare;
pub use lookup::{Clustered, Cursor, KeyedRecord, Lookup, Outer, Unclustered};
pub use node::{Node, Node64, Node128};
pub use search::{Binary, Search, Vector};

/// How full a bulk load makes its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill(u8);

impl Fill {
    /// The paper's: up to three quarters.
    pub const PAPER: Self = Self(75);

    /// A share in percent.
    ///
    /// # Errors
    /// Outside 50 to 100.
    pub fn percent(share: u8) -> Result<Self, TreeError> {
        if (50..=100).contains(&share) { Ok(Self(share)) } else { Err(TreeError::Fill(share)) }
    }

    /// Entries of a node that holds at most `most`.
    const fn of(self, most: usize) -> usize {
        most * self.0 as usize / 100
    }
}

/// A tree could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// No memory.
    #[error(transparent)]
    Memory(#[from] AllocationError),
    /// A key that has no place in the order.
    #[error("the key at position {0} is not a number: leave such rows out of the index")]
    NotANumber(usize),
    /// Keys out of order.
    #[error("the key at position {0} is smaller than the one before it: sort the pairs by key")]
    Unsorted(usize),
    /// Beyond 32-bit offsets.
    #[error("{0} keys are more than 32-bit offsets can reach: split the index")]
    TooLarge(usize),
    /// A node of less than half its keys is not a B+-tree node.
    #[error("nodes cannot be {0} % full: choose 50 to 100")]
    Fill(u8),
}

/// A run of nodes, all equally far from the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// First node, counted over the whole tree.
    pub first: usize,
    /// Nodes.
    pub nodes: usize,
}

/// A bulk-loaded CSB+-tree over nodes of one size.
pub struct Tree<N> {
    nodes: PageBuffer<N>,
    /// Sysroot first, leaves last.
    levels: Vec<Level>,
    pairs: usize,
    /// Offset of the first leaf, in units: an offset below it is an inner node.
    leaves: u32,
}

impl<N: Node> Tree<N> {
    /// Levels from root to leaf, both counted.
    #[must_use]
    pub fn height(&self) -> usize {
        self.levels.len()
    }

    /// The levels, root first.
    #[must_use]
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// (key, RID) pairs.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// Bytes of the nodes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.nodes.bytes()
    }

    /// Upper levels that together fit in `budget_bytes`; never the leaves.
    #[must_use]
    pub fn levels_within(&self, budget_bytes: usize) -> usize {
        let inner = &self.levels[..self.height() - 1];
        inner
            .iter()
            .take_while(|level| (level.first + level.nodes) * N::BYTES <= budget_bytes)
            .count()
    }

    /// The node at an offset; a leaf's slot in the low bits is ignored.
    #[inline(always)]
    fn at(&self, offset: u32) -> &N {
        &self.nodes[offset as usize / node::units::<N>()]
    }

    /// Whether an offset names a leaf.
    #[inline(always)]
    fn is_leaf(&self, offset: u32) -> bool {
        offset >= self.leaves
    }
}
