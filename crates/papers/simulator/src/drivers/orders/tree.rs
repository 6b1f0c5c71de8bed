//! A growing CSB+-tree with the node layout of `workahead-walks`, whose own trees are loaded once.
//!
//! ```text
//!   group   [ header | node | node | … 15 ]     a node's children are one group, which moves as
//!             └ latch, version                  one: so it is what is latched
//!   inner   [ 14 keys | child group | count ]   64 bytes, as `operators::tree::node` lays them out
//!   leaf    [ 7 keys | count | 7 RIDs | - ]
//! ```
//!
//! Rao and Ross, SIGMOD 2000, "full" variant: a group has room for all nodes from the beginning. A
//! separator is the largest key below its child. Empty leaves stay.

use super::latch::Latch;

/// Most keys of an inner node.
const INNER_KEYS: usize = 14;

/// Most nodes of a group: children of a full inner node.
pub(super) const NODES: usize = INNER_KEYS + 1;

/// Most pairs of a leaf.
pub(super) const LEAF_PAIRS: usize = 7;

/// Bytes of a node, and of a group's header.
pub(super) const NODE_BYTES: u64 = 64;

/// Bytes of a group.
const GROUP_BYTES: u64 = NODE_BYTES * (NODES as u64 + 1);

/// Pairs of a leaf and nodes of a group after loading: up to three quarters (Zhou et al. 2005,
/// section 6.1).
const LOADED: (usize, usize) = (5, 11);

/// Word offsets of a node's other fields.
const CHILD: usize = 14;
const INNER_COUNT: usize = 15;
const LEAF_COUNT: usize = 7;
const RIDS: usize = 8;

/// A node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Node([u32; 16]);

/// The nodes under one parent.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Latch of all its nodes.
    pub(super) latch: Latch,
    nodes: Vec<Node>,
    /// The group to the right, for leaves.
    pub(super) next: Option<u32>,
}

/// Position of a node: its group, and its index there.
pub(super) type Place = (u32, usize);

/// The nodes from a leaf up to the root.
pub(super) type Path = Vec<Place>;

/// The tree.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) groups: Vec<Group>,
    root: u32,
    /// Inner nodes above a leaf.
    pub(super) height: usize,
    base: u64,
}

impl Node {
    /// Number of keys less than `key` of an inner node: the position of the child.
    fn child_of(&self, key: u32) -> usize {
        self.inner_keys().partition_point(|separator| *separator < key)
    }

    fn inner_keys(&self) -> &[u32] {
        &self.0[..self.0[INNER_COUNT] as usize]
    }

    fn leaf_keys(&self) -> &[u32] {
        &self.0[..self.0[LEAF_COUNT] as usize]
    }

    /// The pairs of a leaf.
    fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        self.leaf_keys().iter().zip(&self.0[RIDS..]).map(|(key, rid)| (*key, *rid))
    }

    fn leaf(pairs: &[(u32, u32)]) -> Self {
        let mut node = Self::default();
        node.0[LEAF_COUNT] = pairs.len() as u32;
        for (at, (key, rid)) in pairs.iter().enumerate() {
            (node.0[at], node.0[RIDS + at]) = (*key, *rid);
        }
        node
    }

    fn inner(keys: &[u32], child: u32) -> Self {
        let mut node = Self::default();
        node.0[..keys.len()].copy_from_slice(keys);
        (node.0[CHILD], node.0[INNER_COUNT]) = (child, keys.len() as u32);
        node
    }

    fn with_key(&self, at: usize, key: u32) -> Self {
        let mut keys = self.inner_keys().to_vec();
        keys.insert(at, key);
        Self::inner(&keys, self.0[CHILD])
    }
}

impl Tree {
    /// Builds a tree at an address from pairs in the order of their keys.
    pub(super) fn load(pairs: &[(u32, u32)], base: u64) -> Self {
        let mut tree = Self { groups: Vec::new(), root: 0, height: 0, base };
        let leaves = pairs
            .chunks(LOADED.0)
            .map(|pairs| (Node::leaf(pairs), pairs.last().map_or(0, |(key, _)| *key)));
        let mut level: Vec<(Node, u32)> = leaves.collect();
        if level.is_empty() {
            level.push((Node::default(), 0));
        }
        let mut below = None;
        while level.len() > 1 || tree.height == 0 {
            let mut above = Vec::new();
            let first = tree.groups.len();
            for nodes in level.chunks(LOADED.1) {
                let keys: Vec<u32> = nodes.iter().map(|(_, largest)| *largest).collect();
                let (last, keys) = keys.split_last().expect("chunks are not empty");
                above.push((Node::inner(keys, tree.groups.len() as u32), *last));
                let nodes = nodes.iter().map(|(node, _)| *node).collect();
                tree.groups.push(Group { nodes, ..Group::default() });
            }
            below.get_or_insert(tree.groups.len());
            for group in first..tree.groups.len() - 1 {
                tree.groups[group].next = Some(group as u32 + 1);
            }
            level = above;
            tree.height += 1;
        }
        tree.root = tree.groups.len() as u32;
        let nodes = level.iter().map(|(node, _)| *node).collect();
        tree.groups.push(Group { nodes, ..Group::default() });
        tree
    }

    /// Maximum bytes of a tree of `pairs` pairs.
    pub(super) fn bytes(pairs: usize) -> u64 {
        // LatchId the worst, every group is half full of leaves that are; and as much again above.
        (pairs as u64 / 12 + 8) * GROUP_BYTES
    }

    pub(super) fn root(&self) -> u32 {
        self.root
    }

    /// Address of a group's header.
    pub(super) fn address(&self, group: u32) -> u64 {
        self.base + u64::from(group) * GROUP_BYTES
    }

    /// Address of a node.
    pub(super) fn node_address(&self, (group, at): Place) -> u64 {
        self.address(group) + (at as u64 + 1) * NODE_BYTES
    }

    /// Whether a group has room for one more node.
    pub(super) fn has_room(&self, group: u32) -> bool {
        self.groups[group as usize].nodes.len() < NODES
    }

    /// Whether a leaf has room for one more pair.
    pub(super) fn leaf_has_room(&self, place: Place) -> bool {
        self.node(place).leaf_keys().len() < LEAF_PAIRS
    }

    fn node(&self, (group, at): Place) -> &Node {
        &self.groups[group as usize].nodes[at]
    }

    fn node_mut(&mut self, (group, at): Place) -> &mut Node {
        &mut self.groups[group as usize].nodes[at]
    }

    /// The child of an inner node for a key.
    pub(super) fn child(&self, place: Place, key: u32) -> Place {
        let node = self.node(place);
        (node.0[CHILD], node.child_of(key))
    }

    /// The first pair of a leaf with a key not less than `key`.
    pub(super) fn at_least(&self, place: Place, key: u32) -> Option<(u32, u32)> {
        self.node(place).pairs().find(|(found, _)| *found >= key)
    }

    /// The leaf to the right; the first of the next group at a group's end.
    pub(super) fn right_of(&self, (group, at): Place) -> Option<Place> {
        let here = &self.groups[group as usize];
        match at + 1 < here.nodes.len() {
            true => Some((group, at + 1)),
            false => here.next.map(|next| (next, 0)),
        }
    }

    /// Inserts a pair into its leaf, replacing one with the same key. Returns the number of moved
    /// nodes.
    pub(super) fn insert(&mut self, path: &mut Path, (key, rid): (u32, u32)) -> usize {
        let mut moved = 0;
        let exists = self.node(path[0]).leaf_keys().binary_search(&key).is_ok();
        if !exists && !self.leaf_has_room(path[0]) {
            if !self.has_room(path[0].0) {
                moved += self.split_group(path, 0);
            }
            moved += self.split_leaf(path, key);
        }
        let leaf = self.node_mut(path[0]);
        let mut pairs: Vec<(u32, u32)> = leaf.pairs().collect();
        match pairs.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => pairs[at].1 = rid,
            Err(at) => pairs.insert(at, (key, rid)),
        }
        *leaf = Node::leaf(&pairs);
        moved
    }

    /// Removes a key from its leaf: whether it was there.
    pub(super) fn remove(&mut self, place: Place, key: u32) -> bool {
        let leaf = self.node_mut(place);
        let mut pairs: Vec<(u32, u32)> = leaf.pairs().collect();
        let before = pairs.len();
        pairs.retain(|(found, _)| *found != key);
        *leaf = Node::leaf(&pairs);
        pairs.len() < before
    }

    /// Splits a leaf in a group with room.
    fn split_leaf(&mut self, path: &mut Path, key: u32) -> usize {
        let (group, at) = path[0];
        let pairs: Vec<(u32, u32)> = self.node(path[0]).pairs().collect();
        // Ascending insertions leave full leaves behind.
        let last = pairs.len() - 1;
        let middle = if key > pairs[last].0 { last } else { pairs.len() / 2 };
        let (left, right) = pairs.split_at(middle);
        *self.node_mut(path[0]) = Node::leaf(left);
        let nodes = &mut self.groups[group as usize].nodes;
        nodes.insert(at + 1, Node::leaf(right));
        let moved = nodes.len() - at;
        let separator = left[left.len() - 1].0;
        let parent = self.node_mut(path[1]);
        *parent = parent.with_key(at, separator);
        if key > separator {
            path[0].1 += 1;
        }
        moved
    }

    /// Splits a full group, and so its parent node: `depth` counts from the leaves.
    fn split_group(&mut self, path: &mut Path, depth: usize) -> usize {
        let parent = depth + 1;
        if parent + 1 == path.len() {
            let node = Node::inner(&[], self.root);
            self.root = self.groups.len() as u32;
            self.groups.push(Group { nodes: vec![node], ..Group::default() });
            self.height += 1;
            path.push((self.root, 0));
        }
        let mut moved = NODES;
        if !self.has_room(path[parent].0) {
            moved += self.split_group(path, parent);
        }
        let (group, at) = path[depth];
        let new = self.groups.len() as u32;
        let here = &mut self.groups[group as usize];
        let kept = NODES.div_ceil(2);
        let nodes = here.nodes.split_off(kept);
        let next = here.next.replace(new);
        self.groups.push(Group { nodes, next, ..Group::default() });
        let whole = *self.node(path[parent]);
        let keys = whole.inner_keys();
        *self.node_mut(path[parent]) = Node::inner(&keys[..kept - 1], group);
        let (above, position) = path[parent];
        let right = Node::inner(&keys[kept..], new);
        self.groups[above as usize].nodes.insert(position + 1, right);
        let grandparent = self.node_mut(path[parent + 1]);
        *grandparent = grandparent.with_key(position, keys[kept - 1]);
        if at >= kept {
            path[depth] = (new, at - kept);
            path[parent].1 += 1;
        }
        moved
    }

    /// The nodes from the leaf of a key up to the root.
    #[cfg(test)]
    fn path_to(&self, key: u32) -> Path {
        let mut path = vec![(self.root, 0)];
        for _ in 0..self.height {
            path.push(self.child(path[path.len() - 1], key));
        }
        path.reverse();
        path
    }

    /// All pairs, from left to right.
    pub(super) fn all(&self) -> Vec<(u32, u32)> {
        let mut at = Some((self.root, 0));
        for _ in 0..self.height {
            at = at.map(|place| self.child(place, 0));
        }
        let mut pairs = Vec::new();
        while let Some(place) = at {
            pairs.extend(self.node(place).pairs());
            at = self.right_of(place);
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The tree equals a map under any insertions and removals.
        #[test]
        fn it_is_a_map(
            loaded in proptest::collection::btree_set(0_u32..4000, 0..600),
            changes in proptest::collection::vec((0_u32..4000, any::<bool>()), 0..1500),
        ) {
            let mut oracle: BTreeMap<u32, u32> = loaded.iter().map(|key| (*key, key * 3)).collect();
            let pairs: Vec<(u32, u32)> = oracle.clone().into_iter().collect();
            let mut tree = Tree::load(&pairs, 0);
            for (key, put) in changes {
                let mut path = tree.path_to(key);
                if put {
                    tree.insert(&mut path, (key, key + 7));
                    oracle.insert(key, key + 7);
                } else {
                    let had = tree.remove(path[0], key);
                    prop_assert_eq!(had, oracle.remove(&key).is_some());
                }
            }
            prop_assert_eq!(tree.all(), oracle.clone().into_iter().collect::<Vec<_>>());
            for key in (0..4000).step_by(37) {
                let found = tree.at_least(tree.path_to(key)[0], key).filter(|pair| pair.0 == key);
                prop_assert_eq!(found.map(|pair| pair.1), oracle.get(&key).copied());
            }
        }
    }

    /// Ascending keys fill leaves and groups; the tree grows at its root, in its reserved bytes.
    #[test]
    fn it_grows_upward() {
        let mut tree = Tree::load(&[], 4096);
        for key in 0..20_000 {
            let mut path = tree.path_to(key);
            tree.insert(&mut path, (key, key));
        }
        assert!(tree.height >= 4, "{}", tree.height);
        assert_eq!(tree.all().len(), 20_000);
        let last = tree.groups.len() as u32;
        assert!(tree.address(last) <= 4096 + Tree::bytes(20_000));
    }
}
