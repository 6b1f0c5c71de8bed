//! An ordered map whose look-ups come in batches: a CSB+-tree.
//!
//! ```text
//!              [ 40 | 90 ]                      an inner node has one link, to the group of its
//!                   │                           children, which lie side by side: its line is
//!        ┌──────────┼──────────┐                full of keys
//!     [ 10|20 ]  [ 40|60 ]  [ 90 ]              leaves hold entries; their groups are linked
//! ```
//!
//! Rao and Ross, *Making B+-Trees Cache Conscious in Main Memory*, SIGMOD 2000: the *full*
//! CSB+-tree, whose groups have room for all children that a node can have. Inserts split nodes on
//! the way down; deletes leave nodes as they are, however few keys they keep, as the authors
//! propose. A look-up is the walk of Zhou et al., VLDB 2005, §5.1.

mod iter;
mod load;
mod lookup;
#[cfg(feature = "helper")]
mod nested_loop;
mod nodes;
mod shape;

#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
#[cfg(feature = "std")]
use core::num::NonZero;
use core::ops::{Bound, RangeBounds};

use workahead_walks::Rows;

use crate::memory::Pages;
#[cfg(feature = "std")]
use crate::technique::on_threads;
use crate::technique::{Technique, drive, runs};
pub use iter::{IntoIter, Iter, IterMut};
use lookup::{ContainsSink, Count, Descent, Forgotten, Lookup, Position, Positions, Values, kind};
#[cfg(feature = "helper")]
pub use nested_loop::NestedLoop;
use nodes::{Head, Kind, NO_GROUP, Node, Nodes};
use shape::Shape;

/// Keys whose ways down are walked together before the first range is visited, or the first entry
/// inserted: their leaves are a part of the second-level cache.
const TOGETHER: usize = 256;

/// Upper levels of up to this size are walked at once: a part of the second-level cache.
const HOT_BYTES: usize = 256 << 10;

/// An ordered map with batched look-ups.
///
/// If a function of a key or of a value panics, the index stays valid: with the entries from before
/// the call, those from after it, or also with those that the call had inserted until then.
///
/// ```
/// use workahead_lookup::OrderedIndex;
/// let entries = [(20, "b"), (10, "a"), (30, "c")];
/// let mut index: OrderedIndex<u64, &str> = entries.into_iter().collect();
/// index.insert(25, "bc");
/// let mut found = [None; 2];
/// index.get_many(&[30, 11], &mut found);
/// assert_eq!(found, [Some(&"c"), None]);
/// assert!(index.range(15..30).map(|(key, _)| *key).eq([20, 25]));
/// ```
pub struct OrderedIndex<K, V> {
    nodes: Nodes<K, V>,
    root: Node,
    /// Inner nodes between root and leaf.
    height: u8,
    len: usize,
    technique: Option<Technique>,
}

impl<K: Ord + Clone, V> OrderedIndex<K, V> {
    /// An empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::from_sorted([], Pages::Usual)
    }

    /// Loads entries that ascend by key, on pages of a kind: full nodes, and the fastest way to
    /// make an index.
    ///
    /// # Panics
    /// If a key is not greater than the one before, or there are more nodes than 32 bits count.
    pub fn from_sorted(entries: impl IntoIterator<Item = (K, V)>, pages: Pages) -> Self {
        Self::loaded(entries.into_iter(), pages, Shape::<K, V>::MOST)
    }

    fn loaded(entries: impl Iterator<Item = (K, V)>, pages: Pages, fill: usize) -> Self {
        let nodes = Nodes::new(pages);
        let mut index =
            Self { nodes, root: Node::first(NO_GROUP), height: 0, len: 0, technique: None };
        (index.root, index.height, index.len) = index.nodes.load(entries, fill);
        index
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of its nodes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.nodes.bytes()
    }

    /// The technique of its batches: the one that was set, or the one for its size.
    #[must_use]
    pub fn technique(&self) -> Technique {
        self.technique.unwrap_or_else(|| Technique::chosen(self.bytes(), Technique::Lanes(32)))
    }

    /// Drives batches by a technique, whatever the size; `None` leaves the choice to the index.
    pub const fn set_technique(&mut self, technique: Option<Technique>) {
        self.technique = technique;
    }

    /// Levels below the root that are small, however full they are.
    fn hot_levels(&self) -> u8 {
        let mut level_bytes = 64;
        let mut hot = 0;
        while hot < self.height && level_bytes <= HOT_BYTES {
            level_bytes *= Shape::<K, V>::CHILDREN;
            hot += 1;
        }
        hot
    }

    /// The first place in a leaf whose key is not below `key`, or behind the last of the leaf.
    fn lower<Q: Ord + ?Sized>(&self, key: &Q, count: Count) -> Position
    where
        K: Borrow<Q>,
    {
        let mut node = self.root;
        for _ in 0..self.height {
            node = self.nodes.child(node, key);
        }
        let slot = self.nodes.search(Kind::Leaf, node, key, count) as u8;
        Position { leaf: node, slot }
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.nodes.at(self.lower(key, Count::Less), key)
    }

    /// The value of a key, to be changed.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let at = self.lower(key, Count::Less);
        self.nodes.at(at, key)?;
        Some(self.nodes.value_mut(at.leaf, usize::from(at.slot)))
    }

    /// Whether a key is there.
    pub fn contains<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    fn walk<'t, 'k, Q: Ord>(&'t self, keys: &'k [Q]) -> Lookup<'t, 'k, K, V, Q>
    where
        K: Borrow<Q>,
    {
        Lookup { descent: self.descent(), keys }
    }

    fn descent(&self) -> Descent<'_, K, V> {
        let (root, height, hot) = (self.root, self.height, self.hot_levels());
        Descent { nodes: &self.nodes, root, height, hot }
    }

    /// The values of many keys, each in its key's place: `None` where there is no such key.
    ///
    /// # Panics
    /// If there are not as many places as keys.
    #[inline]
    pub fn get_many<'i, Q: Ord>(&'i self, keys: &[Q], values: &mut [Option<&'i V>])
    where
        K: Borrow<Q>,
    {
        assert_eq!(keys.len(), values.len(), "a place for every key's value");
        for (keys, values) in runs(keys, values) {
            let mut rows = Rows::range(0..keys.len() as u32);
            let mut sink = Values { nodes: &self.nodes, keys, values };
            drive!(self.technique(), &mut self.walk(keys), &mut rows, &mut sink);
        }
    }

    /// As [`OrderedIndex::get_many`], by several threads, each with a part of the keys. Threads are
    /// started by every call: it is for many keys.
    ///
    /// # Panics
    /// As [`OrderedIndex::get_many`], or if a thread can't be started.
    #[cfg(feature = "std")]
    pub fn get_many_parallel<'i, Q: Ord + Sync>(
        &'i self,
        keys: &[Q],
        values: &mut [Option<&'i V>],
        threads: NonZero<usize>,
    ) where
        K: Borrow<Q> + Sync,
        V: Sync,
    {
        assert_eq!(keys.len(), values.len(), "a place for every key's value");
        on_threads(keys, values, threads, |keys, values| self.get_many(keys, values));
    }

    /// As [`OrderedIndex::get_many`], with a helper thread where the executor finds that faster.
    ///
    /// # Panics
    /// As [`OrderedIndex::get_many`].
    #[cfg(feature = "helper")]
    pub fn get_many_by<'i, Q: Ord>(
        &'i self,
        executor: &workahead_walks::Executor,
        keys: &[Q],
        values: &mut [Option<&'i V>],
    ) where
        K: Borrow<Q>,
    {
        assert_eq!(keys.len(), values.len(), "a place for every key's value");
        for (keys, values) in runs(keys, values) {
            let rows = 0..keys.len() as u32;
            let mut sink = Values { nodes: &self.nodes, keys, values };
            let walk = &mut self.walk(keys);
            executor.drive((walk, rows), self.bytes(), &mut sink, |walk, rows, sink| {
                let rows = &mut Rows::range(rows);
                drive!(self.technique(), walk, rows, sink);
            });
        }
    }

    /// Whether each of many keys is there, in the key's place.
    ///
    /// # Panics
    /// As [`OrderedIndex::get_many`].
    #[inline]
    pub fn contains_many<Q: Ord>(&self, keys: &[Q], contained: &mut [bool])
    where
        K: Borrow<Q>,
    {
        assert_eq!(keys.len(), contained.len(), "a place for every key");
        for (keys, contained) in runs(keys, contained) {
            let mut rows = Rows::range(0..keys.len() as u32);
            let mut sink = ContainsSink { nodes: &self.nodes, keys, contained };
            drive!(self.technique(), &mut self.walk(keys), &mut rows, &mut sink);
        }
    }

    /// For many short ranges: calls `visit` with the position of a range, and each of its entries
    /// in key order. A range is its first key and the key that ends it, which is not part of it.
    /// The ways down to the first keys are walked together.
    ///
    /// ```
    /// use workahead_lookup::OrderedIndex;
    /// let index: OrderedIndex<u32, u32> = (0..100).map(|key| (key, 2 * key)).collect();
    /// let mut sums = [0; 2];
    /// index.range_many(&[3, 98], &[5, 1000], |range, _, value| sums[range] += value);
    /// assert_eq!(sums, [6 + 8, 196 + 198]);
    /// ```
    ///
    /// # Panics
    /// If there are not as many first keys as ends.
    pub fn range_many<'i, Q: Ord>(
        &'i self,
        firsts: &[Q],
        ends: &[Q],
        mut visit: impl FnMut(usize, &'i K, &'i V),
    ) where
        K: Borrow<Q>,
    {
        assert_eq!(firsts.len(), ends.len(), "an end for every first key");
        let mut positions = vec![Position { leaf: self.root, slot: 0 }; TOGETHER.min(firsts.len())];
        let chunks = firsts.chunks(TOGETHER).zip(ends.chunks(TOGETHER)).enumerate();
        for (chunk, (firsts, ends)) in chunks {
            let mut rows = Rows::range(0..firsts.len() as u32);
            let mut sink = Positions(&mut positions);
            drive!(self.technique(), &mut self.walk(firsts), &mut rows, &mut sink);
            for (at, (from, end)) in positions.iter().zip(ends).enumerate() {
                let entries = self.entries_from(*from);
                for (key, value) in entries.take_while(|(key, _)| (*key).borrow() < end) {
                    visit(chunk * TOGETHER + at, key, value);
                }
            }
        }
    }

    /// The entries of a range, ascending.
    pub fn range<Q: Ord + ?Sized, R: RangeBounds<Q>>(
        &self,
        range: R,
    ) -> impl Iterator<Item = (&K, &V)>
    where
        K: Borrow<Q>,
    {
        let from = match range.start_bound() {
            Bound::Included(key) => self.lower(key, Count::Less),
            Bound::Excluded(key) => self.lower(key, Count::NotGreater),
            Bound::Unbounded => self.first(),
        };
        self.entries_from(from).take_while(move |(key, _)| match range.end_bound() {
            Bound::Included(end) => (*key).borrow() <= end,
            Bound::Excluded(end) => (*key).borrow() < end,
            Bound::Unbounded => true,
        })
    }

    /// Inserts an entry; the value that the key had before, if it was there.
    ///
    /// # Panics
    /// If there are more nodes than 32 bits count.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let most = Shape::<K, V>::MOST;
        if usize::from(self.nodes.head(kind(self.height), self.root).len) == most {
            self.grow();
        }
        // Every node on the way has room, so that its children can be split.
        let mut node = self.root;
        for height in (0..self.height).rev() {
            let mut child = self.nodes.child(node, &key);
            if usize::from(self.nodes.head(kind(height), child).len) == most {
                self.split(node, child.child, height);
                child = self.nodes.child(node, &key);
            }
            node = child;
        }
        let at = self.nodes.search(Kind::Leaf, node, &key, Count::Less);
        if self.nodes.keys(Kind::Leaf, node).get(at) == Some(&key) {
            let before = core::mem::replace(self.nodes.value_mut(node, at), value);
            // Here, so that what it had before is dropped, too, if this panics.
            drop(key);
            return Some(before);
        }
        self.nodes.insert_entry(node, at, key, value);
        self.len += 1;
        self.nodes.fill(Kind::Leaf, node);
        None
    }

    /// Inserts many entries; the ways down to a block of them are walked together first. A key that
    /// is there, or comes twice, has the last value.
    ///
    /// ```
    /// use workahead_lookup::OrderedIndex;
    /// let mut index = OrderedIndex::new();
    /// index.insert_many([(3, "c"), (1, "a"), (2, "b"), (3, "d")]);
    /// assert!(index.keys().eq(&[1, 2, 3]));
    /// assert_eq!(index.get(&3), Some(&"d"));
    /// ```
    ///
    /// # Panics
    /// As [`OrderedIndex::insert`].
    pub fn insert_many(&mut self, entries: impl IntoIterator<Item = (K, V)>) {
        let mut entries = entries.into_iter().fuse();
        let mut block = (Vec::new(), Vec::new());
        loop {
            block.extend(entries.by_ref().take(TOGETHER));
            let (keys, values) = &mut block;
            if keys.is_empty() {
                return;
            }
            // In cache there is nothing to wait for.
            if self.technique() != Technique::InTurn {
                let mut rows = Rows::range(0..keys.len() as u32);
                drive!(self.technique(), &mut self.walk(keys), &mut rows, &mut Forgotten);
            }
            for (key, value) in keys.drain(..).zip(values.drain(..)) {
                self.insert(key, value);
            }
        }
    }

    /// Drops all entries and the memory.
    pub fn clear(&mut self) {
        let empty = Self::from_sorted([], self.nodes.pages());
        // Empty before the first is dropped, which may panic.
        drop(core::mem::replace(self, Self { technique: self.technique, ..empty }));
    }

    /// Takes a key out; its value, if it was there. Its leaf stays, with a key less.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let at = self.lower(key, Count::Less);
        self.nodes.at(at, key)?;
        let (key, value) = self.nodes.remove_entry(at.leaf, usize::from(at.slot));
        self.len -= 1;
        self.nodes.fill(Kind::Leaf, at.leaf);
        drop(key);
        Some(value)
    }

    /// Puts a root above the root.
    fn grow(&mut self) {
        let below = kind(self.height);
        // First what may panic.
        let (children, group) = (self.nodes.group(below), self.nodes.group(Kind::Inner));
        self.nodes.move_root(below, self.root, children);
        self.root = Node::first(group);
        self.nodes.head_mut(Kind::Inner, self.root).group = children;
        self.height += 1;
        self.split(self.root, 0, self.height - 1);
    }

    /// Splits a full child, at a height, of a node that has room.
    fn split(&mut self, parent: Node, child: u8, height: u8) {
        let kind = kind(height);
        let Head { len, group, .. } = *self.nodes.head(Kind::Inner, parent);
        let (left, right) = (Node { group, child }, Node { group, child: child + 1 });
        let half = Shape::<K, V>::MOST.div_ceil(2);
        // First what may panic: a clone, and a new group. Then the tree changes as a whole, without
        // a call of the keys' functions, which would see it half changed or leave it so.
        let separator = match kind {
            Kind::Leaf => {
                let separator = self.nodes.keys(kind, left)[half].clone();
                self.nodes.open_child(kind, group, child + 1, len + 1);
                self.nodes.move_keys(kind, left, half, right);
                self.nodes.head_mut(kind, Node::first(group)).leaves += 1;
                separator
            }
            Kind::Inner => {
                let below = self::kind(height - 1);
                let moved = self.nodes.group(below);
                self.nodes.open_child(kind, group, child + 1, len + 1);
                self.nodes.move_keys(kind, left, half, right);
                // The last separator that stayed goes up; the children right of it move along.
                let separator = self.nodes.pop_separator(left);
                let children = self.nodes.head(kind, left).group;
                self.nodes.move_children(below, children, half as u8, moved);
                self.nodes.head_mut(kind, right).group = moved;
                separator
            }
        };
        self.nodes.insert_separator(parent, usize::from(child), separator);
        self.nodes.fill(kind, left);
        self.nodes.fill(kind, right);
        self.nodes.fill(Kind::Inner, parent);
    }
}

impl<K: Ord + Clone, V> Default for OrderedIndex<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone, V> FromIterator<(K, V)> for OrderedIndex<K, V> {
    /// Of entries in any order: sorted, then loaded. The last value of a key counts.
    fn from_iter<T: IntoIterator<Item = (K, V)>>(entries: T) -> Self {
        let mut entries: Vec<(K, V)> = entries.into_iter().collect();
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        entries.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                core::mem::swap(&mut later.1, &mut kept.1);
            }
            is_same
        });
        Self::from_sorted(entries, Pages::Usual)
    }
}

impl<K: Ord + Clone, V> Extend<(K, V)> for OrderedIndex<K, V> {
    fn extend<T: IntoIterator<Item = (K, V)>>(&mut self, entries: T) {
        self.insert_many(entries);
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for OrderedIndex<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
