//! Batched look-ups in a [`hashbrown::HashTable`], for those who keep their map.
//!
//! ```text
//!  entries … 3 2 1 0 │ control bytes 0 1 2 3 …        as hashbrown lays a table out
//!  1  hash a block of keys            ─► hint: the control bytes where the key's search begins
//!  2  control bytes, by the table     ─► the first entry with the key's tag; hint: its line
//!  3  compare; where it is another's  ─► the table's own `find`
//! ```
//!
//! In a table of 1 to 16 MiB, whose control bytes the second-level cache holds or nearly, step 1
//! also hints at the entry of the first of them, and the next step is the table's own `find`.
//!
//! Steps 2 and 3 are the table's own functions. Only the hints of step 1 need what it doesn't show,
//! where its control bytes lie: that is derived from the addresses of two entries, checked against
//! each other. The address is never read through. Where the check fails, as with another layout in
//! a later version, a batch is a loop of `find`: answers never depend on it.

use core::ptr;

use hashbrown::HashTable;
use workahead_walks::Intent;
use workahead_walks::memory::{Hint, ToL1, ToL2};

use crate::Technique;

/// Keys of a block, at most: as many as have their lines under way at once, in each step.
const BLOCK: usize = 128;
/// Control bytes that are compared at once, at most: they begin anywhere, and a quarter of them lie
/// in two lines. Without a hint for the second one, batches take 1.6 times as long (16 M entries).
const GROUP_BYTES: usize = 16;
/// Tables up to this size are in cache, where hints are only work.
const IN_CACHE_BYTES: usize = 1 << 20;
/// Tables up to this size are near: an entry that was hinted at too much is cheap, and a step more
/// is not.
const NEAR_BYTES: usize = 16 << 20;

/// Batched look-ups in a table, which they borrow.
///
/// ```
/// use std::hash::{BuildHasher, RandomState};
/// use hashbrown::HashTable;
/// use workahead_lookup::TableLookup;
/// let state = RandomState::new();
/// let mut table = HashTable::new();
/// for (name, price) in [("apple", 3), ("pear", 4)] {
///     let entry = (name, price);
///     table.insert_unique(state.hash_one(name), entry, |(name, _)| state.hash_one(name));
/// }
/// let lookup = TableLookup::new(&table);
/// let mut found = [None; 2];
/// lookup.get_many(
///     &["pear", "fig"],
///     |key| state.hash_one(key),
///     |(name, _), key| name == key,
///     &mut found,
/// );
/// assert_eq!(found, [Some(&("pear", 4)), None]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TableLookup<'t, T> {
    table: &'t HashTable<T>,
    /// The address of the first control byte, for hints alone; none where it is not known.
    control: Option<usize>,
    technique: Option<Technique>,
}

impl<'t, T> TableLookup<'t, T> {
    /// Finds out how the table lies in memory: once, from its first two entries.
    #[must_use]
    pub fn new(table: &'t HashTable<T>) -> Self {
        Self { table, control: control_bytes(table), technique: None }
    }

    /// What drives its batches: what was set, or what the table's size calls for.
    #[must_use]
    pub fn technique(&self) -> Technique {
        let is_in_cache = self.table.allocation_size() <= IN_CACHE_BYTES;
        self.technique.unwrap_or(match self.control {
            Some(_) if !is_in_cache => Technique::Rounds(BLOCK as u16),
            _ => Technique::InTurn,
        })
    }

    /// Drives batches by a technique, whatever the size; `None` leaves the choice to the table's
    /// size. In turn, a batch is a loop of `find`. The others are rounds of as many keys, 128 at
    /// most: every look-up has the same steps.
    ///
    /// ```
    /// use workahead_lookup::{TableLookup, Technique};
    /// let table = hashbrown::HashTable::<(u64, u64)>::new();
    /// let mut lookup = TableLookup::new(&table);
    /// assert_eq!(lookup.technique(), Technique::InTurn);
    /// lookup.set_technique(Some(Technique::Rounds(16)));
    /// let mut found = [None];
    /// lookup.get_many(&[7], |key| *key, |entry, key| entry.0 == *key, &mut found);
    /// assert_eq!(found, [None]);
    /// ```
    pub const fn set_technique(&mut self, technique: Option<Technique>) {
        self.technique = technique;
    }

    /// Whether batches have hints: they are not in turn, and the table lies in memory as it is
    /// expected to.
    #[must_use]
    pub fn has_hints(&self) -> bool {
        self.control.is_some() && self.technique() != Technique::InTurn
    }

    /// The entries of many keys, each in its key's place: `None` where there is no such key. `hash`
    /// and `is_key` are those that entries were inserted with: see [`HashTable::find`].
    ///
    /// # Panics
    /// If there are not as many places as keys.
    #[inline]
    pub fn get_many<Q>(
        &self,
        keys: &[Q],
        hash: impl Fn(&Q) -> u64,
        is_key: impl Fn(&T, &Q) -> bool,
        found: &mut [Option<&'t T>],
    ) {
        assert_eq!(keys.len(), found.len(), "a place for every key's entry");
        let width = match self.technique() {
            Technique::InTurn => {
                for (key, found) in keys.iter().zip(found) {
                    *found = self.table.find(hash(key), |entry| is_key(entry, key));
                }
                return;
            }
            Technique::Rounds(width) | Technique::Lanes(width) | Technique::Distance(width) => {
                usize::from(width).clamp(1, BLOCK)
            }
        };
        let is_near = self.table.allocation_size() <= NEAR_BYTES;
        let mut hashes = [0; BLOCK];
        for (keys, found) in keys.chunks(width).zip(found.chunks_mut(width)) {
            if is_near {
                // At the entry of the control byte.
                self.hint::<ToL1, Q>((keys, &mut hashes), &hash, |control, first| {
                    control.wrapping_sub((first + 1) * size_of::<T>())
                });
                for ((key, found), hash) in keys.iter().zip(found).zip(hashes) {
                    *found = self.table.find(hash, |entry| is_key(entry, key));
                }
                continue;
            }
            self.hint::<ToL2, Q>((keys, &mut hashes), &hash, |control, first| {
                control.wrapping_add(first + GROUP_BYTES - 1)
            });
            self.first_candidates(&hashes, found);
            for ((key, found), hash) in keys.iter().zip(found).zip(hashes) {
                if found.is_some_and(|entry| !is_key(entry, key)) {
                    *found = self.table.find(hash, |entry| is_key(entry, key));
                }
            }
        }
    }

    /// Hashes keys, and hints at the first control byte of each one's search, and at the address
    /// that `other` makes of those of all control bytes and the number of this one: if it is known
    /// where they lie.
    #[inline(always)]
    fn hint<H: Hint, Q>(
        &self,
        (keys, hashes): (&[Q], &mut [u64; BLOCK]),
        hash: impl Fn(&Q) -> u64,
        other: impl Fn(usize, usize) -> usize,
    ) {
        // A power of two, or there would be no hints.
        let mask = self.table.num_buckets() - 1;
        for (key, kept) in keys.iter().zip(hashes) {
            *kept = hash(key);
            let Some(control) = self.control else { continue };
            let first = *kept as usize & mask;
            for address in [control.wrapping_add(first), other(control, first)] {
                H::line(ptr::without_provenance(address), Intent::Read);
            }
        }
    }

    /// The first entry that each key may be, by its control bytes, and a hint for its line. Without
    /// one the key is not there.
    #[inline(always)]
    fn first_candidates(&self, hashes: &[u64; BLOCK], found: &mut [Option<&'t T>]) {
        for (hash, found) in hashes.iter().zip(found) {
            *found = self.table.find(*hash, |_| true);
            if let Some(entry) = *found {
                ToL2::line(ptr::from_ref(entry).cast(), Intent::Read);
            }
        }
    }
}

/// The address of the control bytes, if two entries lie as expected: side by side in the order of
/// their numbers, from the control bytes down.
fn control_bytes<T>(table: &HashTable<T>) -> Option<usize> {
    let mut entries = table.iter_buckets().filter_map(|bucket| {
        let address = ptr::from_ref(table.get_bucket(bucket)?).addr();
        Some((bucket, address))
    });
    let end = |(bucket, address): (usize, usize)| {
        let bytes = bucket.checked_add(1)?.checked_mul(size_of::<T>())?;
        address.checked_add(bytes)
    };
    let first = entries.next()?;
    let second = entries.next()?;
    let control = end(first)?;
    let is_expected = size_of::<T>() > 0
        && first.1 != second.1
        && end(second) == Some(control)
        && table.num_buckets().is_power_of_two();
    is_expected.then_some(control)
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, Hash};

    use workahead_walks::random::Random;

    use super::*;
    use crate::FoldedState;

    /// A table of numbers below `end` with holes, and its hash function, cut to `bits` bits.
    fn table<T: Copy + Hash>(
        end: u64,
        bits: u64,
        entry: impl Fn(u64) -> T,
    ) -> (HashTable<T>, impl Fn(&T) -> u64 + Copy) {
        let state = FoldedState::with_seed(7);
        let hash = move |entry: &T| state.hash_one(entry) & bits;
        let mut table = HashTable::new();
        let mut random = Random::of(end);
        for number in (0..end).filter(|number| number % 3 != 1) {
            let entry = entry(number);
            table.insert_unique(hash(&entry), entry, hash);
        }
        table.retain(|_| !random.number().is_multiple_of(4));
        (table, hash)
    }

    /// Every batch answers as `find` does, whatever is believed of the layout.
    fn compare<T: Copy + Hash + Eq + std::fmt::Debug>(
        end: u64,
        bits: u64,
        entry: impl Fn(u64) -> T,
    ) {
        let (table, hash) = table(end, bits, &entry);
        let keys: Vec<T> = (0..end + 10).map(&entry).collect();
        let expected: Vec<Option<&T>> =
            keys.iter().map(|key| table.find(hash(key), |entry| entry == key)).collect();
        for control in [None, control_bytes(&table), Some(12_345), Some(usize::MAX - 3)] {
            let techniques = [1, 7, 300].map(|width| Some(Technique::Rounds(width)));
            let chosen = [None, Some(Technique::InTurn), Some(Technique::Lanes(0))];
            let batches = [1, 7, BLOCK, keys.len()].into_iter().cycle();
            for (technique, batch) in techniques.into_iter().chain(chosen).zip(batches) {
                let lookup = TableLookup { table: &table, control, technique };
                let mut found = vec![table.iter().next(); keys.len()];
                for (keys, found) in keys.chunks(batch).zip(found.chunks_mut(batch)) {
                    lookup.get_many(keys, hash, |entry, key| entry == key, found);
                }
                assert_eq!(found, expected, "{control:?}, {technique:?}, batches of {batch}");
            }
        }
    }

    #[test]
    fn batches_answer_as_single_look_ups_do() {
        let most = if cfg!(miri) { 40 } else { 3000 };
        for end in [0, 1, 2, 5, 20, most] {
            compare(end, u64::MAX, |number| number);
            compare(end, u64::MAX, |number| (number, number as u8));
            compare(end, u64::MAX, |number| number as u8);
            compare(end, u64::MAX, |number| [number; 9]);
            compare(end, u64::MAX, |_| ());
        }
        // Few hashes, and few tags: most first candidates are of another key.
        compare(most / 10, 3, |number| number);
        compare(most, 0xfff, |number| number);
    }

    #[test]
    fn the_layout_is_known_where_there_are_two_entries() {
        let known = |end| control_bytes(&table(end, u64::MAX, |number| number).0).is_some();
        assert!(!known(0));
        assert!(known(100));
        let (table, _) = table(100, u64::MAX, |_| ());
        assert_eq!(control_bytes(&table), None, "entries without bytes have no places");
    }

    #[test]
    #[cfg_attr(miri, ignore = "a megabyte of entries")]
    fn hints_are_for_tables_beyond_the_caches() {
        assert!(!TableLookup::new(&table(1000, u64::MAX, |number| number).0).has_hints());
        assert!(TableLookup::new(&table(300_000, u64::MAX, |number| number).0).has_hints());
    }

    #[test]
    #[should_panic(expected = "a place for every key")]
    fn as_many_places_as_keys() {
        let (table, hash) = table(10, u64::MAX, |number| number);
        TableLookup::new(&table).get_many(&[1, 2], hash, |entry, key| entry == key, &mut [None]);
    }
}
