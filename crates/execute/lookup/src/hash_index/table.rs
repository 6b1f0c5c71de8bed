//! Buckets of whole cache lines: a word of tags, then entries.
//!
//! ```text
//!  bucket   [… entry | entry | entry | t t t t t t t o]     a line, a pair, or those of 7 entries
//!            7 tags: 0 is a free slot, else 0x80 and 7 bits of the hash
//!            o: a bit for each eighth of the hashes of which a key had to go further
//!  bucket of a key = high bits of its hash × buckets; when it is full, one some way on
//! ```
//!
//! The tags are those of Facebook's F14 (Bronson and Shi, 2019). Its overflow counts sent every
//! eighth look-up that misses to a second line; the bits of Boost's `unordered_flat_map` (López
//! Muñoz, 2022) send one in sixty there. A removal can't take them back: as there, it takes room
//! instead, so that a table from which many entries were removed is made anew. That a look-up is
//! one place, and that buckets are in the order of hashes, whatever their number, is from the
//! join's table. So a table grows from its first bucket to its last, side by side.

use core::marker::PhantomData;
use core::mem::needs_drop;
use core::ptr::NonNull;

use workahead_walks::{Memory, Place};

use super::shape::{HIGH, LOW, Shape, TAGS_BYTES};
use crate::memory::{self, Pages, drop_entries};

/// The position of the overflow bits.
const OVERFLOW_SHIFT: u32 = 56;
/// Bytes of an entry that are requested: its key, or what compares most often.
const ASKED_BYTES_MAX: usize = 256;
/// Full buckets after which a key is put into the next one that is not.
const JUMPS: u32 = 8;
/// The longest jump, and one more.
const JUMP_MAX: usize = 256;

/// Where a look-up is: plain data that a schedule keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    bucket: usize,
    /// Slots with the right tag that are yet to be compared; the first was requested.
    candidates: u64,
    /// Buckets passed.
    passed: u32,
    tag: u8,
}

/// What a step of a look-up came to.
pub(crate) enum Step<'t, K, V> {
    /// The entry, and its slot in the bucket.
    Found(&'t (K, V), usize),
    Missing,
    /// Goes on when this place is at hand.
    Next(Place),
}

/// A slot that holds an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    bucket: usize,
    slot: usize,
}

/// The word of the bucket of tables without memory: no slot is taken, and none is ever given.
static EMPTY: u64 = 0;

/// Entries by their hashes.
pub(crate) struct Table<K, V> {
    /// The word of the first bucket.
    first: NonNull<u64>,
    /// At least one.
    buckets: usize,
    len: usize,
    /// Entries before it is made anew: fewer than at first if some were removed.
    limit: usize,
    /// Most buckets that a key was ever put past its own.
    reach: u32,
    /// None of its own: the static bucket.
    memory: Option<memory::Memory>,
    _owns: PhantomData<(K, V)>,
}

// SAFETY: the table owns its entries, and gives out only ordinary borrows of them.
unsafe impl<K: Send, V: Send> Send for Table<K, V> {}
// SAFETY: as above; nothing changes behind a shared borrow.
unsafe impl<K: Sync, V: Sync> Sync for Table<K, V> {}

impl<K, V> Table<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            first: NonNull::from_ref(&EMPTY),
            buckets: 1,
            len: 0,
            limit: 0,
            reach: 0,
            memory: None,
            _owns: PhantomData,
        }
    }

    /// Room for `capacity` entries.
    pub(crate) fn with_capacity(capacity: usize, pages: Pages) -> Self {
        if capacity == 0 {
            return Self::new();
        }
        let full = Shape::<K, V>::FULL_16;
        let buckets = capacity.checked_mul(16).expect("capacity overflow").div_ceil(full);
        Self::with_buckets(buckets, pages)
    }

    fn with_buckets(buckets: usize, pages: Pages) -> Self {
        let bytes = buckets.checked_mul(Shape::<K, V>::STRIDE).expect("capacity overflow");
        let memory = memory::Memory::zeroed(bytes, Shape::<K, V>::ALIGN, pages);
        let limit = buckets.saturating_mul(Shape::<K, V>::FULL_16) / 16;
        // SAFETY: there is a bucket at least, and its word lies inside.
        let first = unsafe { memory.start().add(Shape::<K, V>::TAGS).cast() };
        let memory = Some(memory);
        Self { first, buckets, len: 0, limit, reach: 0, memory, _owns: PhantomData }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Entries for which there would be room if none had ever been removed.
    pub(crate) fn limit_at_first(&self) -> usize {
        match self.memory {
            Some(_) => self.buckets.saturating_mul(Shape::<K, V>::FULL_16) / 16,
            None => 0,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, memory::Memory::bytes)
    }

    /// Brings a hash's randomness to its high bits, where its own function may have left none
    /// (Fibonacci hashing; Knuth, TAOCP 3, §6.4).
    #[inline(always)]
    fn spread(hash: u64) -> u64 {
        hash.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// Bits below those that choose among any usual number of buckets.
    #[inline(always)]
    fn tag(spread: u64) -> u8 {
        (spread >> 24) as u8 | 0x80
    }

    /// The bit that a key of a tag leaves where it does not find room.
    #[inline(always)]
    fn overflow(tag: u8) -> u64 {
        1 << (OVERFLOW_SHIFT + u32::from(tag & 7))
    }

    #[inline(always)]
    fn home(&self, spread: u64) -> usize {
        ((u128::from(spread) * self.buckets as u128) >> 64) as usize
    }

    /// The word of a bucket.
    #[inline(always)]
    fn at(&self, bucket: usize) -> NonNull<u64> {
        debug_assert!(bucket < self.buckets);
        // SAFETY: `home`, `next` and loops below `buckets` give numbers below it, and the memory
        // has `buckets * STRIDE` bytes.
        unsafe { self.first.byte_add(bucket * Shape::<K, V>::STRIDE) }
    }

    /// How far on a key of a tag goes that finds its bucket full: keys that were one too many for a
    /// bucket scatter, where in the next one they would fill that, too. Those that have met many
    /// full ones look everywhere.
    #[inline(always)]
    fn jump(&self, tag: u8, passed: u32) -> usize {
        if passed < JUMPS && self.buckets > JUMP_MAX { 2 * usize::from(tag & 0x7f) + 1 } else { 1 }
    }

    #[inline(always)]
    fn next(&self, bucket: usize, jump: usize) -> usize {
        let next = bucket + jump;
        if next >= self.buckets { next - self.buckets } else { next }
    }

    #[inline(always)]
    fn word(&self, bucket: usize) -> &u64 {
        // SAFETY: every bucket ends with a word, aligned; writers hold `&mut self`.
        unsafe { self.at(bucket).as_ref() }
    }

    #[inline(always)]
    fn word_mut(&mut self, bucket: usize) -> &mut u64 {
        debug_assert!(self.memory.is_some(), "the static bucket is never written");
        // SAFETY: as in `word`, in memory of the table's own: callers found or make an entry.
        unsafe { self.at(bucket).as_mut() }
    }

    #[inline(always)]
    fn entry(&self, bucket: usize, slot: usize) -> NonNull<(K, V)> {
        debug_assert!(slot < Shape::<K, V>::SLOTS && self.memory.is_some());
        let before = Shape::<K, V>::BEHIND - TAGS_BYTES + (slot + 1) * Shape::<K, V>::ENTRY;
        // SAFETY: slots below `SLOTS` lie inside of the bucket. The static one has none, and none
        // of its tags is taken.
        unsafe { self.at(bucket).byte_sub(before).cast() }
    }

    #[inline(always)]
    fn place(&self, bucket: usize) -> Place {
        let word = self.at(bucket).cast::<u8>();
        // Wrapping: before the static word there may be nothing. Only hints go to a place.
        let start = word.as_ptr().wrapping_sub(Shape::<K, V>::ASKED - TAGS_BYTES);
        Place::at(NonNull::new(start).unwrap_or(word), Shape::<K, V>::ASKED as u16)
    }

    /// Begins a look-up.
    #[inline(always)]
    pub(crate) fn start(&self, hash: u64) -> (Position, Place) {
        let spread = Self::spread(hash);
        let bucket = self.home(spread);
        let tag = Self::tag(spread);
        (Position { bucket, candidates: 0, passed: 0, tag }, self.place(bucket))
    }

    /// Where a key of this hash is put, for a hint.
    pub(crate) fn home_place(&self, hash: u64) -> Place {
        self.place(self.home(Self::spread(hash)))
    }

    /// Compares what is at hand, and says where to go on.
    #[inline(always)]
    pub(crate) fn step<M: Memory>(
        &self,
        at: &mut Position,
        memory: &mut M,
        mut is_key: impl FnMut(&K) -> bool,
    ) -> Step<'_, K, V> {
        let word = u64::from_le(*memory.read(self.word(at.bucket)));
        let mut is_at_hand = at.candidates != 0;
        if !is_at_hand {
            at.candidates = same_tags(word, at.tag) & Shape::<K, V>::TAKEN;
        }
        while at.candidates != 0 {
            let slot = slot_of(at.candidates);
            let entry = self.entry(at.bucket, slot);
            if !is_at_hand && !Shape::<K, V>::is_with_tags(slot) {
                let bytes = Shape::<K, V>::ENTRY.min(ASKED_BYTES_MAX) as u16;
                return Step::Next(Place::at(entry.cast(), bytes));
            }
            is_at_hand = false;
            at.candidates &= at.candidates - 1;
            // SAFETY: a tag like that of a key is of a slot that is taken, which has an entry.
            let entry: &(K, V) = unsafe { entry.as_ref() };
            if is_key(&memory.read(entry).0) {
                return Step::Found(entry, slot);
            }
        }
        if word & Self::overflow(at.tag) == 0 || at.passed >= self.reach {
            return Step::Missing;
        }
        at.bucket = self.next(at.bucket, self.jump(at.tag, at.passed));
        at.passed += 1;
        Step::Next(self.place(at.bucket))
    }

    /// The slot of a key.
    pub(crate) fn find(&self, hash: u64, mut is_key: impl FnMut(&K) -> bool) -> Option<Slot> {
        let (mut at, _) = self.start(hash);
        loop {
            match self.step(&mut at, &mut workahead_walks::Direct, &mut is_key) {
                Step::Found(_, slot) => {
                    return Some(Slot { bucket: at.bucket, slot });
                }
                Step::Missing => return None,
                Step::Next(_) => {}
            }
        }
    }

    pub(crate) fn get(&self, slot: Slot) -> &(K, V) {
        // SAFETY: slots are made by `find`, and only `&mut self` ends their entries.
        unsafe { self.entry(slot.bucket, slot.slot).as_ref() }
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut (K, V) {
        // SAFETY: as in `get`, and `&mut self` makes the borrow unique.
        unsafe { self.entry(slot.bucket, slot.slot).as_mut() }
    }

    /// Adds an entry whose key is not there. There is room: `len() < limit()`.
    pub(crate) fn add(&mut self, hash: u64, entry: (K, V)) -> Slot {
        assert!(self.len < self.limit, "the table grows before it is full");
        let spread = Self::spread(hash);
        let tag = Self::tag(spread);
        let mut bucket = self.home(spread);
        let mut passed = 0_u32;
        let free = loop {
            let word = u64::from_le(*self.word(bucket));
            let free = !word & Shape::<K, V>::TAKEN;
            if free != 0 {
                break free;
            }
            *self.word_mut(bucket) = (word | Self::overflow(tag)).to_le();
            bucket = self.next(bucket, self.jump(tag, passed));
            passed += 1;
        };
        let slot = slot_of(free);
        // SAFETY: the slot is free, so that nothing is overwritten, and `&mut self` is unique.
        unsafe { self.entry(bucket, slot).write(entry) };
        let word = u64::from_le(*self.word(bucket));
        let word = word | u64::from(tag) << (8 * slot);
        *self.word_mut(bucket) = word.to_le();
        self.len += 1;
        self.reach = self.reach.max(passed);
        Slot { bucket, slot }
    }

    /// Takes an entry out. The bits of the buckets that it passed stay, for those of others: from a
    /// bucket that has some, a removal takes room, too.
    pub(crate) fn remove(&mut self, slot: Slot) -> (K, V) {
        let Slot { bucket, slot } = slot;
        let word = u64::from_le(*self.word(bucket));
        assert!(word >> (8 * slot) & 0x80 != 0, "an entry is taken out once");
        *self.word_mut(bucket) = (word & !(0xff << (8 * slot))).to_le();
        self.len -= 1;
        if word >> OVERFLOW_SHIFT != 0 {
            self.limit -= 1;
        }
        // SAFETY: the slot was taken, and is free from now on: the entry is moved out once.
        unsafe { self.entry(bucket, slot).read() }
    }

    /// Moves all entries to another table, which is empty and has room for them, and is this one
    /// from then on. Until all are there they are entries of this one alone: a hash function that
    /// panics loses none.
    pub(crate) fn move_to(&mut self, other: Self, mut hash: impl FnMut(&K) -> u64) {
        assert!(other.len == 0 && self.len <= other.limit);
        let mut other = Copies(other);
        for bucket in 0..self.buckets {
            for slot in slots_of(u64::from_le(*self.word(bucket)) & Shape::<K, V>::TAKEN) {
                let entry = self.entry(bucket, slot);
                // SAFETY: the slot is taken. Only one of the two is ever used: `Copies` drops none
                // of those that it holds, which the swap makes those that were copied.
                let (hash, copy) = unsafe { (hash(&entry.as_ref().0), entry.read()) };
                other.0.add(hash, copy);
            }
        }
        core::mem::swap(self, &mut other.0);
    }

    fn first_taken(&self, bucket: usize) -> Option<usize> {
        let taken = u64::from_le(*self.word(bucket)) & Shape::<K, V>::TAKEN;
        (taken != 0).then(|| slot_of(taken))
    }

    /// Takes out any entry at or after a bucket, which is then the one it was in.
    pub(crate) fn take(&mut self, bucket: &mut usize) -> Option<(K, V)> {
        while self.len > 0 && *bucket < self.buckets {
            if let Some(slot) = self.first_taken(*bucket) {
                return Some(self.remove(Slot { bucket: *bucket, slot }));
            }
            *bucket += 1;
        }
        None
    }

    /// All entries, in the order of buckets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(K, V)> + Clone {
        (0..self.buckets).flat_map(move |bucket| {
            let taken = u64::from_le(*self.word(bucket)) & Shape::<K, V>::TAKEN;
            // SAFETY: the slot is taken, and a shared borrow of the table keeps it so.
            slots_of(taken).map(move |slot| unsafe { self.entry(bucket, slot).as_ref() })
        })
    }

    /// As [`iter`](Self::iter), to be changed.
    pub(crate) fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        IterMut { table: self, bucket: 0, taken: 0 }
    }

    fn drop_taken(&mut self) {
        let mut bucket = 0;
        while let Some(entry) = self.take(&mut bucket) {
            drop(entry);
        }
    }
}

impl<K, V> Drop for Table<K, V> {
    fn drop(&mut self) {
        if needs_drop::<(K, V)>() {
            drop_entries(self, Self::drop_taken);
        }
    }
}

/// A table whose entries are those of another: it is dropped without them.
struct Copies<K, V>(Table<K, V>);

impl<K, V> Drop for Copies<K, V> {
    fn drop(&mut self) {
        self.0.len = 0;
    }
}

/// The entries of a table, to be changed. It borrows the table uniquely also in its type: an
/// iterator that had a shared borrow would go to another thread with values that may not.
///
/// ```compile_fail,E0277
/// let mut index = workahead_lookup::HashIndex::new();
/// let mutex = std::sync::Mutex::new(2);
/// index.insert(1, mutex.lock());
/// let mut entries = index.iter_mut();
/// std::thread::scope(|scope| scope.spawn(move || drop(entries.next())).join());
/// ```
pub(crate) struct IterMut<'t, K, V> {
    table: &'t mut Table<K, V>,
    /// The next one.
    bucket: usize,
    /// Slots of the one before that are yet to be visited.
    taken: u64,
}

impl<'t, K, V> Iterator for IterMut<'t, K, V> {
    type Item = (&'t K, &'t mut V);

    fn next(&mut self) -> Option<Self::Item> {
        while self.taken == 0 {
            if self.bucket == self.table.buckets {
                return None;
            }
            let word = u64::from_le(*self.table.word(self.bucket));
            self.taken = word & Shape::<K, V>::TAKEN;
            self.bucket += 1;
        }
        let slot = slot_of(self.taken);
        self.taken &= self.taken - 1;
        // SAFETY: the slot is taken, and visited once, under a unique borrow of the table for all
        // of `'t`. Only words of tags are read meanwhile, and no entry.
        let (key, value) = unsafe { self.table.entry(self.bucket - 1, slot).as_mut() };
        Some((key, value))
    }
}

/// The highest bit of each tag that is equal to `tag`. One just above an equal one may be counted
/// too when it differs in its lowest bit: a taken slot all the same, whose key is compared.
#[inline(always)]
fn same_tags(word: u64, tag: u8) -> u64 {
    let differences = word ^ (u64::from(tag) * LOW);
    differences.wrapping_sub(LOW) & !differences & HIGH
}

/// The slot of the lowest bit.
#[inline(always)]
fn slot_of(bits: u64) -> usize {
    (bits.trailing_zeros() / 8) as usize
}

fn slots_of(mut bits: u64) -> impl Iterator<Item = usize> + Clone {
    core::iter::from_fn(move || {
        (bits != 0).then(|| {
            let slot = slot_of(bits);
            bits &= bits - 1;
            slot
        })
    })
}
