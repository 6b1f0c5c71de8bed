//! Nodes in memory: what lies where, and the only code that reads and moves it.
//!
//! ```text
//!  leaf    [ len | followers … | keys | values ]     inner   [ len | group | keys ]
//!  group   node 0 | node 1 | …                       the children of an inner node, side by side
//! ```
//!
//! A group has room for as many children as a node can have (Rao and Ross's *full* CSB+-tree: a
//! split moves nodes inside of it). Groups of leaves and of inner nodes lie in an arena each, and
//! are numbered, so that an arena can move when it grows.
//!
//! Where keys are numbers or as plain, nodes are filled: unused key slots hold clones of the last
//! key. A search can then compare all of them without a branch.
//!
//! Keys' clones may panic. So every function here that changes nodes calls none of the keys', and
//! leaves the nodes it changed not filled, which are searched by their keys alone. [`Nodes::fill`]
//! comes last, when the tree is whole: if a clone panics, the node stays as it is, valid.

use core::marker::PhantomData;
use core::mem::needs_drop;
use core::ptr::NonNull;

use workahead_walks::Place;
use workahead_walks::place::LINE_BYTES;

use super::lookup::Position;
use super::shape::Shape;
use crate::memory::{Memory, Pages, drop_entries};

/// The header before the keys of a node.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Head {
    /// Keys.
    pub(super) len: u8,
    /// Of the first leaf of a group: leaves of the group.
    pub(super) leaves: u8,
    /// Whether every key slot holds a key: those that are not counted a clone of the last.
    is_filled: bool,
    /// Of an inner node: its children's group. Of the first leaf of a group: the group that follows
    /// in key order, or `NO_GROUP`.
    pub(super) group: u32,
}

impl Head {
    /// Of a node without keys.
    const EMPTY: Self = Self { len: 0, leaves: 0, is_filled: false, group: NO_GROUP };
}

/// No group follows.
pub(super) const NO_GROUP: u32 = u32::MAX;

/// Whether a node has children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Inner,
    Leaf,
}

/// A node: which of the children of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) group: u32,
    pub(super) child: u8,
}

/// Groups of nodes of one kind.
struct Arena {
    memory: Option<Memory>,
    start: NonNull<u8>,
    /// Bytes of a node.
    node_bytes: usize,
    group_bytes: usize,
    used: u32,
    room: u32,
}

impl Arena {
    const fn new(node_bytes: usize, children: usize) -> Self {
        let group_bytes = node_bytes * children;
        Self { memory: None, start: NonNull::dangling(), node_bytes, group_bytes, used: 0, room: 0 }
    }

    fn reserve(&mut self, more: usize, align: usize, pages: Pages) {
        let needed = self.used as usize + more;
        if needed <= self.room as usize {
            return;
        }
        let room = needed.max(2 * self.room as usize).min(NO_GROUP as usize);
        assert!(needed <= room, "capacity overflow");
        let bytes = room.checked_mul(self.group_bytes).expect("capacity overflow");
        let memory = Memory::zeroed(bytes, align, pages);
        // SAFETY: `used` groups lie at the old start (none, if it has no memory), and the new
        // memory has room for more; the old one is freed without being read again.
        unsafe {
            let bytes = self.used as usize * self.group_bytes;
            memory.start().copy_from_nonoverlapping(self.start, bytes);
        }
        self.start = memory.start();
        self.memory = Some(memory);
        self.room = room as u32;
    }

    /// A group nobody has: zeros, or what was left there.
    fn group(&mut self, align: usize, pages: Pages) -> u32 {
        self.reserve(1, align, pages);
        self.used += 1;
        self.used - 1
    }

    #[inline(always)]
    fn node(&self, node: Node) -> NonNull<u8> {
        debug_assert!(node.group < self.used, "{node:?} of {} groups", self.used);
        let offset =
            node.group as usize * self.group_bytes + usize::from(node.child) * self.node_bytes;
        // SAFETY: groups below `used` lie in the memory, and children in their group.
        unsafe { self.start.add(offset) }
    }
}

/// All nodes of a tree.
pub(super) struct Nodes<K, V> {
    inner: Arena,
    leaves: Arena,
    pages: Pages,
    _owns: PhantomData<(K, V)>,
}

// SAFETY: the nodes own their keys and values, and give out only ordinary borrows of them.
unsafe impl<K: Send, V: Send> Send for Nodes<K, V> {}
// SAFETY: as above; nothing changes behind a shared borrow.
unsafe impl<K: Sync, V: Sync> Sync for Nodes<K, V> {}

impl<K, V> Nodes<K, V> {
    pub(super) const fn new(pages: Pages) -> Self {
        let children = Shape::<K, V>::CHILDREN;
        Self {
            inner: Arena::new(Shape::<K, V>::INNER_BYTES, children),
            leaves: Arena::new(Shape::<K, V>::LEAF_BYTES, children),
            pages,
            _owns: PhantomData,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let of = |arena: &Arena| arena.memory.as_ref().map_or(0, Memory::bytes);
        of(&self.inner) + of(&self.leaves)
    }

    pub(super) const fn pages(&self) -> Pages {
        self.pages
    }

    #[inline(always)]
    fn arena(&self, kind: Kind) -> &Arena {
        match kind {
            Kind::Inner => &self.inner,
            Kind::Leaf => &self.leaves,
        }
    }

    /// Room for groups, so that a bulk load moves nothing.
    pub(super) fn reserve(&mut self, kind: Kind, groups: usize) {
        match kind {
            Kind::Inner => self.inner.reserve(groups, Shape::<K, V>::INNER_ALIGN, self.pages),
            Kind::Leaf => self.leaves.reserve(groups, Shape::<K, V>::LEAF_ALIGN, self.pages),
        }
    }

    /// A new group, whose nodes are all empty.
    pub(super) fn group(&mut self, kind: Kind) -> u32 {
        let group = match kind {
            Kind::Inner => self.inner.group(Shape::<K, V>::INNER_ALIGN, self.pages),
            Kind::Leaf => self.leaves.group(Shape::<K, V>::LEAF_ALIGN, self.pages),
        };
        for child in 0..Shape::<K, V>::CHILDREN as u8 {
            *self.head_mut(kind, Node { group, child }) = Head::EMPTY;
        }
        group
    }

    #[inline(always)]
    pub(super) fn head(&self, kind: Kind, node: Node) -> &Head {
        // SAFETY: nodes begin with a head, written when their group was made; memory is zeroed.
        unsafe { self.arena(kind).node(node).cast().as_ref() }
    }

    pub(super) fn head_mut(&mut self, kind: Kind, node: Node) -> &mut Head {
        // SAFETY: as in `head`, and `&mut self` makes the borrow unique.
        unsafe { self.arena(kind).node(node).cast().as_mut() }
    }

    /// The part of a node that a search reads.
    #[inline(always)]
    pub(super) fn place(&self, kind: Kind, node: Node) -> Place {
        // A leaf of two lines comes whole: the value is what is wanted.
        let bytes = match kind {
            Kind::Leaf if Shape::<K, V>::LEAF_BYTES <= 2 * LINE_BYTES => {
                Shape::<K, V>::LEAF_BYTES as u16
            }
            _ => Shape::<K, V>::SEARCHED,
        };
        Place::at(self.arena(kind).node(node), bytes)
    }

    #[inline(always)]
    fn keys_start(&self, kind: Kind, node: Node) -> NonNull<K> {
        // SAFETY: keys lie inside of every node.
        unsafe { self.arena(kind).node(node).add(Shape::<K, V>::KEYS).cast() }
    }

    #[inline(always)]
    fn values_start(&self, node: Node) -> NonNull<V> {
        // SAFETY: values lie inside of every leaf.
        unsafe { self.leaves.node(node).add(Shape::<K, V>::VALUES).cast() }
    }

    /// The keys of a node.
    #[inline(always)]
    pub(super) fn keys(&self, kind: Kind, node: Node) -> &[K] {
        let len = usize::from(self.head(kind, node).len);
        // SAFETY: the first `len` key slots hold keys.
        unsafe { core::slice::from_raw_parts(self.keys_start(kind, node).as_ptr(), len) }
    }

    /// All key slots of a node, if it is filled.
    #[inline(always)]
    pub(super) fn slots(&self, kind: Kind, node: Node) -> Option<&[K]> {
        if !self.head(kind, node).is_filled {
            return None;
        }
        let start = self.keys_start(kind, node).as_ptr();
        // SAFETY: a filled node has keys in all its slots: `fill` has put them there, and every
        // change takes the mark away.
        Some(unsafe { core::slice::from_raw_parts(start, Shape::<K, V>::MOST) })
    }

    /// The values of a leaf.
    #[inline(always)]
    pub(super) fn values(&self, leaf: Node) -> &[V] {
        let len = usize::from(self.head(Kind::Leaf, leaf).len);
        // SAFETY: the first `len` value slots of a leaf hold values.
        unsafe { core::slice::from_raw_parts(self.values_start(leaf).as_ptr(), len) }
    }

    pub(super) fn value_mut(&mut self, leaf: Node, slot: usize) -> &mut V {
        assert!(slot < usize::from(self.head(Kind::Leaf, leaf).len));
        // SAFETY: the slot holds a value, and `&mut self` makes the borrow unique.
        unsafe { self.values_start(leaf).add(slot).as_mut() }
    }

    /// Says how many keys a node has. It is then not filled.
    fn set_len(&mut self, kind: Kind, node: Node, len: usize) {
        let head = self.head_mut(kind, node);
        (head.len, head.is_filled) = (len as u8, false);
    }

    /// Puts a key between those of a node, which does not count it yet.
    fn insert_key(&mut self, kind: Kind, node: Node, at: usize, key: K) {
        let len = usize::from(self.head(kind, node).len);
        assert!(at <= len && len < Shape::<K, V>::MOST);
        // SAFETY: slots from `at` on move one up, below `MOST`; the free one is written.
        unsafe {
            let slot = self.keys_start(kind, node).add(at);
            slot.copy_to(slot.add(1), len - at);
            slot.write(key);
        }
    }

    /// Puts an entry into a leaf that has room.
    pub(super) fn insert_entry(&mut self, leaf: Node, at: usize, key: K, value: V) {
        let len = usize::from(self.head(Kind::Leaf, leaf).len);
        self.insert_key(Kind::Leaf, leaf, at, key);
        // SAFETY: as in `insert_key`, which has checked `at` and the room.
        unsafe {
            let slot = self.values_start(leaf).add(at);
            slot.copy_to(slot.add(1), len - at);
            slot.write(value);
        }
        self.set_len(Kind::Leaf, leaf, len + 1);
    }

    /// Puts a separator into an inner node that has room; its right child stands at `at + 1`.
    pub(super) fn insert_separator(&mut self, node: Node, at: usize, key: K) {
        let len = usize::from(self.head(Kind::Inner, node).len);
        self.insert_key(Kind::Inner, node, at, key);
        self.set_len(Kind::Inner, node, len + 1);
    }

    /// Takes an entry out of a leaf.
    pub(super) fn remove_entry(&mut self, leaf: Node, at: usize) -> (K, V) {
        let len = usize::from(self.head(Kind::Leaf, leaf).len);
        assert!(at < len);
        self.set_len(Kind::Leaf, leaf, len - 1);
        // SAFETY: key and value of the slot are moved out once; those above move one down, and the
        // last is no longer counted.
        unsafe {
            let (key, value) = (self.keys_start(Kind::Leaf, leaf), self.values_start(leaf));
            let (key, value) = (key.add(at), value.add(at));
            let taken = (key.read(), value.read());
            key.copy_from(key.add(1), len - at - 1);
            value.copy_from(value.add(1), len - at - 1);
            taken
        }
    }

    /// Moves the keys of a full node (and a leaf's values) from `from` on to an empty one.
    pub(super) fn move_keys(&mut self, kind: Kind, node: Node, from: usize, to: Node) {
        let len = usize::from(self.head(kind, node).len);
        assert!(node != to && from <= len && self.head(kind, to).len == 0);
        let count = len - from;
        // SAFETY: they are moved: one node counts them no more, the other from now on. The nodes
        // are two, so that they don't overlap.
        unsafe {
            let keys = self.keys_start(kind, node).add(from);
            keys.copy_to_nonoverlapping(self.keys_start(kind, to), count);
            if kind == Kind::Leaf {
                let values = self.values_start(node).add(from);
                values.copy_to_nonoverlapping(self.values_start(to), count);
            }
        }
        self.set_len(kind, node, from);
        self.set_len(kind, to, count);
    }

    /// Takes the last separator of an inner node out.
    pub(super) fn pop_separator(&mut self, node: Node) -> K {
        let len = usize::from(self.head(Kind::Inner, node).len);
        assert!(len > 0);
        self.set_len(Kind::Inner, node, len - 1);
        // SAFETY: it was counted, and is moved out once.
        unsafe { self.keys_start(Kind::Inner, node).add(len - 1).read() }
    }

    /// Makes room among the children of a group: those from `at` up to `count` move one up. The
    /// node at `at` is then as good as empty.
    pub(super) fn open_child(&mut self, kind: Kind, group: u32, at: u8, count: u8) {
        assert!(at <= count && usize::from(count) < Shape::<K, V>::CHILDREN);
        let bytes = self.arena(kind).node_bytes;
        let node = self.arena(kind).node(Node { group, child: at });
        // SAFETY: nodes of the group, below `CHILDREN` also after the move.
        unsafe { node.copy_to(node.add(bytes), usize::from(count - at) * bytes) };
        *self.head_mut(kind, Node { group, child: at }) = Head::EMPTY;
    }

    /// Moves the children of a group from `from` up to the last that there can be to the start of
    /// another, which is new.
    pub(super) fn move_children(&mut self, kind: Kind, group: u32, from: u8, to: u32) {
        let count = Shape::<K, V>::CHILDREN as u8;
        assert!(group != to && 0 < from && from <= count);
        let bytes = usize::from(count - from) * self.arena(kind).node_bytes;
        let first = self.arena(kind).node(Node { group, child: from });
        let other = self.arena(kind).node(Node { group: to, child: 0 });
        // SAFETY: whole nodes, of two groups; the old ones are counted no more.
        unsafe { first.copy_to_nonoverlapping(other, bytes) };
        for child in from..count {
            *self.head_mut(kind, Node { group, child }) = Head::EMPTY;
        }
        if kind == Kind::Leaf {
            let before = self.head_mut(kind, Node { group, child: 0 });
            let next = before.group;
            (before.leaves, before.group) = (from, to);
            let after = self.head_mut(kind, Node { group: to, child: 0 });
            (after.leaves, after.group) = (count - from, next);
        }
    }

    /// Moves a node to the start of a new group, as its only child.
    pub(super) fn move_root(&mut self, kind: Kind, root: Node, to: u32) {
        assert!(root.group != to);
        let bytes = self.arena(kind).node_bytes;
        let (from, other) = (self.arena(kind).node(root), self.arena(kind).node(Node::first(to)));
        // SAFETY: a whole node, to another group.
        unsafe { from.copy_to_nonoverlapping(other, bytes) };
        *self.head_mut(kind, root) = Head::EMPTY;
    }

    /// Fills the slots of a node that are not counted with clones of its last key, where searches
    /// compare them. It may panic, and comes after all else.
    pub(super) fn fill(&mut self, kind: Kind, node: Node)
    where
        K: Clone,
    {
        let len = usize::from(self.head(kind, node).len);
        if !Shape::<K, V>::IS_COUNTED || len == 0 {
            return;
        }
        self.head_mut(kind, node).is_filled = false;
        let start = self.keys_start(kind, node);
        for slot in len..Shape::<K, V>::MOST {
            // SAFETY: the slot before the counted ones' end holds a key; the one that is written is
            // not counted, and what it holds needs no drop.
            unsafe { start.add(slot).write(start.add(len - 1).as_ref().clone()) };
        }
        self.head_mut(kind, node).is_filled = true;
    }

    /// Drops what a node counts.
    fn drop_node(&mut self, kind: Kind, node: Node) {
        /// Drops the values when it is dropped: also while a key's drop unwinds.
        struct Values<V>(NonNull<[V]>);
        impl<V> Drop for Values<V> {
            fn drop(&mut self) {
                // SAFETY: they were counted until now, and are dropped once.
                unsafe { self.0.drop_in_place() };
            }
        }
        let len = usize::from(self.head(kind, node).len);
        self.set_len(kind, node, 0);
        let keys = NonNull::slice_from_raw_parts(self.keys_start(kind, node), len);
        let _values = (kind == Kind::Leaf)
            .then(|| Values(NonNull::slice_from_raw_parts(self.values_start(node), len)));
        // SAFETY: as the values.
        unsafe { keys.drop_in_place() };
    }

    /// Drops what nodes count, node by node.
    fn drop_counted(&mut self) {
        for (kind, has_drop) in
            [(Kind::Inner, needs_drop::<K>()), (Kind::Leaf, needs_drop::<K>() || needs_drop::<V>())]
        {
            // Nodes that no tree has any more, or not yet, count nothing.
            for group in (0..self.arena(kind).used).filter(|_| has_drop) {
                for child in 0..Shape::<K, V>::CHILDREN as u8 {
                    self.drop_node(kind, Node { group, child });
                }
            }
        }
    }
}

// SAFETY: places are those of nodes, which a look-up borrows: nobody frees them meanwhile.
#[cfg(feature = "helper")]
unsafe impl<K, V, Q> workahead_walks::work_ahead::Preloadable
    for super::lookup::Lookup<'_, '_, K, V, Q>
where
    K: core::borrow::Borrow<Q>,
    Q: Ord,
{
}

impl<K, V> Drop for Nodes<K, V> {
    fn drop(&mut self) {
        drop_entries(self, Self::drop_counted);
    }
}

impl Node {
    /// The first of a group.
    pub(super) const fn first(group: u32) -> Self {
        Self { group, child: 0 }
    }
}

/// The entries of an index, ascending, their values to be changed. It borrows the nodes uniquely
/// also in its type: so it goes to another thread only where the values may.
pub struct IterMut<'t, K, V> {
    nodes: &'t mut Nodes<K, V>,
    at: Position,
    left: usize,
}

impl<'t, K, V> IterMut<'t, K, V> {
    pub(super) const fn new(nodes: &'t mut Nodes<K, V>, at: Position, left: usize) -> Self {
        Self { nodes, at, left }
    }
}

impl<'t, K, V> Iterator for IterMut<'t, K, V> {
    type Item = (&'t K, &'t mut V);

    fn next(&mut self) -> Option<Self::Item> {
        let Position { leaf, slot } = self.nodes.advance(&mut self.at)?;
        self.left -= 1;
        let (keys, values) =
            (self.nodes.keys_start(Kind::Leaf, leaf), self.nodes.values_start(leaf));
        let slot = usize::from(slot);
        // SAFETY: the slot is counted, and visited once, under a unique borrow of the nodes for all
        // of `'t`. Only heads are read meanwhile, and no entry.
        unsafe { Some((keys.add(slot).as_ref(), values.add(slot).as_mut())) }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}
