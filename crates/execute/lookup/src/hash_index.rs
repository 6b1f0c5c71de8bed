//! A hash map whose look-ups come in batches.

mod buckets;
mod first_step;
mod iter;
mod probe;
mod rounds;
mod shape;
mod table;

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
#[cfg(feature = "std")]
use core::num::NonZero;

use workahead_walks::memory::{Hint, ToL1};
use workahead_walks::{Intent, Rows};

use crate::hasher::FoldedState;
use crate::memory::Pages;
#[cfg(feature = "std")]
use crate::technique::on_threads;
use crate::technique::{Technique, drive, runs};
use first_step::FirstStep;
pub use iter::{IntoIter, Iter, IterMut};
use probe::{Places, Probe};
use table::{Position, Slot, Table};

/// Entries under way of [`HashIndex::insert_many`].
const AHEAD: usize = 32;

/// Inserts that found their bucket full, and the turns in which they did.
struct Later<K, V> {
    turn: usize,
    inserts: VecDeque<(usize, Position, (K, V))>,
}

/// A hash map with batched look-ups.
///
/// Readers share it; writers have it alone, as with any map. In a table of more than 16 MiB entries
/// of up to 18 bytes lie in one cache line with their tags, three to seven to a line, and those of
/// up to 30 bytes in a pair of lines; larger ones have lines of their own, behind their tags. A
/// smaller table has its tags apart.
///
/// If a function of a key, of a value or of the hasher panics, the index stays valid: with the
/// entries from before the call, or also with those that the call had inserted until then.
///
/// ```
/// use workahead_lookup::HashIndex;
/// let mut prices = HashIndex::new();
/// prices.insert("apple", 3);
/// prices.insert_many([("pear", 4), ("plum", 2)]);
/// let mut found = [None; 3];
/// prices.get_many(&["plum", "fig", "apple"], &mut found);
/// assert_eq!(found, [Some(&2), None, Some(&3)]);
/// assert_eq!(prices.remove("pear"), Some(4));
/// ```
pub struct HashIndex<K, V, S = FoldedState> {
    table: Table<K, V>,
    hasher: S,
    pages: Pages,
    technique: Option<Technique>,
}

impl<K, V> HashIndex<K, V> {
    /// An empty index; it has no memory until something is inserted.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(FoldedState::default())
    }

    /// Room for `capacity` entries.
    ///
    /// # Panics
    /// If they are more than an address space has.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_options(capacity, FoldedState::default(), Pages::Usual)
    }
}

impl<K, V, S> HashIndex<K, V, S> {
    /// An empty index with a hash function of the caller's.
    pub const fn with_hasher(hasher: S) -> Self {
        Self { table: Table::new(), hasher, pages: Pages::Usual, technique: None }
    }

    /// Room for `capacity` entries, on pages of a kind; the index stays on that kind as it grows.
    ///
    /// # Panics
    /// As [`HashIndex::with_capacity`].
    pub fn with_options(capacity: usize, hasher: S, pages: Pages) -> Self {
        let table = Table::with_capacity(capacity, pages);
        Self { table, hasher, pages, technique: None }
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries for which there is room.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.table.limit()
    }

    /// Bytes of its table.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// The hash function.
    pub const fn hasher(&self) -> &S {
        &self.hasher
    }

    /// The technique of its batches: the one that was set, or the one for its size.
    #[must_use]
    pub fn technique(&self) -> Technique {
        let rounds = Technique::Rounds(rounds::AHEAD as u16);
        self.technique.unwrap_or(match self.table.first_step() {
            FirstStep::Apart(_) => Technique::InTurn,
            FirstStep::Lines(_) => rounds,
        })
    }

    /// Drives batches by a technique, whatever the size; `None` leaves the choice to the index.
    pub const fn set_technique(&mut self, technique: Option<Technique>) {
        self.technique = technique;
    }

    /// Drops all entries and the memory.
    pub fn clear(&mut self) {
        // Empty before the first is dropped, which may panic.
        drop(core::mem::replace(&mut self.table, Table::new()));
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> HashIndex<K, V, S> {
    fn find<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<Slot>
    where
        K: Borrow<Q>,
    {
        self.table.find(self.hasher.hash_one(key), |candidate| candidate.borrow() == key)
    }

    /// The value of a key.
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        rounds::one(&self.table, &self.hasher, key)
    }

    /// The value of a key, to be changed.
    pub fn get_mut<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.find(key).map(|slot| &mut self.table.get_mut(slot).1)
    }

    /// Whether a key is there.
    pub fn contains<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_some()
    }

    /// The values of many keys, each in its key's place: `None` where there is no such key.
    ///
    /// # Panics
    /// If there are not as many places as keys.
    #[inline]
    pub fn get_many<'i, Q: Hash + Eq>(&'i self, keys: &[Q], values: &mut [Option<&'i V>])
    where
        K: Borrow<Q>,
    {
        assert_eq!(keys.len(), values.len(), "a place for every key's value");
        for (keys, values) in runs(keys, values) {
            self.drive(keys, values, |value| value);
        }
    }

    /// Looks keys of one drive up, and puts what `of` makes of each value in its key's place.
    #[inline]
    fn drive<'i, Q: Hash + Eq, T>(
        &'i self,
        keys: &[Q],
        places: &mut [T],
        of: impl Fn(Option<&'i V>) -> T,
    ) where
        K: Borrow<Q>,
    {
        let mut walk = Probe { table: &self.table, hasher: &self.hasher, keys };
        match (self.technique(), self.table.first_step()) {
            (Technique::InTurn, FirstStep::Apart(apart)) => {
                rounds::in_turn((&self.table, apart), &self.hasher, keys, places, of);
            }
            (Technique::Rounds(width), FirstStep::Lines(lines)) => {
                walk.in_rounds(lines, usize::from(width), &mut Places(places, of));
            }
            (technique, _) => {
                let mut rows = Rows::range(0..keys.len() as u32);
                drive!(technique, &mut walk, &mut rows, &mut Places(places, of));
            }
        }
    }

    /// As [`HashIndex::get_many`], by several threads, each with a part of the keys. Threads are
    /// started by every call: it is for many keys.
    ///
    /// # Panics
    /// As [`HashIndex::get_many`], or if a thread can't be started.
    #[cfg(feature = "std")]
    pub fn get_many_parallel<'i, Q: Hash + Eq + Sync>(
        &'i self,
        keys: &[Q],
        values: &mut [Option<&'i V>],
        threads: NonZero<usize>,
    ) where
        K: Borrow<Q> + Sync,
        V: Sync,
        S: Sync,
    {
        assert_eq!(keys.len(), values.len(), "a place for every key's value");
        on_threads(keys, values, threads, |keys, values| self.get_many(keys, values));
    }

    /// As [`HashIndex::get_many`], with a helper thread where the executor finds that faster.
    ///
    /// # Panics
    /// As [`HashIndex::get_many`].
    #[cfg(feature = "helper")]
    pub fn get_many_by<'i, Q: Hash + Eq>(
        &'i self,
        executor: &workahead_walks::Executor,
        keys: &[Q],
        values: &mut [Option<&'i V>],
    ) where
        K: Borrow<Q>,
    {
        assert_eq!(keys.len(), values.len(), "a place for every key's value");
        for (keys, values) in runs(keys, values) {
            let mut walk = Probe { table: &self.table, hasher: &self.hasher, keys };
            let rows = 0..keys.len() as u32;
            let mut sink = Places(values, |value| value);
            executor.drive((&mut walk, rows), self.bytes(), &mut sink, |_, rows, sink| {
                let rows = rows.start as usize..rows.end as usize;
                self.drive(&keys[rows.clone()], &mut sink.0[rows], |value| value);
            });
        }
    }

    /// Whether each of many keys is there, in the key's place.
    ///
    /// # Panics
    /// As [`HashIndex::get_many`].
    #[inline]
    pub fn contains_many<Q: Hash + Eq>(&self, keys: &[Q], contained: &mut [bool])
    where
        K: Borrow<Q>,
    {
        assert_eq!(keys.len(), contained.len(), "a place for every key");
        for (keys, contained) in runs(keys, contained) {
            self.drive(keys, contained, |value| value.is_some());
        }
    }

    /// Inserts an entry; the value that the key had before, if it was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let hash = self.hasher.hash_one(&key);
        match self.table.add_at_home(hash, (key, value)) {
            Ok(()) => None,
            Err((key, value)) => self.insert_anywhere(hash, key, value),
        }
    }

    #[inline(never)]
    fn insert_anywhere(&mut self, hash: u64, key: K, value: V) -> Option<V> {
        match self.table.find(hash, |candidate| *candidate == key) {
            Some(slot) => {
                let before = core::mem::replace(&mut self.table.get_mut(slot).1, value);
                // Here, so that what it had before is dropped, too, if this panics.
                drop(key);
                Some(before)
            }
            None => {
                self.reserve(1);
                self.table.add(hash, (key, value));
                None
            }
        }
    }

    /// The value of a key, which is inserted if it is not there.
    pub fn get_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        let hash = self.hasher.hash_one(&key);
        let slot = match self.table.find(hash, |candidate| *candidate == key) {
            Some(slot) => slot,
            None => {
                let value = value();
                self.reserve(1);
                self.table.add(hash, (key, value))
            }
        };
        &mut self.table.get_mut(slot).1
    }

    /// Inserts many entries, with hints for their buckets ahead. A key that is there, or comes
    /// twice, has the last value.
    pub fn insert_many(&mut self, entries: impl IntoIterator<Item = (K, V)>) {
        let entries = entries.into_iter();
        self.reserve(entries.size_hint().0);
        let mut ahead = VecDeque::with_capacity(AHEAD + 1);
        let mut later = Later { turn: 0, inserts: VecDeque::new() };
        for (key, value) in entries {
            let hash = self.hasher.hash_one(&key);
            ToL1::line(self.table.home_place(hash).address(), Intent::Read);
            ahead.push_back((hash, (key, value)));
            if ahead.len() > AHEAD
                && let Some((hash, entry)) = ahead.pop_front()
            {
                self.begin_insert(hash, entry, &mut later);
            }
        }
        for (hash, entry) in ahead {
            self.begin_insert(hash, entry, &mut later);
        }
        self.finish(&mut later);
    }

    fn finish(&mut self, later: &mut Later<K, V>) {
        while let Some((_, at, entry)) = later.inserts.pop_front() {
            self.go_on(at, entry, later);
        }
    }

    /// Inserts an entry, at once or later, after those whose next bucket was hinted at some turns
    /// ago. All with one key take the same way, one after the other: the last one stays the last.
    #[inline(always)]
    fn begin_insert(&mut self, hash: u64, entry: (K, V), later: &mut Later<K, V>) {
        later.turn += 1;
        let is_ready = |later: &Later<K, V>| match later.inserts.front() {
            Some((turn, ..)) => later.turn - turn > AHEAD / 2,
            None => false,
        };
        while is_ready(later)
            && let Some((_, at, entry)) = later.inserts.pop_front()
        {
            self.go_on(at, entry, later);
        }
        if self.len() + later.inserts.len() >= self.capacity() {
            // Before the table grows, and buckets are others.
            self.finish(later);
            if self.len() >= self.capacity() {
                // It grows only if the key is not there.
                drop(self.insert_anywhere(hash, entry.0, entry.1));
                return;
            }
        }
        let (at, _) = self.table.start(hash);
        self.go_on(at, entry, later);
    }

    /// Inserts an entry where it is, or later into another bucket, which is hinted at.
    #[inline(always)]
    fn go_on(&mut self, mut at: Position, entry: (K, V), later: &mut Later<K, V>) {
        if let Err(entry) = self.table.insert_here(&mut at, entry) {
            ToL1::line(self.table.place(at).address(), Intent::Read);
            later.inserts.push_back((later.turn, at, entry));
        }
    }

    /// Takes a key out; its value, if it was there.
    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (key, value) = self.table.remove(self.find(key)?);
        // Here, so that the value is dropped, too, if this panics.
        drop(key);
        Some(value)
    }

    /// Makes room for `more` entries.
    ///
    /// # Panics
    /// As [`HashIndex::with_capacity`].
    pub fn reserve(&mut self, more: usize) {
        let needed = self.len().checked_add(more).expect("capacity overflow");
        if needed > self.capacity() {
            // After many removals as large as before, where that leaves room for as many again.
            let before = self.table.limit_at_first();
            let is_large_enough = needed <= before / 4 * 3;
            let larger = before.saturating_mul(if is_large_enough { 1 } else { 2 });
            let capacity = needed.max(larger).max(8);
            let larger = Table::with_capacity(capacity, self.pages);
            self.table.move_to(larger, |key| self.hasher.hash_one(key));
        }
    }
}

impl<K, V, S: Default> Default for HashIndex<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K: Hash + Eq, V, S: BuildHasher + Default> FromIterator<(K, V)> for HashIndex<K, V, S> {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(entries: T) -> Self {
        let mut index = Self::default();
        index.insert_many(entries);
        index
    }
}

impl<K: Hash + Eq, V, S: BuildHasher> Extend<(K, V)> for HashIndex<K, V, S> {
    fn extend<T: IntoIterator<Item = (K, V)>>(&mut self, entries: T) {
        self.insert_many(entries);
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S> fmt::Debug for HashIndex<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
