//! The first step of many look-ups in loops of its own, which keep nothing of a key but its bucket.
//!
//! ```text
//!  small table    64 keys   a hint: the word
//!                 64 keys   the word: the likely entry, a hint
//!                 64 keys   compare: found or missing
//!  larger table   32 keys   a hint: the bucket
//!                 32 keys   compare, of a block some way back: found or missing; else the next
//!                           bucket, a hint, and a block later that
//! ```
//!
//! In two short loops more keys are under way at once than in one long chain of loads and products.
//! A table in the second-level cache needs no hints, and one loop. Beyond the caches hints are one
//! block or more ahead of what is compared, so that new lines are always under way, and what a
//! first step doesn't end is not waited for. The schedules of the walks store and compact cursors
//! of 32 bytes instead, which costs as much as the look-up where most end with their first step.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::mem;

use workahead_walks::memory::{Hint, ToL1, ToL2};
use workahead_walks::{Intent, Memory, Prefetching, Row, Sink};

use super::buckets::Home;
use super::first_step::{Apart, FirstStep, Likely, Lines};
use super::probe::{Cursor, Places, Probe};
use super::table::{Step, Table};

/// Keys between a hint and its look-up, and the most that there may be.
pub(super) const AHEAD: usize = 64;
const AHEAD_MAX: usize = 128;

/// Tables above this size are larger than a usual second-level cache: entries are hinted at.
const HINTED_BYTES: usize = 1 << 20;

/// Keys of a loop over lines.
const BLOCK: usize = 32;
/// Keys of a loop over a table of more than [`HINTED_BYTES`] whose words lie apart.
const HINTED: usize = 64;

/// Looks a key up.
#[inline(always)]
pub(super) fn one<'i, K: Borrow<Q>, V, Q: Hash + Eq + ?Sized>(
    table: &'i Table<K, V>,
    hasher: &impl BuildHasher,
    key: &Q,
) -> Option<&'i V> {
    let hash = hasher.hash_one(key);
    let is_key = |candidate: &K| candidate.borrow() == key;
    let first = match table.first_step() {
        FirstStep::Apart(apart) => apart.first(hash, is_key),
        FirstStep::Lines(lines) => lines.first(lines.home(hash), false, is_key),
    };
    first.value(|| further(table, hash, key))
}

/// Looks all keys up in a small table. A function of its own, whose arguments are all that it reads
/// and writes: its loops keep them in registers.
#[inline(never)]
pub(super) fn in_turn<'i, K: Borrow<Q>, V, Q: Hash + Eq, T>(
    (table, apart): (&'i Table<K, V>, Apart<'i, K, V>),
    hasher: &impl BuildHasher,
    keys: &[Q],
    places: &mut [T],
    of: impl Fn(Option<&'i V>) -> T,
) {
    if table.bytes() <= HINTED_BYTES {
        for (key, place) in keys.iter().zip(places) {
            let hash = hasher.hash_one(key);
            let first = apart.first(hash, |other| other.borrow() == key);
            *place = of(first.value(|| further(table, hash, key)));
        }
        return;
    }
    let (mut homes, mut likely) = ([Home::default(); HINTED], [Likely::MISSING; HINTED]);
    let mut ahead = keys.chunks(HINTED);
    let mut begin_next = |homes: &mut [Home; HINTED]| {
        for (key, home) in ahead.next().unwrap_or_default().iter().zip(homes) {
            *home = apart.hinted::<ToL1>(hasher.hash_one(key));
        }
    };
    begin_next(&mut homes);
    for (keys, places) in keys.chunks(HINTED).zip(places.chunks_mut(HINTED)) {
        for ((_, home), likely) in keys.iter().zip(&homes).zip(&mut likely) {
            *likely = apart.likely(*home);
            ToL1::line(likely.address(), Intent::Read);
        }
        begin_next(&mut homes);
        for ((key, place), likely) in keys.iter().zip(places).zip(&likely) {
            let first = apart.compare(*likely, |other| other.borrow() == key);
            *place = of(first.value(|| further(table, hasher.hash_one(key), key)));
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
        lines: Lines<'i, K, V>,
        width: usize,
        sink: &mut Places<'_, T, impl Fn(Option<&'i V>) -> T>,
    ) {
        let blocks_ahead = (width / BLOCK).clamp(1, AHEAD_MAX / BLOCK).next_power_of_two();
        let mut ring = [[Home::default(); BLOCK]; AHEAD_MAX / BLOCK];
        let (mut ready, mut later) = (Vec::new(), Vec::new());
        let (mut hinted, mut blocks) = (self.keys.chunks(BLOCK), self.keys.chunks(BLOCK));
        for (block, first) in (0..).zip((0..self.keys.len() + blocks_ahead * BLOCK).step_by(BLOCK))
        {
            let homes = &mut ring[block & (blocks_ahead - 1)];
            if block >= blocks_ahead
                && let Some(keys) = blocks.next()
            {
                // Those whose hint is a block old.
                self.go_on(&mut ready, &mut later, sink);
                mem::swap(&mut ready, &mut later);
                let first = first - blocks_ahead * BLOCK;
                let places = &mut sink.0[first..];
                for (at, ((key, home), place)) in keys.iter().zip(&*homes).zip(places).enumerate() {
                    let row = (first + at) as Row;
                    let first = lines.first(*home, true, |other| other.borrow() == key);
                    *place = sink.1(first.value(|| self.begin(*home, row, &mut later)));
                }
            }
            if let Some(keys) = hinted.next() {
                for (key, home) in keys.iter().zip(homes) {
                    *home = lines.home(self.hasher.hash_one(key));
                    lines.hint::<ToL2>(*home);
                }
            }
        }
        while !(ready.is_empty() && later.is_empty()) {
            self.go_on(&mut ready, &mut later, sink);
            mem::swap(&mut ready, &mut later);
        }
    }

    /// Begins a look-up that its first step may not end; none if it goes on later.
    #[inline(never)]
    fn begin(&self, home: Home, row: Row, later: &mut Vec<Cursor>) -> Option<&'i V> {
        let mut cursor = Cursor { at: home.into(), row };
        let found = self.step(&mut cursor);
        if found.is_none() {
            later.push(cursor);
        }
        found.flatten()
    }

    /// Takes a step of each look-up whose line is ready; those that need another are for later.
    #[inline(never)]
    fn go_on(
        &self,
        ready: &mut Vec<Cursor>,
        later: &mut Vec<Cursor>,
        sink: &mut impl Sink<Option<&'i V>>,
    ) {
        for mut cursor in ready.drain(..) {
            match self.step(&mut cursor) {
                Some(found) => sink.emit(cursor.row, found),
                None => later.push(cursor),
            }
        }
    }

    /// The result of a look-up; none if it needs another line, which was hinted at.
    #[inline(always)]
    fn step(&self, cursor: &mut Cursor) -> Option<Option<&'i V>> {
        let key = &self.keys[cursor.row as usize];
        let memory = &mut Prefetching::<ToL2>::default();
        match self.table.step(&mut cursor.at, memory, |candidate| candidate.borrow() == key) {
            Step::Found(entry, _) => Some(Some(&entry.1)),
            Step::Missing => Some(None),
            Step::Next(place) => {
                memory.fetch(place, Intent::Read);
                None
            }
        }
    }
}
