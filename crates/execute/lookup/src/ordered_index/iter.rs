//! Entries in key order, leaf by leaf: borrowed, their values to be changed, or owned.

use core::iter::FusedIterator;

use super::OrderedIndex;
use super::lookup::Position;
use super::nodes::{Head, Kind, NO_GROUP, Node, Nodes};

pub use super::nodes::IterMut;

impl<K, V> Nodes<K, V> {
    /// The leaf that follows in key order.
    fn next_leaf(&self, leaf: Node) -> Option<Node> {
        let Head { leaves, group: next, .. } = *self.head(Kind::Leaf, Node::first(leaf.group));
        if leaf.child + 1 < leaves {
            Some(Node { child: leaf.child + 1, ..leaf })
        } else {
            (next != NO_GROUP).then_some(Node::first(next))
        }
    }

    /// The first entry at a position or after it. The position is then behind that entry.
    #[inline]
    pub(super) fn advance(&self, at: &mut Position) -> Option<Position> {
        while at.slot >= self.head(Kind::Leaf, at.leaf).len {
            *at = Position { leaf: self.next_leaf(at.leaf)?, slot: 0 };
        }
        let entry = *at;
        at.slot += 1;
        Some(entry)
    }
}

impl<K, V> OrderedIndex<K, V> {
    /// All entries, ascending.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter { entries: self.entries_from(self.first()), left: self.len }
    }

    /// All entries, ascending, their values to be changed.
    ///
    /// ```
    /// use workahead_lookup::OrderedIndex;
    /// let mut index: OrderedIndex<u64, u32> = [(2, 20), (1, 10)].into_iter().collect();
    /// for (_, value) in index.iter_mut() {
    ///     *value += 1;
    /// }
    /// assert!(index.into_iter().eq([(1, 11), (2, 21)]));
    /// ```
    pub fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        let first = self.first();
        IterMut::new(&mut self.nodes, first, self.len)
    }

    /// All keys, ascending.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// All values, in the order of their keys.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// All values, in the order of their keys, to be changed.
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut V> {
        self.iter_mut().map(|(_, value)| value)
    }

    pub(super) fn first(&self) -> Position {
        let mut node = self.root;
        for _ in 0..self.height {
            node = Node::first(self.nodes.head(Kind::Inner, node).group);
        }
        Position { leaf: node, slot: 0 }
    }

    /// The entries from a position on.
    pub(super) fn entries_from(&self, at: Position) -> Entries<'_, K, V> {
        Entries { nodes: &self.nodes, at }
    }
}

/// The entries of an index from a position on, ascending.
pub(super) struct Entries<'t, K, V> {
    nodes: &'t Nodes<K, V>,
    at: Position,
}

impl<K, V> Clone for Entries<'_, K, V> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<'t, K, V> Iterator for Entries<'t, K, V> {
    type Item = (&'t K, &'t V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let Position { leaf, slot } = self.nodes.advance(&mut self.at)?;
        let slot = usize::from(slot);
        Some((&self.nodes.keys(Kind::Leaf, leaf)[slot], &self.nodes.values(leaf)[slot]))
    }
}

/// The entries of an index, ascending.
pub struct Iter<'t, K, V> {
    entries: Entries<'t, K, V>,
    left: usize,
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), left: self.left }
    }
}

impl<'t, K, V> Iterator for Iter<'t, K, V> {
    type Item = (&'t K, &'t V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next()?;
        self.left -= 1;
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> ExactSizeIterator for Iter<'_, K, V> {}
impl<K, V> FusedIterator for Iter<'_, K, V> {}
impl<K, V> ExactSizeIterator for IterMut<'_, K, V> {}
impl<K, V> FusedIterator for IterMut<'_, K, V> {}

/// The entries of an index that has ended, ascending.
pub struct IntoIter<K, V> {
    nodes: Nodes<K, V>,
    leaf: Node,
    left: usize,
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        while self.nodes.head(Kind::Leaf, self.leaf).len == 0 {
            self.leaf = self.nodes.next_leaf(self.leaf)?;
        }
        self.left -= 1;
        Some(self.nodes.remove_entry(self.leaf, 0))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<K, V> ExactSizeIterator for IntoIter<K, V> {}
impl<K, V> FusedIterator for IntoIter<K, V> {}

impl<K, V> IntoIterator for OrderedIndex<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        IntoIter { leaf: self.first().leaf, nodes: self.nodes, left: self.len }
    }
}

impl<'t, K, V> IntoIterator for &'t OrderedIndex<K, V> {
    type Item = (&'t K, &'t V);
    type IntoIter = Iter<'t, K, V>;

    fn into_iter(self) -> Iter<'t, K, V> {
        self.iter()
    }
}

impl<'t, K, V> IntoIterator for &'t mut OrderedIndex<K, V> {
    type Item = (&'t K, &'t mut V);
    type IntoIter = IterMut<'t, K, V>;

    fn into_iter(self) -> IterMut<'t, K, V> {
        self.iter_mut()
    }
}
