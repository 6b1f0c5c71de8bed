//! The two node sizes, and where keys, children and RIDs lie in them.
//!
//! ```text
//!            words of 4 bytes        64 B          128 B (the paper's)
//! inner      keys                    0..14         0..30
//!            child group             14            30        one offset: children are contiguous
//!            keys in use             15            31
//! leaf       keys                    0..7          0..14
//!            header                  7             14        a NaN: equal to no key
//!            RIDs                    8..15         16..30
//! ```
//!
//! Keys and RIDs of a leaf lie apart, so that one vector comparison sees nothing but keys: of a
//! 128-byte leaf a search reads the first line, and the second only to fetch its RID. Unused key
//! words are NaN, which is less than nothing and equal to nothing: no search needs a length.

use bytemuck::{Pod, Zeroable};

/// Bytes of the unit in which 32-bit offsets count, so that they reach 32 GiB of nodes.
pub(super) const UNIT_BYTES: usize = 8;

/// A key word in no use. Quiet, so that comparing it raises nothing.
const UNUSED: u32 = 0x7FC0_0000;

/// Header bit: the next leaf begins with this leaf's last key.
const CONTINUES: u32 = 1 << 8;

/// A node of one or two cache lines.
///
/// Sealed: the searches rely on the geometry above.
pub trait Node: Send + Sync + Pod + sealed::Words {
    /// Most keys of an inner node; it has one more child.
    const INNER_KEYS: usize;
    /// Most (key, RID) pairs of a leaf.
    const LEAF_PAIRS: usize;
    /// Bytes of a node.
    const BYTES: usize = size_of::<Self>();
}

pub(super) mod sealed {
    /// The words of a node.
    pub trait Words {
        /// All of them.
        fn words(&self) -> &[u32];
        /// All of them, to be filled.
        fn words_mut(&mut self) -> &mut [u32];
    }
}

/// A node of 64 bytes: one line on today's machines.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Node64([u32; 16]);

/// A node of 128 bytes: the paper's, one second-level line of its Pentium 4.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(128))]
pub struct Node128([u32; 32]);

macro_rules! geometry {
    ($node:ty, inner: $inner:literal, leaf: $leaf:literal) => {
        impl sealed::Words for $node {
            #[inline(always)]
            fn words(&self) -> &[u32] {
                &self.0
            }
            #[inline(always)]
            fn words_mut(&mut self) -> &mut [u32] {
                &mut self.0
            }
        }
        impl Node for $node {
            const INNER_KEYS: usize = $inner;
            const LEAF_PAIRS: usize = $leaf;
        }
        const _: () = {
            // Keys, one group and one count fill an inner node.
            assert!(4 * ($inner + 2) == size_of::<$node>());
            // The header follows the keys within the first half, the RIDs fit in the second.
            assert!($leaf < half::<$node>() && $leaf + half::<$node>() <= 2 * half::<$node>());
            // Slots of a leaf are numbered in the low bits of an offset.
            assert!($leaf <= units::<$node>() && units::<$node>().is_power_of_two());
            assert!(size_of::<$node>() == align_of::<$node>());
            // The header counts the pairs below its flag, inside a NaN's payload.
            assert!(($leaf as u32) < CONTINUES && CONTINUES < UNUSED & 0x0040_0000);
        };
    };
}

geometry!(Node64, inner: 14, leaf: 7);
geometry!(Node128, inner: 30, leaf: 14);

/// Words of half a node.
pub(super) const fn half<N>() -> usize {
    size_of::<N>() / 8
}

/// Units of a node.
pub(super) const fn units<N>() -> usize {
    size_of::<N>() / UNIT_BYTES
}

/// An inner node from its separators: the largest key below each child but the last.
pub(super) fn inner<N: Node>(separators: impl ExactSizeIterator<Item = f32>, group: u32) -> N {
    let mut node = N::zeroed();
    let words = node.words_mut();
    words[..N::INNER_KEYS].fill(UNUSED);
    words[N::INNER_KEYS] = group;
    words[N::INNER_KEYS + 1] = separators.len() as u32;
    for (word, separator) in words.iter_mut().zip(separators) {
        *word = separator.to_bits();
    }
    node
}

/// A leaf from its pairs.
pub(super) fn leaf<N: Node>(pairs: &[(f32, u32)], continues: bool) -> N {
    let mut node = N::zeroed();
    let words = node.words_mut();
    words[..half::<N>()].fill(UNUSED);
    words[N::LEAF_PAIRS] = UNUSED | pairs.len() as u32 | if continues { CONTINUES } else { 0 };
    for (slot, &(key, rid)) in pairs.iter().enumerate() {
        words[slot] = key.to_bits();
        words[half::<N>() + slot] = rid;
    }
    node
}

/// Offset of an inner node's first child, in units.
#[inline(always)]
pub(super) fn group<N: Node>(node: &N) -> u32 {
    node.words()[N::INNER_KEYS]
}

/// Keys in use of an inner node.
#[inline(always)]
pub(super) fn separators<N: Node>(node: &N) -> &[u32] {
    let count = node.words()[N::INNER_KEYS + 1] as usize;
    &node.words()[..count.min(N::INNER_KEYS)]
}

/// Keys in use of a leaf.
#[inline(always)]
pub(super) fn keys<N: Node>(node: &N) -> &[u32] {
    let count = node.words()[N::LEAF_PAIRS] & (CONTINUES - 1);
    &node.words()[..(count as usize).min(N::LEAF_PAIRS)]
}

/// RID of a leaf's slot.
#[inline(always)]
pub(super) fn rid<N: Node>(node: &N, slot: u32) -> u32 {
    node.words()[half::<N>() + slot as usize % half::<N>()]
}

/// Whether `slot` is the leaf's last and its key goes on in the next leaf.
#[inline(always)]
pub(super) fn goes_on<N: Node>(node: &N, slot: u32) -> bool {
    node.words()[N::LEAF_PAIRS] == UNUSED | CONTINUES | (slot + 1)
}
