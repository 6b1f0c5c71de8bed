//! Buckets: a word of tags, and entries.
//!
//! ```text
//!  large    [… entry | entry | entry | t t t t t t t o]     a line, a pair, or those of 7 entries
//!  small    [7 entries][7 entries]…   [t t t t t t t o][t…  words apart, for the first-level cache
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

use workahead_walks::{Memory, Place};

use super::buckets::{Buckets, Home, OVERFLOW_SHIFT, overflow, same_slot, same_tags, slot_of};
use super::first_step::FirstStep;
use super::shape::{Shape, TAGS_BYTES};
use crate::memory::{self, Pages, drop_entries};

/// Bytes of an entry that are requested: its key, or what compares most often.
const ASKED_BYTES_MAX: usize = 256;
/// Tables up to this size have their words apart, where caches hold those. Beyond, a look-up would
/// wait for two lines.
pub(super) const APART_BYTES_MAX: usize = 16 << 20;

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

impl From<Home> for Position {
    #[inline(always)]
    fn from(home: Home) -> Self {
        Self { bucket: home.bucket, candidates: 0, passed: 0, tag: home.tag }
    }
}

/// The result of a step of a look-up.
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

/// Entries by their hashes.
pub(crate) struct Table<K, V> {
    buckets: Buckets<K, V>,
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
        let buckets = Buckets::none();
        Self { buckets, len: 0, limit: 0, reach: 0, memory: None, _owns: PhantomData }
    }

    /// Room for `capacity` entries.
    pub(crate) fn with_capacity(capacity: usize, pages: Pages) -> Self {
        if capacity == 0 {
            return Self::new();
        }
        let apart_bytes = Shape::<K, V>::buckets(capacity, true)
            .map(|count| count.saturating_mul(Shape::<K, V>::APART_STRIDE + TAGS_BYTES));
        let is_apart = apart_bytes.is_some_and(|bytes| bytes <= APART_BYTES_MAX);
        Self::with_buckets(capacity, is_apart, pages)
    }

    /// As [`Table::with_capacity`], with words apart from entries or not.
    pub(super) fn with_buckets(capacity: usize, is_apart: bool, pages: Pages) -> Self {
        let count = Shape::<K, V>::buckets(capacity, is_apart).expect("capacity overflow");
        let (buckets, memory) = Buckets::new(count, is_apart, pages);
        let (limit, memory) = (buckets.limit(), Some(memory));
        Self { buckets, len: 0, limit, reach: 0, memory, _owns: PhantomData }
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
            Some(_) => self.buckets.limit(),
            None => 0,
        }
    }

    /// The faster first step of a look-up.
    #[inline(always)]
    pub(crate) fn first_step(&self) -> FirstStep<'_, K, V> {
        // SAFETY: it borrows the table.
        unsafe { self.buckets.first_step() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, memory::Memory::bytes)
    }

    #[inline(always)]
    fn word(&self, bucket: usize) -> &u64 {
        // SAFETY: every bucket ends with a word, aligned; writers hold `&mut self`.
        unsafe { self.buckets.at(bucket).as_ref() }
    }

    #[inline(always)]
    fn word_mut(&mut self, bucket: usize) -> &mut u64 {
        debug_assert!(self.memory.is_some(), "the static bucket is never written");
        // SAFETY: as in `word`, in memory of the table's own: callers found or make an entry.
        unsafe { self.buckets.at(bucket).as_mut() }
    }

    /// Begins a look-up.
    #[inline(always)]
    pub(crate) fn start(&self, hash: u64) -> (Position, Place) {
        let home = self.buckets.home(hash);
        (home.into(), self.buckets.place(home.bucket))
    }

    /// Where a look-up is, for a hint.
    pub(crate) fn place(&self, at: Position) -> Place {
        self.buckets.place(at.bucket)
    }

    /// Where a key of this hash is put, for a hint.
    pub(crate) fn home_place(&self, hash: u64) -> Place {
        self.buckets.place(self.buckets.home(hash).bucket)
    }

    /// Compares what is at hand, and says where to go on.
    #[inline(always)]
    pub(crate) fn step<M: Memory>(
        &self,
        at: &mut Position,
        memory: &mut M,
        mut is_key: impl FnMut(&K) -> bool,
    ) -> Step<'_, K, V> {
        let mut is_at_hand = at.candidates != 0;
        let word = self.word(at.bucket);
        // The step before read it, where an entry was still to come.
        let word = if is_at_hand { memory.read_hot(word) } else { memory.read(word) };
        let word = u64::from_le(*word);
        if !is_at_hand {
            at.candidates = same_tags(word, at.tag);
        }
        while at.candidates != 0 {
            let slot = same_slot(at.candidates);
            let entry = self.buckets.entry(at.bucket, slot);
            if !is_at_hand && !self.is_with_tags(slot) {
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
        if word & overflow(at.tag) == 0 || at.passed >= self.reach {
            return Step::Missing;
        }
        at.bucket = self.buckets.next(at.bucket, self.buckets.jump(at.tag, at.passed));
        at.passed += 1;
        Step::Next(self.buckets.place(at.bucket))
    }

    /// Whether an entry is at hand when its bucket's word is.
    #[inline(always)]
    fn is_with_tags(&self, slot: usize) -> bool {
        !self.buckets.are_apart() && Shape::<K, V>::is_with_tags(slot)
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
        // SAFETY: slots are those of entries, and only `&mut self` ends these.
        unsafe { self.buckets.entry(slot.bucket, slot.slot).as_ref() }
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut (K, V) {
        // SAFETY: as in `get`, and `&mut self` makes the borrow unique.
        unsafe { self.buckets.entry(slot.bucket, slot.slot).as_mut() }
    }

    /// Adds an entry whose key is not there. There is room: `len() < limit()`.
    pub(crate) fn add(&mut self, hash: u64, entry: (K, V)) -> Slot {
        assert!(self.len < self.limit, "the table grows before it is full");
        let Home { mut bucket, tag } = self.buckets.home(hash);
        let mut passed = 0_u32;
        let free = loop {
            let word = u64::from_le(*self.word(bucket));
            let free = !word & self.buckets.taken();
            if free != 0 {
                break free;
            }
            *self.word_mut(bucket) = (word | overflow(tag)).to_le();
            bucket = self.buckets.next(bucket, self.buckets.jump(tag, passed));
            passed += 1;
        };
        self.reach = self.reach.max(passed);
        self.put(bucket, slot_of(free), tag, entry)
    }

    /// Adds an entry to its own bucket, if that shows that its key is not there, and has room: else
    /// gives it back.
    #[inline(always)]
    pub(crate) fn add_at_home(&mut self, hash: u64, entry: (K, V)) -> Result<(), (K, V)> {
        let Home { bucket, tag } = self.buckets.home(hash);
        let word = u64::from_le(*self.word(bucket));
        let free = !word & self.buckets.taken();
        let may_be_there = same_tags(word, tag) | word & overflow(tag);
        if may_be_there != 0 || free == 0 || self.len >= self.limit {
            return Err(entry);
        }
        self.put(bucket, slot_of(free), tag, entry);
        Ok(())
    }

    /// Inserts an entry into the bucket where its look-up is: in its key's place, or a free one.
    /// If it must go on, to another bucket, gives it back. There is room: `len() < limit()`.
    #[inline(always)]
    pub(crate) fn insert_here(&mut self, at: &mut Position, entry: (K, V)) -> Result<(), (K, V)>
    where
        K: Eq,
    {
        let Position { bucket, tag, passed, .. } = *at;
        let word = u64::from_le(*self.word(bucket));
        let mut same = same_tags(word, tag);
        while same != 0 {
            let slot = Slot { bucket, slot: same_slot(same) };
            if self.get(slot).0 == entry.0 {
                self.get_mut(slot).1 = entry.1;
                return Ok(());
            }
            same &= same - 1;
        }
        let may_be_further = word & overflow(tag) != 0 && passed < self.reach;
        let free = !word & self.buckets.taken();
        if free != 0 && !may_be_further {
            self.reach = self.reach.max(passed);
            self.put(bucket, slot_of(free), tag, entry);
            return Ok(());
        }
        *self.word_mut(bucket) = (word | overflow(tag)).to_le();
        at.bucket = self.buckets.next(bucket, self.buckets.jump(tag, passed));
        at.passed += 1;
        Err(entry)
    }

    /// Writes an entry to a free slot.
    #[inline(always)]
    fn put(&mut self, bucket: usize, slot: usize, tag: u8, entry: (K, V)) -> Slot {
        let word = u64::from_le(*self.word(bucket));
        debug_assert!(word >> (8 * slot) & 0x80 == 0, "nothing is overwritten");
        // SAFETY: the slot is free, so that nothing is overwritten, and `&mut self` is unique.
        unsafe { self.buckets.entry(bucket, slot).write(entry) };
        *self.word_mut(bucket) = (word | u64::from(0x80 | tag) << (8 * slot)).to_le();
        self.len += 1;
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
        unsafe { self.buckets.entry(bucket, slot).read() }
    }

    /// Moves all entries to another table, which is empty and has room for them, and is this one
    /// from then on. Until all are there they are entries of this one alone: a hash function that
    /// panics loses none.
    pub(crate) fn move_to(&mut self, other: Self, mut hash: impl FnMut(&K) -> u64) {
        assert!(other.len == 0 && self.len <= other.limit);
        let mut other = Copies(other);
        for bucket in 0..self.buckets.count() {
            for slot in slots_of(u64::from_le(*self.word(bucket)) & self.buckets.taken()) {
                let entry = self.buckets.entry(bucket, slot);
                // SAFETY: the slot is taken. Only one of the two is ever used: `Copies` drops none
                // of those that it holds, which the swap makes those that were copied.
                let (hash, copy) = unsafe { (hash(&entry.as_ref().0), entry.read()) };
                other.0.add(hash, copy);
            }
        }
        core::mem::swap(self, &mut other.0);
    }

    fn first_taken(&self, bucket: usize) -> Option<usize> {
        let taken = u64::from_le(*self.word(bucket)) & self.buckets.taken();
        (taken != 0).then(|| slot_of(taken))
    }

    /// Takes out any entry at or after a bucket, which is then the one it was in.
    pub(crate) fn take(&mut self, bucket: &mut usize) -> Option<(K, V)> {
        while self.len > 0 && *bucket < self.buckets.count() {
            if let Some(slot) = self.first_taken(*bucket) {
                return Some(self.remove(Slot { bucket: *bucket, slot }));
            }
            *bucket += 1;
        }
        None
    }

    /// All entries, in the order of buckets.
    pub(crate) fn iter(&self) -> Iter<'_, K, V> {
        Iter { table: self, slots: Slots { bucket: 0, taken: 0, left: self.len } }
    }

    /// As [`iter`](Self::iter), to be changed.
    pub(crate) fn iter_mut(&mut self) -> IterMut<'_, K, V> {
        let slots = Slots { bucket: 0, taken: 0, left: self.len };
        IterMut { table: self, slots }
    }

    fn drop_taken(&mut self) {
        let mut bucket = 0;
        while let Some(entry) = self.take(&mut bucket) {
            drop(entry);
        }
    }
}

// SAFETY: places are those of buckets and entries of a table that a look-up borrows, or the static
// bucket: nobody frees them meanwhile.
#[cfg(feature = "helper")]
unsafe impl<K, V, S, Q> workahead_walks::work_ahead::Preloadable
    for super::probe::Probe<'_, '_, K, V, S, Q>
where
    K: core::borrow::Borrow<Q>,
    Q: core::hash::Hash + Eq,
    S: core::hash::BuildHasher,
{
    const BLOCK_BYTES: usize = if Shape::<K, V>::requested(false) > 64 { 128 } else { 64 };
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

/// The taken slots of a table, in the order of buckets.
#[derive(Clone)]
struct Slots {
    /// The next one.
    bucket: usize,
    /// Slots of the one before that are yet to be visited.
    taken: u64,
    left: usize,
}

impl Slots {
    #[inline]
    fn next<K, V>(&mut self, table: &Table<K, V>) -> Option<Slot> {
        while self.taken == 0 {
            if self.bucket == table.buckets.count() {
                return None;
            }
            self.taken = u64::from_le(*table.word(self.bucket)) & table.buckets.taken();
            self.bucket += 1;
        }
        let slot = slot_of(self.taken);
        self.taken &= self.taken - 1;
        self.left -= 1;
        Some(Slot { bucket: self.bucket - 1, slot })
    }
}

/// The entries of an index, in no order that means anything.
pub struct Iter<'t, K, V> {
    table: &'t Table<K, V>,
    slots: Slots,
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self { table: self.table, slots: self.slots.clone() }
    }
}

impl<'t, K, V> Iterator for Iter<'t, K, V> {
    type Item = (&'t K, &'t V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.table.get(self.slots.next(self.table)?);
        Some((key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.slots.left, Some(self.slots.left))
    }
}

/// The entries of an index, their values to be changed. It borrows the table uniquely also in its
/// type: an iterator that had a shared borrow would go to another thread with values that may not.
///
/// ```compile_fail,E0277
/// let mut index = workahead_lookup::HashIndex::new();
/// let mutex = std::sync::Mutex::new(2);
/// index.insert(1, mutex.lock());
/// let mut entries = index.iter_mut();
/// std::thread::scope(|scope| scope.spawn(move || drop(entries.next())).join());
/// ```
pub struct IterMut<'t, K, V> {
    table: &'t mut Table<K, V>,
    slots: Slots,
}

impl<'t, K, V> Iterator for IterMut<'t, K, V> {
    type Item = (&'t K, &'t mut V);

    fn next(&mut self) -> Option<Self::Item> {
        let Slot { bucket, slot } = self.slots.next(self.table)?;
        // SAFETY: the slot is taken, and visited once, under a unique borrow of the table for all
        // of `'t`. Only words of tags are read meanwhile, and no entry.
        let (key, value) = unsafe { self.table.buckets.entry(bucket, slot).as_mut() };
        Some((key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.slots.left, Some(self.slots.left))
    }
}

fn slots_of(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        (bits != 0).then(|| {
            let slot = slot_of(bits);
            bits &= bits - 1;
            slot
        })
    })
}
