//! The way down a tree as a walk: a node, searched; its child; the leaf, where the key is or not.

use core::borrow::Borrow;

use workahead_walks::{Memory, Place, Row, Sink, Walk};

use super::nodes::{Kind, Node, Nodes, Shape};

/// Keys of a node that are less than a key (`Less`), or not greater (`NotGreater`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    Less,
    NotGreater,
}

impl<K, V> Nodes<K, V> {
    /// How many keys of a node are below a key.
    #[inline(always)]
    pub(super) fn search<Q: Ord + ?Sized>(
        &self,
        kind: Kind,
        node: Node,
        key: &Q,
        count: Count,
    ) -> usize
    where
        K: Borrow<Q>,
    {
        let is_below = |slot: &K| match count {
            Count::Less => slot.borrow() < key,
            Count::NotGreater => slot.borrow() <= key,
        };
        if Shape::<K, V>::IS_COUNTED
            && let Some(slots) = self.slots(kind, node)
        {
            let below = slots.iter().map(|slot| usize::from(is_below(slot))).sum::<usize>();
            below.min(usize::from(self.head(kind, node).len))
        } else {
            self.keys(kind, node).partition_point(is_below)
        }
    }

    /// The child of an inner node under which a key is.
    #[inline(always)]
    pub(super) fn child<Q: Ord + ?Sized>(&self, node: Node, key: &Q) -> Node
    where
        K: Borrow<Q>,
    {
        let child = self.search(Kind::Inner, node, key, Count::NotGreater) as u8;
        Node { group: self.head(Kind::Inner, node).group, child }
    }
}

/// Look-ups of `keys`, by position.
pub(super) struct Lookup<'t, 'k, K, V, Q> {
    pub(super) nodes: &'t Nodes<K, V>,
    pub(super) root: Node,
    /// Inner nodes from the root to a leaf.
    pub(super) height: u8,
    /// Levels that are in cache whatever else is: they are walked at once.
    pub(super) hot: u8,
    pub(super) keys: &'k [Q],
}

/// A look-up under way: its node, and how far that is above the leaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    node: Node,
    height: u8,
    row: Row,
}

/// Where a key is in a leaf, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) leaf: Node,
    pub(super) slot: u8,
}

/// Of the nodes this far above the leaves.
pub(super) const fn kind(height: u8) -> Kind {
    if height == 0 { Kind::Leaf } else { Kind::Inner }
}

impl<K, V, Q> Walk for Lookup<'_, '_, K, V, Q>
where
    K: Borrow<Q>,
    Q: Ord,
{
    type Cursor = Cursor;
    /// Every key comes to one place.
    type Hit = Position;
    type Asks = Place;

    #[inline(always)]
    fn start<M: Memory>(&mut self, row: Row, memory: &mut M) -> (Cursor, Place) {
        let key = memory.read_hot(&self.keys[row as usize]);
        let (mut node, mut height) = (self.root, self.height);
        for _ in 0..self.hot {
            memory.read_hot(self.nodes.head(Kind::Inner, node));
            node = self.nodes.child(node, key);
            height -= 1;
        }
        (Cursor { node, height, row }, self.nodes.place(kind(height), node))
    }

    #[inline(always)]
    fn step<M: Memory, S: Sink<Position>>(
        &mut self,
        cursor: &mut Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Place> {
        let key = memory.read_hot(&self.keys[cursor.row as usize]);
        let at = kind(cursor.height);
        memory.read(self.nodes.head(at, cursor.node));
        if at == Kind::Leaf {
            let slot = self.nodes.search(at, cursor.node, key, Count::Less) as u8;
            sink.emit(cursor.row, Position { leaf: cursor.node, slot });
            return None;
        }
        cursor.node = self.nodes.child(cursor.node, key);
        cursor.height -= 1;
        Some(self.nodes.place(kind(cursor.height), cursor.node))
    }
}

/// Puts the values of keys in their places.
pub(super) struct Values<'o, 't, 'k, K, V, Q> {
    pub(super) nodes: &'t Nodes<K, V>,
    pub(super) keys: &'k [Q],
    pub(super) values: &'o mut [Option<&'t V>],
}

impl<K: Borrow<Q>, V, Q: Ord> Sink<Position> for Values<'_, '_, '_, K, V, Q> {
    #[inline(always)]
    fn emit(&mut self, row: Row, at: Position) {
        let key = &self.keys[row as usize];
        self.values[row as usize] = self.nodes.at(at, key);
    }
}

/// Says of keys whether they are there.
pub(super) struct Contained<'o, 't, 'k, K, V, Q> {
    pub(super) nodes: &'t Nodes<K, V>,
    pub(super) keys: &'k [Q],
    pub(super) contained: &'o mut [bool],
}

impl<K: Borrow<Q>, V, Q: Ord> Sink<Position> for Contained<'_, '_, '_, K, V, Q> {
    #[inline(always)]
    fn emit(&mut self, row: Row, at: Position) {
        let key = &self.keys[row as usize];
        self.contained[row as usize] = self.nodes.at(at, key).is_some();
    }
}

impl<K, V> Nodes<K, V> {
    /// The value at a position, if it is that of a key.
    #[inline(always)]
    pub(super) fn at<Q: Ord + ?Sized>(&self, at: Position, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let slot = usize::from(at.slot);
        let found = self.keys(Kind::Leaf, at.leaf).get(slot)?;
        if found.borrow() == key { self.values(at.leaf).get(slot) } else { None }
    }
}

/// Keeps positions, for scans that begin there.
pub(super) struct Positions<'o>(pub(super) &'o mut [Position]);

impl Sink<Position> for Positions<'_> {
    #[inline(always)]
    fn emit(&mut self, row: Row, at: Position) {
        self.0[row as usize] = at;
    }
}
