//! Histories of a hash index.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::num::NonZero;

use workahead_lookup::{FoldedHasher, FoldedState, HashIndex, Pages};
use workahead_walks::random::Random;

use super::{Key, batch, compare_lookups, domain, histories, technique};

/// Entries beyond 16 MiB, whatever their size: a large table has its tags with its entries.
const LARGE: usize = 500_000;

/// A hash function some of whose bits are always zero: buckets and tags collide.
#[derive(Clone)]
struct MaskedState(FoldedState, u64);

struct MaskedHasher(FoldedHasher, u64);

impl BuildHasher for MaskedState {
    type Hasher = MaskedHasher;
    fn build_hasher(&self) -> MaskedHasher {
        MaskedHasher(self.0.build_hasher(), self.1)
    }
}

impl Hasher for MaskedHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }
    fn finish(&self) -> u64 {
        self.0.finish() & self.1
    }
}

fn history<K: Key>(random: &mut Random) {
    let domain = domain(random);
    let mask = [u64::MAX, u64::MAX << 40, 0xffff, 0x7][random.below(4) as usize];
    let hasher = MaskedState(FoldedState::with_seed(random.number()), mask);
    let room = match random.below(4) {
        0 | 1 => 0,
        2 => random.below(domain) as usize,
        _ => LARGE,
    };
    let mut index = HashIndex::with_options(room, hasher, Pages::Usual);
    let mut map = HashMap::new();
    // All keys with few hashes are one long search: fewer of them.
    let steps = if mask == 7 { 150 } else { 1200 };
    let domain = if mask == 7 { domain.min(200) } else { domain };
    for _ in 0..steps {
        let key = K::of(random.below(domain));
        let value = random.number();
        match random.below(16) {
            0..=3 => assert_eq!(index.insert(key.clone(), value), map.insert(key, value)),
            4..=7 => assert_eq!(index.remove(&key), map.remove(&key)),
            8 => {
                let found = *index.get_or_insert_with(key.clone(), || value);
                assert_eq!(found, *map.entry(key).or_insert(value));
            }
            9 => {
                let (found, expected) = (index.get_mut(&key), map.get_mut(&key));
                assert_eq!(found, expected);
                found.into_iter().chain(expected).for_each(|there| *there = value);
            }
            10 => {
                // A value for each, also of those with one key.
                let values = (0_u64..).map(|number| value.wrapping_add(number));
                let entries: Vec<(K, u64)> =
                    batch::<K>(random, domain).into_iter().zip(values).collect();
                index.insert_many(entries.iter().cloned());
                map.extend(entries);
            }
            11 if value.is_multiple_of(16) => {
                index.clear();
                map.clear();
            }
            11 => index.reserve(random.below(domain) as usize),
            12 if value.is_multiple_of(if room == LARGE { 128 } else { 8 }) => {
                compare_all(&mut index, &mut map);
            }
            _ => compare_batch(&mut index, &map, domain, random),
        }
        assert_eq!(index.len(), map.len());
        assert!(index.len() <= index.capacity());
    }
    compare_all(&mut index, &mut map);
    assert_eq!(index.into_iter().collect::<HashMap<K, u64>>(), map);
}

fn compare_batch<K: Key>(
    index: &mut HashIndex<K, u64, MaskedState>,
    map: &HashMap<K, u64>,
    domain: u32,
    random: &mut Random,
) {
    let keys: Vec<K> = batch(random, domain);
    let expected: Vec<Option<&u64>> = keys.iter().map(|key| map.get(key)).collect();
    index.set_technique(technique(random));
    compare_lookups(
        &expected,
        index.technique(),
        random,
        |found| index.get_many(&keys, found),
        |contained| index.contains_many(&keys, contained),
    );
    if random.below(20) == 0 {
        let threads = NonZero::new(1 + random.below(3) as usize).expect("at least one");
        let mut found = vec![Some(&7); keys.len()];
        index.get_many_parallel(&keys, &mut found, threads);
        assert_eq!(found, expected, "{threads} threads");
    }
}

/// All ways through the entries.
fn compare_all<K: Key>(index: &mut HashIndex<K, u64, MaskedState>, map: &mut HashMap<K, u64>) {
    index.values_mut().chain(map.values_mut()).for_each(|value| *value ^= 2);
    assert_eq!((index.iter().len(), index.iter_mut().count()), (map.len(), map.len()));
    assert_eq!((index.keys().count(), index.values().count()), (map.len(), map.len()));
    (&*index).into_iter().for_each(|(key, value)| assert_eq!(map.get(key), Some(value)));
    map.iter().for_each(|(key, value)| assert_eq!(index.get(key), Some(value)));
}

#[test]
fn a_hash_index_is_a_hash_map() {
    histories(|random| match random.below(4) {
        0 => history::<u32>(random),
        1 => history::<u64>(random),
        2 => history::<[u8; 12]>(random),
        _ => history::<String>(random),
    });
}

/// A table that grows beyond the size up to which its tags lie apart, and what was removed from it.
#[test]
fn a_table_outgrows_the_caches() {
    let mut random = Random::of(33);
    let mut index = HashIndex::new();
    let mut map = HashMap::new();
    let mut most_bytes = 0;
    while index.len() < LARGE + LARGE / 4 {
        let entries: Vec<(u64, u64)> =
            (0..50_000).map(|value| (u64::from(random.below(1 << 20)), value)).collect();
        index.insert_many(entries.iter().copied());
        map.extend(entries);
        for _ in 0..9000 {
            let key = u64::from(random.below(1 << 20));
            assert_eq!(index.remove(&key), map.remove(&key));
        }
        most_bytes = most_bytes.max(index.bytes());
        let keys: Vec<u64> = (0..3000).map(|_| u64::from(random.below(1 << 20))).collect();
        let expected: Vec<Option<&u64>> = keys.iter().map(|key| map.get(key)).collect();
        index.set_technique(technique(&mut random));
        compare_lookups(
            &expected,
            index.technique(),
            &mut random,
            |found| index.get_many(&keys, found),
            |contained| index.contains_many(&keys, contained),
        );
    }
    assert!(most_bytes > 16 << 20, "{most_bytes} bytes");
    assert_eq!(index.into_iter().collect::<HashMap<u64, u64>>(), map);
}

#[cfg(feature = "helper")]
#[test]
fn a_helper_changes_no_answer() {
    use workahead_lookup::Executor;
    let keys: Vec<u64> =
        (0..200_000_u64).map(|key| key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 45).collect();
    let executors =
        || [Executor::with_helper(), Executor::with_helper_on(0).expect("CPU 0 is allowed")];
    for entries in [0, 1, 100_000_u64] {
        let index: HashIndex<u64, u64> = (0..entries).map(|key| (key * 2, key)).collect();
        let mut expected = vec![None; keys.len()];
        index.get_many(&keys, &mut expected);
        let forced = executors().into_iter().map(|executor| executor.always(true));
        for executor in executors().into_iter().chain(forced) {
            let mut found = vec![None; keys.len()];
            index.get_many_by(&executor, &keys, &mut found);
            assert_eq!(found, expected, "{executor:?}");
        }
    }
}
