//! The first step of many look-ups in loops of its own, which keep nothing of a key but its bucket.
//!
//! ```text
//!  32 keys     hash, hint: the bucket                       two loops, each a short chain of loads
//!  32 keys     compare: found or missing; else the next     and products: more of them are under
//!              bucket, a hint, and later                    way at once than of one long chain
//!  64 keys     go on with those that were not done
//! ```
//!
//! In cache the second loop is for the keys of the first. Beyond it for those of one or more blocks
//! before, so that new lines are always under way; and what a first step doesn't end is not waited
//! for. The schedules of the walks store and compact cursors of 32 bytes instead, which costs as
//! much as the look-up where most end with their first step.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use workahead_walks::memory::{ToL1, ToL2};
use workahead_walks::{Intent, Memory, Prefetching, Row, Sink};

use super::probe::{Cursor, Places, Probe};
use super::table::{First, Home, Step, Table};

/// Keys between a hint and its look-up, and the most that there may be.
pub(super) const AHEAD: usize = 64;
const AHEAD_MAX: usize = 128;

/// Keys of a loop.
const BLOCK: usize = 32;

/// Looks a key up.
#[inline(always)]
pub(super) fn one<'i, K: Borrow<Q>, V, Q: Hash + Eq + ?Sized>(
    table: &'i Table<K, V>,
    hasher: &impl BuildHasher,
    key: &Q,
) -> Option<&'i V> {
    let hash = hasher.hash_one(key);
    match table.first(table.home_of(hash), false, |candidate| candidate.borrow() == key) {
        First::Found(entry) => Some(&entry.1),
        First::Missing => None,
        First::Further => further(table, hash, key),
    }
}

/// Looks all keys up where the table is in cache. Hints are into its first level. A function of its
/// own, whose arguments are all that it reads and writes: its loops keep them in registers.
#[inline(never)]
pub(super) fn in_turn<'i, K: Borrow<Q>, V, Q: Hash + Eq, T>(
    table: &'i Table<K, V>,
    hasher: &impl BuildHasher,
    keys: &[Q],
    places: &mut [T],
    of: impl Fn(Option<&'i V>) -> T,
) {
    let mut homes = [Home::default(); BLOCK];
    for (keys, places) in keys.chunks(BLOCK).zip(places.chunks_mut(BLOCK)) {
        for (key, home) in keys.iter().zip(&mut homes) {
            *home = table.home_of(hasher.hash_one(key));
            Prefetching::<ToL1>::default().fetch(table.place_of(*home), Intent::Read);
        }
        for ((key, place), home) in keys.iter().zip(places).zip(&homes) {
            *place = of(match table.first(*home, false, |candidate| candidate.borrow() == key) {
                First::Found(entry) => Some(&entry.1),
                First::Missing => None,
                First::Further => further(table, hasher.hash_one(key), key),
            });
        }
    }
}

/// Looks a key up that its first step did not find.
#[cold]
#[inline(never)]
fn further<'i, K: Borrow<Q>, V, Q: Eq + ?Sized>(
    table: &'i Table<K, V>,
    hash: u64,
    key: &Q,
) -> Option<&'i V> {
    let slot = table.find(hash, |candidate| candidate.borrow() == key)?;
    Some(&table.get(slot).1)
}

impl<'i, K, V, S, Q> Probe<'i, '_, K, V, S, Q>
where
    K: Borrow<Q>,
    Q: Hash + Eq,
    S: BuildHasher,
{
    /// Looks all keys up, each when its hint is about `width` keys old, [`AHEAD_MAX`] at most.
    #[inline(never)]
    pub(super) fn in_rounds<T>(
        &self,
        width: usize,
        sink: &mut Places<'_, T, impl Fn(Option<&'i V>) -> T>,
    ) {
        let blocks_ahead = (width / BLOCK).clamp(1, AHEAD_MAX / BLOCK);
        let mut ring = [[Home::default(); BLOCK]; AHEAD_MAX / BLOCK];
        let mut later = Vec::new();
        let mut ahead = self.keys.chunks(BLOCK);
        for (homes, keys) in ring.iter_mut().take(blocks_ahead).zip(&mut ahead) {
            self.hint(keys, homes);
        }
        for (block, keys) in self.keys.chunks(BLOCK).enumerate() {
            let homes = &mut ring[block % blocks_ahead];
            if block % blocks_ahead == 0 {
                self.go_on(&mut later, sink);
            }
            let rows = (block * BLOCK) as Row..;
            for ((row, key), home) in rows.zip(keys).zip(&*homes) {
                match self.table.first(*home, true, |candidate| candidate.borrow() == key) {
                    First::Found(entry) => sink.emit(row, Some(&entry.1)),
                    First::Missing => sink.emit(row, None),
                    First::Further => self.begin(row, &mut later, sink),
                }
            }
            if let Some(keys) = ahead.next() {
                self.hint(keys, homes);
            }
        }
        while !later.is_empty() {
            self.go_on(&mut later, sink);
        }
    }

    /// Hashes keys of a block, with hints for their buckets.
    #[inline(always)]
    fn hint(&self, keys: &[Q], homes: &mut [Home; BLOCK]) {
        for (key, home) in keys.iter().zip(homes) {
            *home = self.table.home_of(self.hasher.hash_one(key));
            Prefetching::<ToL2>::default().fetch(self.table.place_of(*home), Intent::Read);
        }
    }

    /// Begins a look-up that its first step may not end.
    #[inline(never)]
    fn begin(&self, row: Row, later: &mut Vec<Cursor>, sink: &mut impl Sink<Option<&'i V>>) {
        let hash = self.hasher.hash_one(&self.keys[row as usize]);
        let mut cursor = Cursor { at: self.table.start(hash).0, row };
        if self.is_unfinished(&mut cursor, sink) {
            later.push(cursor);
        }
    }

    /// A step of each look-up that was not done with its first.
    #[inline(never)]
    fn go_on(&self, later: &mut Vec<Cursor>, sink: &mut impl Sink<Option<&'i V>>) {
        later.retain_mut(|cursor| self.is_unfinished(cursor, sink));
    }

    /// Takes a step, and says whether there is another, whose place was hinted at.
    #[inline(always)]
    fn is_unfinished(&self, cursor: &mut Cursor, sink: &mut impl Sink<Option<&'i V>>) -> bool {
        let key = &self.keys[cursor.row as usize];
        let memory = &mut Prefetching::<ToL2>::default();
        match self.table.step(&mut cursor.at, memory, |candidate| candidate.borrow() == key) {
            Step::Found(entry, _) => sink.emit(cursor.row, Some(&entry.1)),
            Step::Missing => sink.emit(cursor.row, None),
            Step::Next(place) => {
                memory.fetch(place, Intent::Read);
                return true;
            }
        }
        false
    }
}
