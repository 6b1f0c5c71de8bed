//! Bulk load: leaves from sorted pairs, then each level from the one below.
//!
//! ```text
//! nodes of each level   ceil(children / most a node may have), upwards until one is left
//! children of node i    from i·c/n to (i+1)·c/n: no node is left nearly empty at the end
//! ```

use std::ops::Range;

use workahead_machine::pages::{PageBuffer, Pages};

use super::node::{self, Node, units};
use super::{Fill, Level, Tree, TreeError};

impl<N: Node> Tree<N> {
    /// Loads pairs sorted by key; equal keys keep the order given.
    ///
    /// # Errors
    /// For keys that are unsorted or not numbers, more than 32-bit offsets can reach, or too
    /// little memory.
    pub fn bulk_load(pairs: &[(f32, u32)], fill: Fill, pages: Pages) -> Result<Self, TreeError> {
        check_order(pairs)?;
        let levels = levels_of::<N>(pairs.len(), fill);
        let last = levels.last().map_or(0, |level| level.first + level.nodes);
        if last * units::<N>() > u32::MAX as usize {
            return Err(TreeError::TooLarge(pairs.len()));
        }
        let mut nodes = PageBuffer::<N>::zeroed(last, pages)?;
        let leaves = levels[levels.len() - 1];
        fill_leaves(&mut nodes[leaves.first..last], pairs);
        // The largest key below each node of the level last filled: the separators of the next.
        let mut largest: Vec<f32> = (0..leaves.nodes)
            .map(|i| last_key(pairs, share(i, leaves.nodes, pairs.len())))
            .collect();
        for pair in levels.windows(2).rev() {
            let (level, below) = (pair[0], pair[1]);
            for i in 0..level.nodes {
                let children = share(i, level.nodes, below.nodes);
                let group = (below.first + children.start) * units::<N>();
                let separators = largest[children.start..children.end - 1].iter().copied();
                nodes[level.first + i] = node::inner(separators, group as u32);
            }
            largest = (0..level.nodes)
                .map(|i| largest[share(i, level.nodes, below.nodes).end - 1])
                .collect();
        }
        let leaves = (leaves.first * units::<N>()) as u32;
        Ok(Self { nodes, levels, pairs: pairs.len(), leaves })
    }
}

fn check_order(pairs: &[(f32, u32)]) -> Result<(), TreeError> {
    let mut before = f32::NEG_INFINITY;
    for (position, &(key, _)) in pairs.iter().enumerate() {
        if key.is_nan() {
            return Err(TreeError::NotANumber(position));
        }
        if key < before {
            return Err(TreeError::Unsorted(position));
        }
        before = key;
    }
    Ok(())
}

/// The levels, root first; an empty tree is one empty leaf.
fn levels_of<N: Node>(pairs: usize, fill: Fill) -> Vec<Level> {
    const { assert!(Fill(50).of(N::LEAF_PAIRS) >= 2 && Fill(50).of(N::INNER_KEYS) >= 2) };
    let mut counts = vec![pairs.div_ceil(fill.of(N::LEAF_PAIRS)).max(1)];
    while let Some(&count @ 2..) = counts.last() {
        counts.push(count.div_ceil(fill.of(N::INNER_KEYS) + 1));
    }
    let mut first = 0;
    let mut levels = Vec::with_capacity(counts.len());
    for &nodes in counts.iter().rev() {
        levels.push(Level { first, nodes });
        first += nodes;
    }
    levels
}

/// The part of `whole` entries that node `i` of `nodes` holds.
fn share(i: usize, nodes: usize, whole: usize) -> Range<usize> {
    i * whole / nodes..(i + 1) * whole / nodes
}

fn fill_leaves<N: Node>(leaves: &mut [N], pairs: &[(f32, u32)]) {
    let count = leaves.len();
    for (i, leaf) in leaves.iter_mut().enumerate() {
        let held = share(i, count, pairs.len());
        let next = pairs.get(held.end);
        let continues = next.is_some_and(|next| pairs[held.end - 1].0 == next.0);
        *leaf = node::leaf(&pairs[held], continues);
    }
}

fn last_key(pairs: &[(f32, u32)], held: Range<usize>) -> f32 {
    // Only the one leaf of an empty tree holds nothing, and nothing is above it.
    pairs[held].last().map_or(f32::INFINITY, |pair| pair.0)
}
