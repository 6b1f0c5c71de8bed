//! Finding a key in a node: by binary search, or all keys at once.
//!
//! The binary search is the paper's. A node is a line or two, though, and one vector comparison
//! sees half a line: comparing every key, used or not, and counting the bits takes no branch that
//! depends on data, where a binary search mispredicts about every other comparison.

use super::compare::Compare;
use super::node::{self, Node};
use crate::memory::{Branch, Memory};

/// A way to search a node.
pub trait Search: Copy + Send + Sync {
    /// How many separators of an inner node are less than `key`: the position of the child.
    fn child<N: Node, M: Memory>(self, node: &N, key: f32, memory: &mut M) -> u32;
    /// The slots of a leaf whose keys equal `key`, one bit each.
    fn equal<N: Node, M: Memory>(self, node: &N, key: f32, memory: &mut M) -> u32;
}

/// Binary search, one key at a time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Binary;

impl Search for Binary {
    #[inline(always)]
    fn child<N: Node, M: Memory>(self, node: &N, key: f32, memory: &mut M) -> u32 {
        lower_bound(node::separators(node), key, memory) as u32
    }

    #[inline(always)]
    fn equal<N: Node, M: Memory>(self, node: &N, key: f32, memory: &mut M) -> u32 {
        let keys = node::keys(node);
        let first = lower_bound(keys, key, memory);
        let run = keys[first..].iter().take_while(|&&word| f32::from_bits(word) == key).count();
        ((1 << run) - 1) << first
    }
}

/// Position of the first key not less than `key`.
#[inline(always)]
fn lower_bound<M: Memory>(keys: &[u32], key: f32, memory: &mut M) -> usize {
    let (mut low, mut high) = (0, keys.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        if memory.decided(Branch::Less, f32::from_bits(keys[middle]) < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Every key at once.
#[derive(Debug, Clone, Copy)]
pub struct Vector<I>(pub I);

impl<I: Compare> Search for Vector<I> {
    #[inline(always)]
    fn child<N: Node, M: Memory>(self, node: &N, key: f32, _: &mut M) -> u32 {
        let mut less = 0;
        for (i, line) in node.words().as_chunks::<16>().0.iter().enumerate() {
            less |= self.0.less(line, key) << (16 * i);
        }
        (less & ((1 << N::INNER_KEYS) - 1)).count_ones()
    }

    #[inline(always)]
    fn equal<N: Node, M: Memory>(self, node: &N, key: f32, _: &mut M) -> u32 {
        let mut equal = 0;
        for (i, eight) in node.words()[..node::half::<N>()].as_chunks::<8>().0.iter().enumerate() {
            equal |= self.0.equal(eight, key) << (8 * i);
        }
        equal
    }
}
