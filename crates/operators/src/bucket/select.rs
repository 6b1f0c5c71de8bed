//! Vectorised lookups in a table that holds each key once: a bit and a value for every key.
//!
//! ```text
//! keys     … 64 keys …│… 64 keys …        homes of the next 64 are announced one by one
//!              compare ▲       ▲ hash     while these 64 are compared: one tight loop
//! found    1011…01     a bit for each key: whether it is there
//! values   v0 v1 … v63 the value of each that is
//! late     rows whose bucket was full without them: announced now, looked at after the next 64
//! ```
//!
//! No branch of the loop depends on what is read, so hits and misses cost the same and neither
//! empties the pipeline; and no row waits for its second line there and then. What comes out is in
//! the order of the keys whatever happened on the way, and is the form in which all kinds of joins
//! want it: bits for semi, anti and mark joins, values for the others.
//!
//! Boncz, Zukowski, Nes, *MonetDB/X100: Hyper-Pipelining Query Execution*, CIDR 2005 (vectors and
//! selections); Ross, *Selection conditions in main memory*, TODS 2004 (branches as arithmetic).

use super::{Compare, SLOTS, Table, has_spilled, home, stored};
use crate::answers::Blocks;
pub use crate::answers::{Answers, BLOCK};
use crate::memory::Memory;
use crate::place::{Intent, Place};

/// Looks up every key. The order of `answers` is the order of `keys`.
///
/// Of a key that the table holds several times, one value is found.
#[inline(always)]
pub fn look_up<I: Compare, M: Memory>(
    table: &Table,
    isa: I,
    keys: &[u64],
    memory: &mut M,
    answers: &mut Answers,
) {
    let blocks = Blocks::of(keys);
    let count = blocks.count();
    let (found, values) = answers.begin(keys.len());
    let mut homes = blocks.block(0).map(|key| announce(table, key, memory));
    let (mut late, mut later) = (&mut Late::none(), &mut Late::none());
    for number in 0..count {
        let (keys, next) = (blocks.block(number), blocks.block(number + 1));
        let values_here: &mut [u64; BLOCK] = &mut values[number];
        let mut bits = 0;
        for row in 0..BLOCK {
            let at = homes[row];
            homes[row] = announce(table, next[row], memory);
            let bucket = memory.read(&table.buckets[at as usize]);
            let matches = isa.equal(&bucket.keys, stored(keys[row]));
            values_here[row] = bucket.values[matches.trailing_zeros() as usize % SLOTS];
            bits |= u64::from(matches != 0) << row;
            later.add_if((matches == 0) & has_spilled(&bucket.keys), row, at + 1);
        }
        found[number] = bits;
        if let Some(before) = number.checked_sub(1) {
            let answer = (&mut found[before], &mut values[before]);
            late.look_on((table, isa), blocks.block(before), memory, answer);
        }
        later.announce(table, memory);
        std::mem::swap(&mut late, &mut later);
    }
    let Some(before) = count.checked_sub(1) else { return };
    late.look_on(
        (table, isa),
        blocks.block(before),
        memory,
        (&mut found[before], &mut values[before]),
    );
    found[before] &= blocks.bits(before);
}

/// Where a key starts, announced.
#[inline(always)]
fn announce<M: Memory>(table: &Table, key: u64, memory: &mut M) -> u32 {
    let at = home(table.homes, key);
    memory.fetch(Place::of(&table.buckets[at as usize]), Intent::Read);
    at
}

/// Keys of a block whose home was full without them: row, and the bucket to look on from.
struct Late {
    rows: [(u8, u32); BLOCK],
    len: usize,
}

impl Late {
    fn none() -> Self {
        Self { rows: [(0, 0); BLOCK], len: 0 }
    }

    /// Written always, kept only if it is late: no branch. At most one a row.
    #[inline(always)]
    fn add_if(&mut self, is_late: bool, row: usize, at: u32) {
        self.rows[self.len % BLOCK] = (row as u8, at);
        self.len += usize::from(is_late);
    }

    #[inline(always)]
    fn announce<M: Memory>(&self, table: &Table, memory: &mut M) {
        for (_, at) in &self.rows[..self.len] {
            memory.fetch(Place::of(&table.buckets[*at as usize]), Intent::Read);
        }
    }

    /// Looks each key up to its end, and forgets them.
    #[inline(always)]
    fn look_on<I: Compare, M: Memory>(
        &mut self,
        (table, isa): (&Table, I),
        keys: &[u64; BLOCK],
        memory: &mut M,
        (found, values): (&mut u64, &mut [u64; BLOCK]),
    ) {
        for (row, at) in &self.rows[..self.len] {
            let row = usize::from(*row);
            for bucket in &table.buckets[*at as usize..] {
                let bucket = memory.read(bucket);
                let matches = isa.equal(&bucket.keys, stored(keys[row]));
                if matches != 0 {
                    values[row] = bucket.values[matches.trailing_zeros() as usize % SLOTS];
                    *found |= 1 << row;
                    break;
                }
                if !has_spilled(&bucket.keys) {
                    break;
                }
            }
        }
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use workahead_machine::pages::Pages;

    use super::super::Load;
    use super::*;
    use crate::isa::Detected;
    use crate::memory::{Direct, Prefetching, ToL1};
    use crate::with_isa;

    fn check(table: &Table, map: &HashMap<u64, u64>, keys: &[u64], answers: &Answers) {
        assert_eq!(answers.found().len(), keys.len().div_ceil(BLOCK));
        assert_eq!(answers.values().len(), keys.len());
        let expected = keys.iter().filter(|key| map.contains_key(key)).count();
        assert_eq!(answers.hits(), expected, "of {} in {}", keys.len(), table.len());
        for (row, key) in keys.iter().enumerate() {
            let found = answers.found()[row / BLOCK] >> (row % BLOCK) & 1 == 1;
            assert_eq!(found.then(|| &answers.values()[row]), map.get(key), "row {row}, key {key}");
        }
    }

    proptest! {
        #[test]
        fn finds_what_a_map_finds(
            build in prop::collection::hash_map(
                prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..900_u64, any::<u64>()],
                any::<u64>(), 0..700),
            probes in prop::collection::vec(prop_oneof![Just(0), 0..900_u64, any::<u64>()], 0..400),
            load in 30..=90_u8,
        ) {
            let (mut keys, values): (Vec<_>, Vec<_>) = build.iter().map(|(k, v)| (*k, *v)).unzip();
            let load = Load::percent(load).unwrap();
            let table = Table::of(&keys, &values, load, Pages::Small).unwrap();
            // Used again with more keys and with fewer.
            let mut answers = Answers::default();
            for probes in [&probes[..], &[], &probes[..probes.len() / 2]] {
                keys.extend(probes);
                for detected in Detected::all() {
                    with_isa!(detected, isa =>
                        look_up(&table, isa, &keys, &mut Direct, &mut answers));
                    check(&table, &build, &keys, &answers);
                    let memory = &mut Prefetching::<ToL1>::default();
                    with_isa!(detected, isa => look_up(&table, isa, probes, memory, &mut answers));
                    check(&table, &build, probes, &answers);
                }
            }
        }
    }
}
