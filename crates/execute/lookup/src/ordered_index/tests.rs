//! Against the standard library's ordered map, for entries of all shapes, every technique, any
//! history.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use workahead_walks::conformance;

use super::*;

const TECHNIQUES: [Technique; 5] = [
    Technique::InTurn,
    Technique::Distance(3),
    Technique::Lanes(1),
    Technique::Lanes(32),
    Technique::Rounds(100),
];

#[derive(Debug, Clone, Copy)]
enum Change {
    Insert(u16, u32),
    Remove(u16),
    Ascending(u16, u16),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let key = 0_u16..1500;
    let most = if cfg!(miri) { 20 } else { 200 };
    let change = prop_oneof![
        5 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Change::Insert(key, value)),
        3 => key.clone().prop_map(Change::Remove),
        1 => (key, 0_u16..most).prop_map(|(key, count)| Change::Ascending(key, count)),
    ];
    prop::collection::vec(change, 0..if cfg!(miri) { 30 } else { 600 })
}

fn compare<K, V>(
    loaded: u16,
    fill: usize,
    changes: &[Change],
    (key, value): (impl Fn(u16) -> K, impl Fn(u32) -> V),
) where
    K: Ord + Clone + Debug,
    V: PartialEq + Clone + Debug,
{
    let of = |k: u16| (key(k * 2), value(u32::from(k)));
    let mut map: BTreeMap<K, V> = (0..loaded).map(of).collect();
    let fill = fill.min(Shape::<K, V>::MOST);
    let mut index = OrderedIndex::loaded(map.clone().into_iter(), Pages::Usual, fill);
    for change in changes {
        match *change {
            Change::Insert(k, v) => {
                assert_eq!(index.insert(key(k), value(v)), map.insert(key(k), value(v)));
            }
            Change::Remove(k) => assert_eq!(index.remove(&key(k)), map.remove(&key(k))),
            Change::Ascending(k, count) => {
                let entries = (k..k + count).map(|k| (key(k), value(7)));
                index.set_technique(Some(TECHNIQUES[usize::from(count) % TECHNIQUES.len()]));
                index.insert_many(entries.clone());
                map.extend(entries);
            }
        }
        assert_eq!(index.len(), map.len());
    }
    assert!(index.iter().eq(map.iter()), "{index:?} {map:?}");
    let keys: Vec<K> = (0..1600).step_by(if cfg!(miri) { 200 } else { 1 }).map(&key).collect();
    for technique in TECHNIQUES {
        index.set_technique(Some(technique));
        let mut values = vec![None; keys.len()];
        index.get_many(&keys, &mut values);
        let mut contained = vec![true; keys.len()];
        index.contains_many(&keys, &mut contained);
        for ((key, value), is_there) in keys.iter().zip(values).zip(contained) {
            assert_eq!(value, map.get(key), "{technique:?}");
            assert_eq!(index.get(key), map.get(key));
            assert_eq!(is_there, map.contains_key(key), "{technique:?}");
        }
        let (firsts, ends): (Vec<K>, Vec<K>) = (0..if cfg!(miri) { 5 } else { 300_u16 })
            .map(|k| (key(k * 5), key(k * 5 + k % 40)))
            .unzip();
        let mut found = vec![Vec::new(); firsts.len()];
        index.range_many(&firsts, &ends, |range, key, value| found[range].push((key, value)));
        for ((first, end), found) in firsts.iter().zip(&ends).zip(found) {
            let expected = if first <= end { map.range(first..end).collect() } else { vec![] };
            assert_eq!(found, expected);
        }
    }
    for (first, end) in keys.iter().zip(keys.iter().skip(9)).step_by(7).filter(|(a, b)| a < b) {
        assert!(index.range(first..=end).eq(map.range(first..=end)));
        let bounds = (Bound::Excluded(first), Bound::Excluded(end));
        assert!(index.range::<K, _>(bounds).eq(map.range::<K, _>(bounds)));
        assert!(index.range(..end).eq(map.range(..end)));
    }
    for (key, other) in map.iter_mut().step_by(9) {
        *index.get_mut(key).unwrap() = value(1);
        *other = value(1);
    }
    assert!(index.iter().eq(map.iter()));
    for (there, other) in index.values_mut().zip(map.values_mut()).step_by(5) {
        (*there, *other) = (value(2), value(2));
    }
    assert_eq!(index.iter_mut().len(), map.len());
    assert!(index.iter_mut().eq(map.iter_mut()));
    let left = index.len() / 3;
    let mut entries = index.into_iter();
    let expected = map.iter().map(|(key, value)| (key.clone(), value.clone()));
    assert!(entries.by_ref().take(left).eq(expected.take(left)));
    assert_eq!(entries.len(), map.len() - left);
    if changes.len().is_multiple_of(2) {
        assert!(entries.eq(map.into_iter().skip(left)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 40 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn numbers(loaded in 0_u16..700, fill in 3_usize..15, changes in changes()) {
        let loaded = if cfg!(miri) { loaded / 20 } else { loaded };
        compare(loaded, fill, &changes, (u64::from, u64::from));
        compare(loaded, fill, &changes, (|key| key, |value| value));
        compare(loaded, fill, &changes, (|key| u128::from(key) << 70, |_| ()));
    }

    #[test]
    fn entries_that_own_memory(loaded in 0_u16..700, fill in 3_usize..15, changes in changes()) {
        let loaded = if cfg!(miri) { loaded / 20 } else { loaded };
        compare(loaded, fill, &changes, (|key| format!("{key:05}"), |value| vec![value; 2]));
        compare(loaded, fill, &changes, (|key: u16| key.to_be_bytes(), |value| value.to_string()));
        compare(loaded, fill, &changes, (|key| [key; 100], |value| [value; 50]));
    }
}

#[test]
#[cfg_attr(miri, ignore = "hundreds of schedules")]
fn the_walk_keeps_the_laws() {
    for entries in [0, 1, 7, 8, 500] {
        let mut index: OrderedIndex<u64, u64> = (0..entries).map(|key| (2 * key, key)).collect();
        index.remove(&4);
        let keys: Vec<u64> = (0..1100).step_by(3).collect();
        let expected: Vec<_> = (0..).zip(keys.iter().map(|key| index.get(key).copied())).collect();
        let oracle = |walk, found: Vec<(u32, Position)>| {
            let found = found.into_iter();
            let values: Vec<(u32, Option<u64>)> = found
                .map(|(row, at)| (row, index.nodes.at(at, &keys[row as usize]).copied()))
                .collect();
            let _: Lookup<'_, '_, u64, u64, u64> = walk;
            let mut values = values;
            values.sort_unstable();
            if values == expected { Ok(()) } else { Err(format!("{values:?}")) }
        };
        let rows = Rows::range(0..keys.len() as u32);
        conformance::check(|| index.walk(&keys), rows, oracle).unwrap();
    }
}

#[test]
#[should_panic(expected = "keys ascend")]
fn a_bulk_load_wants_its_keys_in_order() {
    OrderedIndex::from_sorted([(1, ()), (1, ())], Pages::Usual);
}

#[test]
fn random_inserts_make_a_tree_of_many_levels() {
    let mut random = workahead_walks::random::Random::of(5);
    let count = if cfg!(miri) { 300 } else { 50_000 };
    let keys = random.permutation(count);
    let mut index = OrderedIndex::new();
    for key in &keys {
        assert_eq!(index.insert(*key, !key), None);
    }
    assert!(index.iter().map(|(key, _)| *key).eq(0..count));
    assert!(keys.iter().all(|key| index.get(key) == Some(&!key)));
    for key in &keys {
        assert_eq!(index.remove(key), Some(!key));
    }
    assert!(index.is_empty() && index.iter().next().is_none());
}

#[test]
fn threads_find_what_one_does() {
    let count = if cfg!(miri) { 100 } else { 5000 };
    let index: OrderedIndex<u32, u32> = (0..count * 3 / 5).map(|key| (key * 2, key)).collect();
    let keys: Vec<u32> = (0..count).collect();
    let mut expected = vec![None; keys.len()];
    index.get_many(&keys, &mut expected);
    for threads in [1, 2, 7, 64] {
        let threads = std::num::NonZero::new(threads).unwrap();
        let mut found = vec![None; keys.len()];
        index.get_many_parallel(&keys, &mut found, threads);
        assert_eq!(found, expected);
    }
    index.get_many_parallel::<u32>(&[], &mut [], std::num::NonZero::<usize>::MIN);
}
