//! Bulk load: leaves in key order, then level by level the nodes above.

use alloc::vec::Vec;

use super::nodes::{Kind, NO_GROUP, Node, Nodes};
use super::shape::Shape;

impl<K: Ord + Clone, V> Nodes<K, V> {
    /// Fills an empty tree from entries in ascending order without repetition, `fill` to a node.
    /// Gives its root, the inner nodes above a leaf, and how many entries there were.
    ///
    /// # Panics
    /// If a key is not greater than the one before.
    pub(super) fn load(
        &mut self,
        entries: impl Iterator<Item = (K, V)>,
        fill: usize,
    ) -> (Node, u8, usize) {
        let children = Shape::<K, V>::CHILDREN;
        // Nodes of a group, which is as full as its nodes are.
        let group_nodes = (children * fill).div_ceil(Shape::<K, V>::MOST).clamp(2, children);
        self.reserve(Kind::Leaf, entries.size_hint().0.div_ceil(fill * group_nodes) + 1);
        // Of every group of the level: its first key, and how many nodes it has.
        let mut level: Vec<(Option<K>, u32, Vec<K>)> = Vec::new();
        let mut leaf = Node::first(NO_GROUP);
        let mut previous: Option<K> = None;
        let mut len = 0;
        for (key, value) in entries {
            assert!(previous.as_ref().is_none_or(|before| *before < key), "keys ascend");
            if leaf.group == NO_GROUP || usize::from(self.head(Kind::Leaf, leaf).len) == fill {
                match level.last_mut() {
                    Some((_, _, separators)) if usize::from(leaf.child) + 1 < group_nodes => {
                        leaf.child += 1;
                        separators.push(key.clone());
                        self.head_mut(Kind::Leaf, Node::first(leaf.group)).leaves += 1;
                    }
                    _ => {
                        let group = self.group(Kind::Leaf);
                        if leaf.group != NO_GROUP {
                            self.head_mut(Kind::Leaf, Node::first(leaf.group)).group = group;
                        }
                        leaf = Node::first(group);
                        self.head_mut(Kind::Leaf, leaf).leaves = 1;
                        level.push((Some(key.clone()), group, Vec::new()));
                    }
                }
            }
            let at = usize::from(self.head(Kind::Leaf, leaf).len);
            previous = Some(key.clone());
            self.insert_entry(leaf, at, key, value);
            self.fill(Kind::Leaf, leaf);
            len += 1;
        }
        if level.is_empty() {
            let group = self.group(Kind::Leaf);
            self.head_mut(Kind::Leaf, Node::first(group)).leaves = 1;
            return (Node::first(group), 0, 0);
        }
        let mut height = 0;
        // A group of one node needs no node above it; any other is the children of one.
        while level.len() > 1 || !level[0].2.is_empty() {
            self.reserve(Kind::Inner, level.len().div_ceil(group_nodes));
            let mut above: Vec<(Option<K>, u32, Vec<K>)> = Vec::new();
            let mut at = 0;
            for (first, children, separators) in level {
                match above.last_mut() {
                    Some((_, _, separators)) if at + 1 < group_nodes => {
                        at += 1;
                        separators.extend(first);
                    }
                    _ => {
                        at = 0;
                        above.push((first, self.group(Kind::Inner), Vec::new()));
                    }
                }
                let group = above.last().map_or(NO_GROUP, |(_, group, _)| *group);
                let node = Node { group, child: at as u8 };
                self.head_mut(Kind::Inner, node).group = children;
                for (at, separator) in separators.into_iter().enumerate() {
                    self.insert_separator(node, at, separator);
                }
                self.fill(Kind::Inner, node);
            }
            level = above;
            height += 1;
        }
        (Node::first(level[0].1), height, len)
    }
}
