//! The way down a tree as a walk: a node, searched; its child; the leaf, where the key is or not.

use core::borrow::Borrow;
use core::ops::ControlFlow;

use workahead_walks::{Memory, Place, Row, Sink, Walk};

use super::nodes::{Kind, Node, Nodes};
use super::shape::Shape;

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

/// The way down.
pub(super) struct Descent<'t, K, V> {
    pub(super) nodes: &'t Nodes<K, V>,
    pub(super) root: Node,
    /// Inner nodes from the root to a leaf.
    pub(super) height: u8,
    /// Levels that are in cache whatever else is: they are walked at once.
    pub(super) hot: u8,
}

impl<K, V> Clone for Descent<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Descent<'_, K, V> {}

/// Where a way down is: at a node, so far above the leaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stop {
    node: Node,
    height: u8,
}

impl<K, V> Descent<'_, K, V> {
    /// The first node that may not be in cache.
    #[inline(always)]
    pub(super) fn start<Q: Ord, M: Memory>(&self, key: &Q, memory: &mut M) -> (Stop, Place)
    where
        K: Borrow<Q>,
    {
        let (mut node, mut height) = (self.root, self.height);
        for _ in 0..self.hot {
            memory.read_hot(self.nodes.head(Kind::Inner, node));
            node = self.nodes.child(node, key);
            height -= 1;
        }
        (Stop { node, height }, self.nodes.place(kind(height), node))
    }

    /// Searches a node that is at hand: on to its child, or to where the key is in a leaf.
    #[inline(always)]
    pub(super) fn step<Q: Ord, M: Memory>(
        &self,
        stop: &mut Stop,
        key: &Q,
        memory: &mut M,
    ) -> ControlFlow<Position, Place>
    where
        K: Borrow<Q>,
    {
        let at = kind(stop.height);
        memory.read(self.nodes.head(at, stop.node));
        if at == Kind::Leaf {
            let slot = self.nodes.search(at, stop.node, key, Count::Less) as u8;
            return ControlFlow::Break(Position { leaf: stop.node, slot });
        }
        stop.node = self.nodes.child(stop.node, key);
        stop.height -= 1;
        ControlFlow::Continue(self.nodes.place(kind(stop.height), stop.node))
    }
}

/// Look-ups of `keys`, by position.
pub(super) struct Lookup<'t, 'k, K, V, Q> {
    pub(super) descent: Descent<'t, K, V>,
    pub(super) keys: &'k [Q],
}

/// A look-up under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor {
    stop: Stop,
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
        let (stop, place) = self.descent.start(key, memory);
        (Cursor { stop, row }, place)
    }

    #[inline(always)]
    fn step<M: Memory, S: Sink<Position>>(
        &mut self,
        cursor: &mut Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Place> {
        let key = memory.read_hot(&self.keys[cursor.row as usize]);
        match self.descent.step(&mut cursor.stop, key, memory) {
            ControlFlow::Continue(place) => Some(place),
            ControlFlow::Break(position) => {
                sink.emit(cursor.row, position);
                None
            }
        }
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
pub(super) struct ContainsSink<'o, 't, 'k, K, V, Q> {
    pub(super) nodes: &'t Nodes<K, V>,
    pub(super) keys: &'k [Q],
    pub(super) contained: &'o mut [bool],
}

impl<K: Borrow<Q>, V, Q: Ord> Sink<Position> for ContainsSink<'_, '_, '_, K, V, Q> {
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

/// Forgets positions: the ways down were walked for the lines that they bring.
pub(super) struct Forgotten;

impl Sink<Position> for Forgotten {
    #[inline(always)]
    fn emit(&mut self, _: Row, _: Position) {}
}

/// Keeps positions, for scans that begin there.
pub(super) struct Positions<'o>(pub(super) &'o mut [Position]);

impl Sink<Position> for Positions<'_> {
    #[inline(always)]
    fn emit(&mut self, row: Row, at: Position) {
        self.0[row as usize] = at;
    }
}
