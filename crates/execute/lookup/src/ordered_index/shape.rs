//! What the sizes of keys and values make of a node: lines, keys, and where they begin.

use core::marker::PhantomData;
use core::mem::needs_drop;

use workahead_walks::place::LINE_BYTES;

use super::nodes::Head;

/// Sizes and offsets that keys and values make.
pub(super) struct Shape<K, V>(PhantomData<(K, V)>);

const fn larger(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

impl<K, V> Shape<K, V> {
    /// Where keys begin.
    pub(super) const KEYS: usize = size_of::<Head>().next_multiple_of(align_of::<K>());
    /// Keys of a node: as many as fit in a line with the head, seven at least, 14 at most.
    pub(super) const MOST: usize = {
        let in_line = match size_of::<K>() {
            0 => 7,
            key => LINE_BYTES.saturating_sub(Self::KEYS) / key,
        };
        if in_line < 7 {
            7
        } else if in_line > 14 {
            14
        } else {
            in_line
        }
    };
    /// Children of an inner node.
    pub(super) const CHILDREN: usize = Self::MOST + 1;
    const KEYS_END: usize = Self::KEYS + Self::MOST * size_of::<K>();
    pub(super) const VALUES: usize = Self::KEYS_END.next_multiple_of(align_of::<V>());
    pub(super) const INNER_ALIGN: usize = larger(LINE_BYTES, align_of::<K>());
    /// A leaf of two lines begins at an even one: processors fetch those together, and so does a
    /// helper.
    pub(super) const LEAF_ALIGN: usize = {
        let align = larger(Self::INNER_ALIGN, align_of::<V>());
        let bytes = (Self::VALUES + Self::MOST * size_of::<V>()).next_multiple_of(align);
        if bytes == 2 * LINE_BYTES { bytes } else { align }
    };
    pub(super) const INNER_BYTES: usize = Self::KEYS_END.next_multiple_of(Self::INNER_ALIGN);
    pub(super) const LEAF_BYTES: usize =
        (Self::VALUES + Self::MOST * size_of::<V>()).next_multiple_of(Self::LEAF_ALIGN);
    /// Bytes a search reads.
    pub(super) const SEARCHED: u16 = if Self::KEYS_END < 512 { Self::KEYS_END as u16 } else { 512 };
    /// Whether a search compares all keys of a node: for plain keys whose comparison costs less
    /// than a branch that goes wrong, or than waiting for the one before. Beyond 8 bytes only for
    /// those with a smaller alignment than references, so that all that a comparison reads is in
    /// the node: with 12 bytes, 200 k look-ups took 122 ns each by halves, and take 89. Ten such
    /// keys to a node of two lines, where these are seven, gained nothing.
    pub(super) const IS_COUNTED: bool = {
        let is_short = size_of::<K>() <= 16 && align_of::<K>() < align_of::<usize>();
        !needs_drop::<K>() && (size_of::<K>() <= 8 || is_short)
    };
}
