//! What the size of an entry makes of a bucket: lines, slots, and how full they become.

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

/// What an entry's size makes of a bucket.
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
    const ALIGN: usize = {
        let lines = if Self::BYTES <= LINE_BYTES { LINE_BYTES } else { PAIR_BYTES };
        let entry = align_of::<(K, V)>();
        if entry > lines { entry } else { lines }
    };
    pub(super) const fn align(is_wide: bool) -> usize {
        if Self::HAS_WIDE && is_wide { PAIR_BYTES } else { Self::ALIGN }
    }
    /// From a bucket to the next.
    const STRIDE: usize = Self::BYTES.next_multiple_of(Self::ALIGN);
    /// Whether an entry is at hand when its tag is.
    #[inline(always)]
    pub(super) const fn is_with_tags(slot: usize) -> bool {
        Self::BYTES <= PAIR_BYTES || Self::BEHIND + (slot + 1) * Self::ENTRY <= LINE_BYTES
    }

    /// Whether small tables have buckets of a pair of lines where others have one line, since that
    /// has fewer slots than a word has tags.
    const HAS_WIDE: bool = Self::STRIDE == LINE_BYTES && Self::SLOTS < TAGS_MAX;
    /// The slots of a bucket, and of a wide one.
    pub(super) const fn slots(is_wide: bool) -> usize {
        let wide = Self::entries_in(PAIR_BYTES);
        match (Self::HAS_WIDE && is_wide, wide < TAGS_MAX) {
            (false, _) => Self::SLOTS,
            (true, true) => wide,
            (true, false) => TAGS_MAX,
        }
    }
    /// From a bucket to the next.
    #[inline(always)]
    pub(super) const fn stride(is_wide: bool) -> usize {
        if Self::HAS_WIDE && is_wide { PAIR_BYTES } else { Self::STRIDE }
    }
    /// Where a bucket has its word of tags: at the end, in a pair's odd line. Random even lines
    /// alone take two to four times as long as odd ones on an AMD EPYC (Zen 4): with tags in the
    /// first line, misses of 16 M entries of 24 bytes took 38 ns there, and take 12 ns.
    pub(super) const fn tags(is_wide: bool) -> usize {
        Self::stride(is_wide) - TAGS_BYTES
    }
    /// What a look-up requests first: a bucket of one or two lines, or the line of tags. Both lines
    /// of a pair at once: hits of 16 M entries of 24 bytes took 33 ns in two steps, and take 16 ns.
    #[inline(always)]
    pub(super) const fn asked(is_wide: bool) -> usize {
        let stride = Self::stride(is_wide);
        if stride <= PAIR_BYTES { stride } else { LINE_BYTES }
    }
    /// Bytes of a table of wide buckets for each entry that it has room for, rounded up.
    pub(super) const fn wide_bytes_an_entry() -> usize {
        (16 * Self::stride(true)).div_ceil(Self::full_16(true))
    }
    /// A bit for each slot, where its tag has its highest.
    #[inline(always)]
    pub(super) const fn taken(is_wide: bool) -> u64 {
        HIGH >> (8 * (TAGS_MAX - Self::slots(is_wide)))
    }
    /// Entries that 16 buckets hold before the table grows. Keys fall on buckets at random: with
    /// these 1 to 3 in a hundred find theirs full, 9 where it has three slots.
    pub(super) const fn full_16(is_wide: bool) -> usize {
        match Self::slots(is_wide) {
            3 => 29,
            4 => 26,
            5 => 38,
            6 => 48,
            _ => 58,
        }
    }
}
