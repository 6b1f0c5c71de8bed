//! The first step of many look-ups in loops of its own, which keep nothing of a key but its hash.
//!
//! ```text
//!  block of keys   hash, hint: the bucket          …  128 times
//!                  go on with those of the block before that were not done
//!                  compare: found or missing; else the next bucket, a hint, and later
//! ```
//!
//! This is the schedule `Rounds` of the walks, made for look-ups that mostly end with their first
//! step. `Rounds` stores and compacts cursors of 32 bytes, and its last rounds are of few keys: of
//! 16 M entries a hit takes 16 to 18 ns by it, 13 to 15 ns by lanes, 12 to 14 ns by these loops
//! (AMD EPYC, Zen 4; a random line takes 9 ns there).

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use workahead_walks::memory::ToL2;
use workahead_walks::{Intent, Memory, Prefetching, Row, Sink};

use super::probe::{Cursor, Probe};
use super::table::Step;

/// The most keys of a block. 64 and 256 are as fast.
pub(super) const BLOCK_MAX: usize = 128;

impl<'i, K, V, S, Q> Probe<'i, '_, K, V, S, Q>
where
    K: Borrow<Q>,
    Q: Hash + Eq,
    S: BuildHasher,
{
    /// Looks all keys up, in blocks of up to `width` and [`BLOCK_MAX`].
    #[inline(always)]
    pub(super) fn in_rounds(&self, width: usize, sink: &mut impl Sink<Option<&'i V>>) {
        let width = width.clamp(1, BLOCK_MAX);
        let memory = &mut Prefetching::<ToL2>::default();
        let mut hashes = [0; BLOCK_MAX];
        let mut later = Vec::new();
        for (block, keys) in (0_u32..).zip(self.keys.chunks(width)) {
            for (key, hash) in keys.iter().zip(&mut hashes) {
                *hash = self.hasher.hash_one(key);
                memory.fetch(self.table.start(*hash).1, Intent::Read);
            }
            self.go_on(&mut later, memory, sink);
            for (row, hash) in (block * width as Row..).zip(&hashes[..keys.len()]) {
                let mut cursor = Cursor { at: self.table.start(*hash).0, row };
                if self.is_unfinished(&mut cursor, memory, sink) {
                    later.push(cursor);
                }
            }
        }
        while !later.is_empty() {
            self.go_on(&mut later, memory, sink);
        }
    }

    /// A step of each look-up that was not done with its first.
    #[inline(never)]
    fn go_on(
        &self,
        later: &mut Vec<Cursor>,
        memory: &mut impl Memory,
        sink: &mut impl Sink<Option<&'i V>>,
    ) {
        later.retain_mut(|cursor| self.is_unfinished(cursor, memory, sink));
    }

    /// Takes a step, and says whether there is another, whose place was hinted at.
    #[inline(always)]
    fn is_unfinished(
        &self,
        cursor: &mut Cursor,
        memory: &mut impl Memory,
        sink: &mut impl Sink<Option<&'i V>>,
    ) -> bool {
        let key = &self.keys[cursor.row as usize];
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
