//! Histories of an ordered index.

use std::collections::BTreeMap;
use std::ops::Bound;

use workahead_lookup::{OrderedIndex, Pages};
use workahead_walks::random::Random;

use super::{Key, batch, compare_lookups, domain, histories, technique};

fn history<K: Key>(random: &mut Random) {
    let domain = domain(random);
    let loaded: BTreeMap<K, u64> =
        (0..random.below(domain)).map(|number| (K::of(number * 2), u64::from(number))).collect();
    let mut index = OrderedIndex::from_sorted(loaded.clone(), Pages::Usual);
    let mut map = loaded;
    for _ in 0..1200 {
        let key = K::of(random.below(domain));
        let value = random.number();
        match random.below(16) {
            0..=4 => assert_eq!(index.insert(key.clone(), value), map.insert(key, value)),
            5..=8 => assert_eq!(index.remove(&key), map.remove(&key)),
            9 => {
                let (found, expected) = (index.get_mut(&key), map.get_mut(&key));
                assert_eq!(found, expected);
                found.into_iter().chain(expected).for_each(|there| *there = value);
            }
            10 => {
                let entries = batch::<K>(random, domain).into_iter().map(|key| (key, value ^ 1));
                let entries: Vec<(K, u64)> = entries.collect();
                index.insert_many(entries.iter().cloned());
                map.extend(entries);
            }
            11 if value.is_multiple_of(16) => compare_all(&mut index, &mut map),
            11 if value.is_multiple_of(101) => {
                index.clear();
                map.clear();
            }
            11 => assert_eq!(index.contains(&key), map.contains_key(&key)),
            12 | 13 => compare_ranges(&index, &map, domain, random),
            _ => compare_batch(&mut index, &map, domain, random),
        }
        assert_eq!(index.len(), map.len());
    }
    compare_all(&mut index, &mut map);
    let mut entries = index.into_iter();
    let taken = if map.is_empty() { 0 } else { random.below(map.len() as u32) as usize };
    assert!(entries.by_ref().take(taken).eq(map.clone().into_iter().take(taken)));
    assert_eq!(entries.len(), map.len() - taken);
    // The rest is dropped by the iterator, or comes out, too.
    if random.below(2) == 0 {
        assert!(entries.eq(map.into_iter().skip(taken)));
    }
}

/// All ways through the entries.
fn compare_all<K: Key>(index: &mut OrderedIndex<K, u64>, map: &mut BTreeMap<K, u64>) {
    assert!(index.keys().eq(map.keys()) && index.values().eq(map.values()));
    index.values_mut().chain(map.values_mut()).for_each(|value| *value ^= 2);
    assert!(index.iter_mut().eq(map.iter_mut()));
    assert_eq!(index.iter().len(), map.len());
    assert!((&*index).into_iter().eq(&*map));
}

fn compare_batch<K: Key>(
    index: &mut OrderedIndex<K, u64>,
    map: &BTreeMap<K, u64>,
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
}

fn compare_ranges<K: Key>(
    index: &OrderedIndex<K, u64>,
    map: &BTreeMap<K, u64>,
    domain: u32,
    random: &mut Random,
) {
    let (a, b) = (K::of(random.below(domain)), K::of(random.below(domain)));
    let (first, last) = if a <= b { (a, b) } else { (b, a) };
    let start = match random.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(&first),
        _ if first < last => Bound::Excluded(&first),
        _ => Bound::Included(&first),
    };
    let end = match random.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(&last),
        _ => Bound::Excluded(&last),
    };
    let range = |bounds| index.range::<K, (Bound<&K>, Bound<&K>)>(bounds);
    assert!(range((start, end)).eq(map.range::<K, _>((start, end))));
    // Many ranges, some of them empty, and some whose ends are the wrong way round.
    let firsts: Vec<K> = batch(random, domain);
    let ends: Vec<K> = firsts.iter().map(|_| K::of(random.below(domain))).collect();
    let mut visited = Vec::new();
    index.range_many(&firsts, &ends, |at, key, value| {
        if visited.len() < 4000 {
            visited.push((at, key.clone(), *value));
        }
    });
    let expected = firsts.iter().zip(&ends).enumerate().flat_map(|(at, (first, end))| {
        let bounds = (Bound::Included(first), Bound::Excluded(end.max(first)));
        map.range::<K, _>(bounds).map(move |(key, value)| (at, key.clone(), *value))
    });
    assert!(visited.into_iter().eq(expected.take(4000)));
}

#[test]
fn an_ordered_index_is_a_tree_map() {
    histories(|random| match random.below(4) {
        0 => history::<u32>(random),
        1 => history::<u64>(random),
        2 => history::<[u8; 12]>(random),
        _ => history::<String>(random),
    });
}
