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

use super::{Bucket, Compare, SLOTS, Table, has_spilled, home, stored};
use crate::memory::Memory;
use crate::place::{Intent, Place};
use crate::selection::Blocks;
pub use crate::selection::{BLOCK, SelectionVector};

/// Looks up every key. The order of `selection` is the order of `keys`.
///
/// Of a key that the table holds several times, one value is found.
#[inline(always)]
pub fn look_up<I: Compare, M: Memory>(
    table: &Table,
    isa: I,
    keys: &[u64],
    memory: &mut M,
    selection: &mut SelectionVector,
) {
    let within = Within { buckets: &table.buckets, homes: table.homes };
    let blocks = Blocks::of(keys);
    let count = blocks.count();
    let (found, values) = selection.begin(keys.len());
    let mut here = &mut blocks.block(0).map(|key| within.announce(key, memory));
    let (mut ahead, mut before) = (&mut [0; BLOCK], &mut [0; BLOCK]);
    let mut late = 0;
    for number in 0..count {
        let (keys, next) = (blocks.block(number), blocks.block(number + 1));
        let values_here: &mut [u64; BLOCK] = &mut values[number];
        let (mut bits, mut later) = (0, 0);
        for row in 0..BLOCK {
            ahead[row] = within.announce(next[row], memory);
            let bucket = memory.read(&within.buckets[here[row] as usize]);
            let matches = isa.equal(&bucket.keys, stored(keys[row]));
            values_here[row] = bucket.values[matches.trailing_zeros() as usize % SLOTS];
            bits |= u64::from(matches != 0) << row;
            later |= u64::from(has_spilled(&bucket.keys)) << row;
        }
        found[number] = bits;
        if let Some(last) = number.checked_sub(1) {
            let answer = (&mut found[last], &mut values[last]);
            within.look_on(isa, (late, before), blocks.block(last), memory, answer);
        }
        late = later & !bits;
        within.announce_late(late, here, memory);
        (before, here, ahead) = (here, ahead, before);
    }
    let Some(last) = count.checked_sub(1) else { return };
    let answer = (&mut found[last], &mut values[last]);
    within.look_on(isa, (late, before), blocks.block(last), memory, answer);
    found[last] &= blocks.bits(last);
}

/// A table as the loop has it in registers.
#[derive(Clone, Copy)]
struct Within<'t> {
    buckets: &'t [Bucket],
    homes: u32,
}

impl Within<'_> {
    /// Where a key starts, announced: not in the last bucket, whatever the key, as blocks are
    /// filled up with zeros.
    #[inline(always)]
    fn announce<M: Memory>(self, key: u64, memory: &mut M) -> u32 {
        let at = home(self.homes, key);
        memory.fetch(Place::of(&self.buckets[at as usize]), Intent::Read);
        at
    }

    /// Announces the second bucket of keys whose home was full without them: a bit each.
    #[inline(always)]
    fn announce_late<M: Memory>(self, late: u64, homes: &[u32; BLOCK], memory: &mut M) {
        for row in ones(late) {
            memory.fetch(Place::of(&self.buckets[homes[row] as usize + 1]), Intent::Read);
        }
    }

    /// Looks each of these keys up to its end.
    #[inline(always)]
    fn look_on<I: Compare, M: Memory>(
        self,
        isa: I,
        (late, homes): (u64, &[u32; BLOCK]),
        keys: &[u64; BLOCK],
        memory: &mut M,
        (found, values): (&mut u64, &mut [u64; BLOCK]),
    ) {
        for row in ones(late) {
            for bucket in &self.buckets[homes[row] as usize + 1..] {
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
    }
}

/// Places of the ones, in order.
#[inline(always)]
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (at < BLOCK).then_some(at)
    })
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

    fn check(table: &Table, map: &HashMap<u64, u64>, keys: &[u64], selection: &SelectionVector) {
        assert_eq!(selection.found().len(), keys.len().div_ceil(BLOCK));
        assert_eq!(selection.values().len(), keys.len());
        let expected = keys.iter().filter(|key| map.contains_key(key)).count();
        assert_eq!(selection.hits(), expected, "of {} in {}", keys.len(), table.len());
        for (row, key) in keys.iter().enumerate() {
            let found = selection.found()[row / BLOCK] >> (row % BLOCK) & 1 == 1;
            assert_eq!(
                found.then(|| &selection.values()[row]),
                map.get(key),
                "row {row}, key {key}"
            );
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
            let mut selection = SelectionVector::default();
            for probes in [&probes[..], &[], &probes[..probes.len() / 2]] {
                keys.extend(probes);
                for detected in Detected::all() {
                    with_isa!(detected, isa =>
                        look_up(&table, isa, &keys, &mut Direct, &mut selection));
                    check(&table, &build, &keys, &selection);
                    let memory = &mut Prefetching::<ToL1>::default();
                    with_isa!(detected, isa =>
                        look_up(&table, isa, probes, memory, &mut selection));
                    check(&table, &build, probes, &selection);
                }
            }
        }
    }
}
