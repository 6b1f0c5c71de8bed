//! A B-tree of pages, with the comparisons of a search.
//!
//! ```text
//!   root    [ 0 │ 355·458 │ … ]            an entry is the first key below it
//!   leaves  [ key key … ][ … ][ … ]        90 % full; inner pages 70 %
//! ```
//!
//! Its entries are computed from the sorted keys: pages are not materialised.

use super::layout::{File, Page, entries_of_page};
use crate::drivers::space::Space;

/// An index over sorted keys.
#[derive(Debug)]
pub(super) struct Tree {
    /// Sorted.
    keys: Vec<u32>,
    /// By level, leaves first.
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    file: File,
    /// Number of keys below an entry.
    span: usize,
    /// Entries of a page.
    fan: usize,
    entries: usize,
}

/// A page of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) level: usize,
    pub(super) number: usize,
}

impl Tree {
    pub(super) fn new(memory: &mut Space, buffers: &mut u64, keys: Vec<u32>) -> Self {
        debug_assert!(keys.is_sorted());
        let mut levels: Vec<Level> = Vec::new();
        let mut span = 1;
        loop {
            let fan = entries_of_page(if levels.is_empty() { 90 } else { 70 }) as usize;
            let entries = keys.len().div_ceil(span).max(1);
            let pages = entries.div_ceil(fan);
            let file = File::new(memory, buffers, pages as u64);
            levels.push(Level { file, span, fan, entries });
            if pages == 1 {
                return Self { keys, levels };
            }
            span *= fan;
        }
    }

    pub(super) fn root(&self) -> Node {
        Node { level: self.levels.len() - 1, number: 0 }
    }

    pub(super) fn page(&self, node: Node) -> Page {
        self.levels[node.level].file.page(node.number as u64)
    }

    /// Entries of a page.
    pub(super) fn len(&self, node: Node) -> usize {
        let level = &self.levels[node.level];
        (level.entries - node.number * level.fan).min(level.fan)
    }

    /// The key of an entry.
    pub(super) fn key(&self, node: Node, slot: usize) -> u32 {
        let level = &self.levels[node.level];
        self.keys[(node.number * level.fan + slot) * level.span]
    }

    /// The page to the right.
    pub(super) fn right(&self, node: Node) -> Option<Node> {
        let level = &self.levels[node.level];
        let next = Node { number: node.number + 1, ..node };
        (next.number * level.fan < level.entries).then_some(next)
    }

    /// The page below an entry.
    pub(super) fn child(&self, node: Node, slot: usize) -> Node {
        let number = node.number * self.levels[node.level].fan + slot;
        Node { level: node.level - 1, number }
    }

    /// The rank of a leaf entry among all keys.
    pub(super) fn rank(&self, leaf: Node, slot: usize) -> usize {
        leaf.number * self.levels[0].fan + slot
    }

    /// Binary search for the first entry of a page not less than `key`; calls `compare` for each
    /// entry that it visits.
    pub(super) fn halve(&self, node: Node, key: u32, mut compare: impl FnMut(usize)) -> usize {
        let (mut low, mut high) = (0, self.len(node));
        while low < high {
            let middle = low.midpoint(high);
            compare(middle);
            match self.key(node, middle) < key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(keys: Vec<u32>) -> Tree {
        Tree::new(&mut Space::new(), &mut 0, keys)
    }

    /// Searches for the first entry not less than the key, as `_bt_search` does.
    fn found(tree: &Tree, key: u32) -> usize {
        let mut node = tree.root();
        loop {
            let slot = tree.halve(node, key, |_| ());
            if node.level == 0 {
                return tree.rank(node, slot);
            }
            node = tree.child(node, slot.saturating_sub(1));
        }
    }

    #[test]
    fn a_search_ends_where_a_sorted_list_says() {
        for len in [1_u32, 457, 458, 459, 200_000] {
            let keys: Vec<u32> = (0..len).map(|at| at / 3 * 2).collect();
            let tree = tree(keys.clone());
            for key in (0..len).step_by(len as usize / 97 + 1).chain([len * 2]) {
                assert_eq!(found(&tree, key), keys.partition_point(|one| *one < key), "{len}");
            }
        }
    }

    /// 150,000 keys: 328 leaves below one root, as 458 and 355 entries of a page make it.
    #[test]
    fn pages_hold_what_their_bytes_allow() {
        let tree = tree((0..150_000).collect());
        assert_eq!(tree.root(), Node { level: 1, number: 0 });
        assert_eq!(tree.len(tree.root()), 328);
        assert_eq!(tree.len(Node { level: 0, number: 0 }), 458);
        assert_eq!(tree.len(Node { level: 0, number: 327 }), 150_000 - 327 * 458);
        assert_eq!(tree.right(Node { level: 0, number: 327 }), None);
    }
}
