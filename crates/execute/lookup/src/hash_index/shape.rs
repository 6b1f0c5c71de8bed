//! The shape of a bucket by the size of an entry: lines, slots, and how full they become.

use core::marker::PhantomData;

use workahead_walks::place::LINE_BYTES;

/// Bytes of the word behind the entries.
pub(super) const TAGS_BYTES: usize = 8;
/// Two lines.
const PAIR_BYTES: usize = 2 * LINE_BYTES;
/// Tags of a word.
const TAGS_MAX: usize = 7;
/// The lowest bit of every tag.
pub(super) const LOW: u64 = 0x0001_0101_0101_0101;
/// The highest bit of every tag: the slot is taken.
pub(super) const HIGH: u64 = LOW << 7;

/// The shape of a bucket by an entry's size.
pub(super) struct Shape<K, V>(PhantomData<(K, V)>);

impl<K, V> Shape<K, V> {
    pub(super) const ENTRY: usize = size_of::<(K, V)>();
    /// From where entries end to the end of the bucket.
    pub(super) const BEHIND: usize = TAGS_BYTES.next_multiple_of(align_of::<(K, V)>());
    /// Entries for which there is room in `bytes` bytes, with their tags.
    const fn entries_in(bytes: usize) -> usize {
        match Self::ENTRY {
            0 => TAGS_MAX,
            entry => bytes.saturating_sub(Self::BEHIND) / entry,
        }
    }
    /// A bucket is a line, if that has three entries; else a pair of lines, if that has four. With
    /// fewer, too many keys would have to go to another bucket: with entries that are larger still,
    /// tags lead to the lines of one entry.
    const SLOTS: usize = match (Self::entries_in(LINE_BYTES), Self::entries_in(PAIR_BYTES)) {
        (TAGS_MAX.., _) | (_, ..4) => TAGS_MAX,
        (3.., _) => Self::entries_in(LINE_BYTES),
        (_, TAGS_MAX..) => TAGS_MAX,
        (_, slots) => slots,
    };
    const BYTES: usize = Self::BEHIND + Self::SLOTS * Self::ENTRY;
    /// Pairs begin at even lines: processors fetch those together.
    pub(super) const ALIGN: usize = {
        let lines = if Self::BYTES <= LINE_BYTES { LINE_BYTES } else { PAIR_BYTES };
        let entry = align_of::<(K, V)>();
        if entry > lines { entry } else { lines }
    };
    /// From a bucket to the next.
    pub(super) const STRIDE: usize = Self::BYTES.next_multiple_of(Self::ALIGN);

    /// From a bucket to the next where words lie apart.
    pub(super) const APART_STRIDE: usize =
        (TAGS_MAX * Self::ENTRY).next_multiple_of(align_of::<u64>());

    /// Where `count` buckets lie. In a small table all words are behind all entries: a first-level
    /// cache holds them, and a look-up waits for one line of the second, that of its entry. In a
    /// larger one a bucket is a line or a pair, its word at the end, in a pair's odd line: random
    /// even lines alone take two to four times as long as odd ones on an AMD EPYC (Zen 4). With
    /// tags in the first line, misses of 16 M entries of 24 bytes took 38 ns there, and take 12 ns.
    pub(super) fn layout(count: usize, is_apart: bool) -> Layout {
        if is_apart {
            return Layout {
                word: count.saturating_mul(Self::APART_STRIDE),
                slot: (TAGS_MAX - 1) * Self::ENTRY,
                word_stride: TAGS_BYTES,
                slot_stride: Self::APART_STRIDE,
            };
        }
        let word = Self::STRIDE - TAGS_BYTES;
        let slot = Self::STRIDE - Self::BEHIND - Self::ENTRY;
        Layout { word, slot, word_stride: Self::STRIDE, slot_stride: Self::STRIDE }
    }

    /// Buckets for `capacity` entries, if a number holds them.
    pub(super) fn buckets(capacity: usize, is_apart: bool) -> Option<usize> {
        Some(capacity.checked_mul(16)?.div_ceil(Self::full_16(is_apart)))
    }

    /// Whether an entry is at hand when its tag is, where words do not lie apart.
    #[inline(always)]
    pub(super) const fn is_with_tags(slot: usize) -> bool {
        Self::BYTES <= PAIR_BYTES || Self::BEHIND + (slot + 1) * Self::ENTRY <= LINE_BYTES
    }

    /// The slots of a bucket.
    pub(super) const fn slots(is_apart: bool) -> usize {
        if is_apart { TAGS_MAX } else { Self::SLOTS }
    }

    /// First request of a look-up: a bucket of one or two lines, or the line of tags. Both lines
    /// of a pair at once: hits of 16 M entries of 24 bytes took 33 ns in two steps, and take 16 ns.
    #[inline(always)]
    pub(super) const fn requested(is_apart: bool) -> usize {
        match (is_apart, Self::STRIDE <= PAIR_BYTES) {
            (true, _) => TAGS_BYTES,
            (_, true) => Self::STRIDE,
            (_, false) => LINE_BYTES,
        }
    }

    /// A bit for each slot, where its tag has its highest.
    #[inline(always)]
    pub(super) const fn taken(is_apart: bool) -> u64 {
        HIGH >> (8 * (TAGS_MAX - Self::slots(is_apart)))
    }

    /// Entries that 16 buckets hold before the table grows. Keys fall on buckets at random: with
    /// these 1 to 3 in a hundred find theirs full, 9 where it has three slots.
    pub(super) const fn full_16(is_apart: bool) -> usize {
        match Self::slots(is_apart) {
            3 => 29,
            4 => 26,
            5 => 38,
            6 => 48,
            _ => 58,
        }
    }
}

/// Where buckets lie in a table's memory, in bytes.
pub(super) struct Layout {
    /// The first bucket's word.
    pub(super) word: usize,
    /// The first bucket's first slot; those after it lie in front of it.
    pub(super) slot: usize,
    /// From a bucket's word to the next one's.
    pub(super) word_stride: usize,
    /// From a bucket's first slot to the next one's.
    pub(super) slot_stride: usize,
}
