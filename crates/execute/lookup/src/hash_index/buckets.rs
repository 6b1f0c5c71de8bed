//! Where buckets, their words and entries lie.

use core::marker::PhantomData;
use core::ptr::NonNull;

use workahead_walks::Place;

use super::first_step::{Apart, FirstStep, Lines};
use super::shape::{LOW, Layout, Shape, TAGS_BYTES};
use crate::memory::{Memory, Pages};

/// The position of the overflow bits.
pub(super) const OVERFLOW_SHIFT: u32 = 56;
/// Full buckets after which a key is put into the next one that is not.
const JUMPS: u32 = 8;
/// The longest jump, and one more.
const JUMP_MAX: usize = 256;

/// The bucket of tables without memory, its word the last: no slot is taken, and none is ever
/// given. A pair of lines, so that what a look-up asks for lies inside.
#[repr(align(128))]
struct Empty([u64; 16]);

static EMPTY: Empty = Empty([0; 16]);

/// The buckets of a table.
pub(super) struct Buckets<K, V> {
    /// The word of the first bucket.
    words: NonNull<u64>,
    /// The first slot of the first bucket; those after it lie in front of it.
    slots: NonNull<u8>,
    /// From the word of a bucket to that of the next.
    word_stride: usize,
    /// From the first slot of a bucket to that of the next.
    slot_stride: usize,
    /// At least one.
    count: usize,
    /// Whether words lie apart from entries: see [`Shape`].
    is_apart: bool,
    _entries: PhantomData<(K, V)>,
}

impl<K, V> Clone for Buckets<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Buckets<K, V> {}

impl<K, V> Buckets<K, V> {
    /// The static one.
    pub(super) const fn none() -> Self {
        let words = NonNull::from_ref(&EMPTY.0[15]);
        Self {
            words,
            slots: words.cast(),
            word_stride: 0,
            slot_stride: 0,
            count: 1,
            is_apart: false,
            _entries: PhantomData,
        }
    }

    /// Empty ones, and their memory.
    pub(super) fn new(count: usize, is_apart: bool, pages: Pages) -> (Self, Memory) {
        let Layout { word, slot, word_stride, slot_stride } =
            Shape::<K, V>::layout(count, is_apart);
        let stride = if is_apart { word_stride + slot_stride } else { word_stride };
        let bytes = count.checked_mul(stride).expect("capacity overflow");
        let memory = Memory::zeroed(bytes, Shape::<K, V>::ALIGN, pages);
        assert!(count > 0, "a table has a bucket");
        // SAFETY: there is a bucket, whose word and first slot lie inside.
        let (words, slots) = unsafe { (memory.start().add(word).cast(), memory.start().add(slot)) };
        let buckets =
            Self { words, slots, word_stride, slot_stride, count, is_apart, _entries: PhantomData };
        (buckets, memory)
    }

    /// The faster first step of a look-up.
    ///
    /// # Safety
    /// Nobody changes the buckets during `'t`.
    #[inline(always)]
    pub(super) unsafe fn first_step<'t>(self) -> FirstStep<'t, K, V> {
        // SAFETY: there are a word and slots for each bucket. The static bucket has a word without
        // tags.
        unsafe {
            match self.is_apart {
                true => FirstStep::Apart(Apart::new(self.words, self.slots.cast(), self.count)),
                false => FirstStep::Lines(Lines::new(self.words, self.count)),
            }
        }
    }

    #[inline(always)]
    pub(super) fn are_apart(self) -> bool {
        self.is_apart
    }

    pub(super) fn count(self) -> usize {
        self.count
    }

    /// Entries for which there is room.
    pub(super) fn limit(self) -> usize {
        self.count.saturating_mul(Shape::<K, V>::full_16(self.is_apart)) / 16
    }

    #[inline(always)]
    pub(super) fn home(self, hash: u64) -> Home {
        Home::of(hash, self.count)
    }

    /// The word of a bucket.
    #[inline(always)]
    pub(super) fn at(self, bucket: usize) -> NonNull<u64> {
        debug_assert!(bucket < self.count);
        // SAFETY: `home`, `next` and loops below `count` give numbers below it, and the memory
        // has a word for each.
        unsafe { self.words.byte_add(bucket * self.word_stride) }
    }

    /// A bit for each slot of a bucket.
    #[inline(always)]
    pub(super) fn taken(self) -> u64 {
        Shape::<K, V>::taken(self.is_apart)
    }

    /// How far on a key of a tag goes that finds its bucket full: keys that were one too many for a
    /// bucket scatter, where in the next one they would fill that, too. Those that have met many
    /// full ones look everywhere.
    #[inline(always)]
    pub(super) fn jump(self, tag: u8, passed: u32) -> usize {
        if passed < JUMPS && self.count > JUMP_MAX { 2 * usize::from(tag) + 1 } else { 1 }
    }

    #[inline(always)]
    pub(super) fn next(self, bucket: usize, jump: usize) -> usize {
        let next = bucket + jump;
        if next >= self.count { next - self.count } else { next }
    }

    #[inline(always)]
    pub(super) fn entry(self, bucket: usize, slot: usize) -> NonNull<(K, V)> {
        debug_assert!(slot < Shape::<K, V>::slots(self.is_apart));
        // SAFETY: slots below `slots` lie inside of the bucket. The static one has none, and none
        // of its tags is taken.
        unsafe {
            let first = self.slots.byte_add(bucket * self.slot_stride);
            first.byte_sub(slot * Shape::<K, V>::ENTRY).cast()
        }
    }

    #[inline(always)]
    pub(super) fn place(self, bucket: usize) -> Place {
        let requested = Shape::<K, V>::requested(self.is_apart);
        let word = self.at(bucket).cast::<u8>();
        // Wrapping: the pointer may go to the word alone. Only hints and helpers go to a place.
        let start = word.as_ptr().wrapping_sub(requested - TAGS_BYTES);
        Place::at(NonNull::new(start).unwrap_or(word), requested as u16)
    }
}

/// Where a key is looked up first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Home {
    pub(super) bucket: usize,
    /// Seven bits.
    pub(super) tag: u8,
}

impl Home {
    /// Of a hash among `count` buckets: those before it are for lower hashes. The tag is made of
    /// the bits after those that choose the bucket.
    ///
    /// A first product brings the hash's randomness to its high bits, where its own function may
    /// have left none (Fibonacci hashing; Knuth, TAOCP 3, §6.4).
    #[inline(always)]
    pub(super) fn of(hash: u64, count: usize) -> Self {
        let spread = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let product = u128::from(spread) * count as u128;
        Self { bucket: (product >> 64) as usize, tag: (product as u64 >> 57) as u8 }
    }
}

/// The bit that a key of a tag leaves where it does not find room.
#[inline(always)]
pub(super) fn overflow(tag: u8) -> u64 {
    1 << (OVERFLOW_SHIFT + u32::from(tag % 8))
}

/// A tag in each byte of a word: a load takes less than a product.
static TAGS: [u64; 128] = {
    let mut words = [0; 128];
    let mut tag = 0;
    while tag < words.len() {
        words[tag] = (0x80 | tag as u64) * LOW;
        tag += 1;
    }
    words
};

/// Bits of a slot in what [`same_tags`] returns.
const SAME_BITS: u32 =
    if cfg!(all(target_arch = "x86_64", target_feature = "sse2")) { 1 } else { 8 };

/// The slots of a word whose tags are equal to `tag`.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
pub(super) fn same_tags(word: u64, tag: u8) -> u64 {
    use core::arch::x86_64::{_mm_cmpeq_epi8, _mm_cvtsi64_si128, _mm_movemask_epi8};
    let tags = TAGS[usize::from(tag % 128)];
    // SAFETY: the target has SSE2.
    let same = unsafe {
        let [word, tags] = [word, tags].map(|word| _mm_cvtsi64_si128(word.cast_signed()));
        _mm_movemask_epi8(_mm_cmpeq_epi8(word, tags))
    };
    u64::from(same.cast_unsigned()) & 0x7f
}

/// The slots of a word whose tags are equal to `tag`. One just above an equal one may be counted
/// too when it differs in its lowest bit: a taken slot all the same, whose key is compared.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline(always)]
pub(super) fn same_tags(word: u64, tag: u8) -> u64 {
    let differences = word ^ TAGS[usize::from(tag % 128)];
    differences.wrapping_sub(LOW) & !differences & super::shape::HIGH
}

/// The first of some slots that [`same_tags`] returned.
#[inline(always)]
pub(super) fn same_slot(slots: u64) -> usize {
    (slots.trailing_zeros() / SAME_BITS) as usize
}

/// The slot of the lowest bit.
#[inline(always)]
pub(super) fn slot_of(bits: u64) -> usize {
    (bits.trailing_zeros() / 8) as usize
}
