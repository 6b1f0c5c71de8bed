//! The first step of a look-up, which most end with.
//!
//! It has few instructions, and the rare cases
//! are left to the steps of [`Table`](super::table::Table). A processor overlaps the more look-ups
//! by itself the shorter they are.

use core::marker::PhantomData;
use core::ptr::{self, NonNull};

use workahead_walks::Intent;
use workahead_walks::memory::Hint;
use workahead_walks::place::LINE_BYTES;

use super::buckets::{Home, overflow, same_slot, same_tags};
use super::shape::{Shape, TAGS_BYTES};

/// By the kind of a table.
pub(crate) enum FirstStep<'t, K, V> {
    Apart(Apart<'t, K, V>),
    Lines(Lines<'t, K, V>),
}

/// Of a small table, whose words lie apart from its entries: a word is in the first-level cache, or
/// nearly, and an entry in the second.
pub(crate) struct Apart<'t, K, V> {
    words: NonNull<u64>,
    /// The first slot of the first bucket; those after it lie in front of it.
    slots: NonNull<(K, V)>,
    count: usize,
    _entries: PhantomData<&'t (K, V)>,
}

impl<K, V> Clone for Apart<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Apart<'_, K, V> {}

/// The entry that a look-up compares first: null if its key is missing, at address one if the steps
/// must say.
pub(super) struct Likely<K, V>(*const (K, V));

impl<K, V> Clone for Likely<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Likely<K, V> {}

impl<K, V> Likely<K, V> {
    pub(super) const MISSING: Self = Self(ptr::null());
    const FURTHER: Self = Self(ptr::without_provenance(1));

    /// Where it lies, for a hint.
    #[inline(always)]
    pub(super) fn address(self) -> *const u8 {
        self.0.cast()
    }
}

/// The result of the first step of a look-up.
pub(crate) enum First<'t, K, V> {
    Found(&'t (K, V)),
    Missing,
    /// The steps say.
    Further,
}

impl<'t, K, V> First<'t, K, V> {
    /// The value, which the steps say where this one does not.
    #[inline(always)]
    pub(super) fn value(self, further: impl FnOnce() -> Option<&'t V>) -> Option<&'t V> {
        match self {
            Self::Found(entry) => Some(&entry.1),
            Self::Missing => None,
            Self::Further => further(),
        }
    }
}

impl<'t, K, V> Apart<'t, K, V> {
    /// # Safety
    /// There are `count` words, one at least, and as many buckets of slots, which nobody changes
    /// during `'t`; an entry lies in each slot whose tag is taken.
    #[inline(always)]
    pub(super) unsafe fn new(words: NonNull<u64>, slots: NonNull<(K, V)>, count: usize) -> Self {
        Self { words, slots, count, _entries: PhantomData }
    }

    /// Where a key of this hash is looked up, with a hint for its word.
    #[inline(always)]
    pub(super) fn hinted<H: Hint>(self, hash: u64) -> Home {
        let home = Home::of(hash, self.count);
        H::line(self.word(home).cast().as_ptr(), Intent::Read);
        home
    }

    #[inline(always)]
    fn word(self, home: Home) -> NonNull<u64> {
        // SAFETY: `Home::of` gives numbers of buckets.
        unsafe { self.words.add(home.bucket) }
    }

    /// An entry of a bucket.
    #[inline(always)]
    fn entry(self, home: Home, slot: usize) -> NonNull<(K, V)> {
        let before = slot * Shape::<K, V>::ENTRY;
        // SAFETY: the bucket has a slot for every tag of its word.
        unsafe { self.slots.byte_add(home.bucket * Shape::<K, V>::APART_STRIDE).byte_sub(before) }
    }

    /// The entry that a key is compared with first.
    #[inline(always)]
    pub(super) fn likely(self, home: Home) -> Likely<K, V> {
        // SAFETY: it is a bucket's word.
        let word = u64::from_le(unsafe { self.word(home).read() });
        let same = same_tags(word, home.tag);
        if same != 0 {
            return Likely(self.entry(home, same_slot(same)).as_ptr());
        }
        if word & overflow(home.tag) == 0 { Likely::MISSING } else { Likely::FURTHER }
    }

    /// Compares it.
    #[inline(always)]
    pub(super) fn compare(
        self,
        likely: Likely<K, V>,
        is_key: impl FnOnce(&K) -> bool,
    ) -> First<'t, K, V> {
        if likely.0.addr() > Likely::<K, V>::FURTHER.0.addr() {
            // SAFETY: a tag like that of a key is of a slot that is taken, which has an entry.
            let entry: &(K, V) = unsafe { &*likely.0 };
            // Another slot may have that tag, too, or another bucket the key.
            return if is_key(&entry.0) { First::Found(entry) } else { First::Further };
        }
        if likely.0.is_null() { First::Missing } else { First::Further }
    }

    /// Finds and compares it.
    #[inline(always)]
    pub(super) fn first(self, hash: u64, is_key: impl FnOnce(&K) -> bool) -> First<'t, K, V> {
        let home = Home::of(hash, self.count);
        // SAFETY: it is a bucket's word.
        let word = u64::from_le(unsafe { self.word(home).read() });
        let same = same_tags(word, home.tag);
        if same != 0 {
            // SAFETY: a tag like that of a key is of a slot that is taken, which has an entry.
            let entry: &(K, V) = unsafe { self.entry(home, same_slot(same)).as_ref() };
            return if is_key(&entry.0) { First::Found(entry) } else { First::Further };
        }
        if word & overflow(home.tag) == 0 { First::Missing } else { First::Further }
    }
}

/// Of a table whose words lie with their entries.
pub(crate) struct Lines<'t, K, V> {
    words: NonNull<u64>,
    count: usize,
    _entries: PhantomData<&'t (K, V)>,
}

impl<K, V> Clone for Lines<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Lines<'_, K, V> {}

impl<'t, K, V> Lines<'t, K, V> {
    /// # Safety
    /// There are `count` buckets with their words, one at least, which nobody changes during `'t`;
    /// an entry lies in each slot whose tag is taken.
    #[inline(always)]
    pub(super) unsafe fn new(words: NonNull<u64>, count: usize) -> Self {
        Self { words, count, _entries: PhantomData }
    }

    /// Where a key of this hash is looked up.
    #[inline(always)]
    pub(super) fn home(self, hash: u64) -> Home {
        Home::of(hash, self.count)
    }

    #[inline(always)]
    fn word(self, home: Home) -> NonNull<u64> {
        // SAFETY: `Home::of` gives numbers of buckets.
        unsafe { self.words.byte_add(home.bucket * Shape::<K, V>::STRIDE) }
    }

    /// Hints at what is read first.
    #[inline(always)]
    pub(super) fn hint<H: Hint>(self, home: Home) {
        let word = self.word(home).cast::<u8>().as_ptr();
        let mut before = 0;
        while before < Shape::<K, V>::requested(false) {
            H::line(word.wrapping_sub(before), Intent::Read);
            before += LINE_BYTES;
        }
    }

    /// Compares. If it waits for lines, entries that are not at hand are left to the steps, too.
    #[inline(always)]
    pub(super) fn first(
        self,
        home: Home,
        waits: bool,
        is_key: impl FnOnce(&K) -> bool,
    ) -> First<'t, K, V> {
        // SAFETY: it is a bucket's word.
        let word = u64::from_le(unsafe { self.word(home).read() });
        let same = same_tags(word, home.tag);
        if same != 0 {
            let slot = same_slot(same);
            if waits && !Shape::<K, V>::is_with_tags(slot) {
                return First::Further;
            }
            let before = Shape::<K, V>::BEHIND - TAGS_BYTES + (slot + 1) * Shape::<K, V>::ENTRY;
            // SAFETY: a tag like that of a key is of a slot that is taken, which has an entry.
            let entry: &(K, V) = unsafe { self.word(home).byte_sub(before).cast().as_ref() };
            // Another slot may have that tag, too, or another bucket the key.
            return if is_key(&entry.0) { First::Found(entry) } else { First::Further };
        }
        if word & overflow(home.tag) == 0 { First::Missing } else { First::Further }
    }
}
