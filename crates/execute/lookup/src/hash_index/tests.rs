//! Against the standard library's map, for entries of all shapes, every technique, any history.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::{BuildHasher, Hash, Hasher};

use proptest::prelude::*;
use workahead_walks::conformance;

use super::probe::Probe;
use super::*;

const TECHNIQUES: [Technique; 6] = [
    Technique::InTurn,
    Technique::Distance(1),
    Technique::Distance(32),
    Technique::Lanes(7),
    Technique::Rounds(1000),
    Technique::Rounds(0),
];

/// Few hashes, so that buckets overflow, and none of it in the high bits.
#[derive(Clone, Default)]
struct Poor;

struct PoorHasher(u64);

impl BuildHasher for Poor {
    type Hasher = PoorHasher;
    fn build_hasher(&self) -> PoorHasher {
        PoorHasher(0)
    }
}

impl Hasher for PoorHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| sum + u64::from(*byte)) % 5;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Insert(u8, u32),
    Remove(u8),
    GetOrInsert(u8, u32),
    InsertMany(u8, u32),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        4 => (any::<u8>(), any::<u32>()).prop_map(|(key, value)| Change::Insert(key, value)),
        3 => any::<u8>().prop_map(Change::Remove),
        1 => (any::<u8>(), any::<u32>()).prop_map(|(key, value)| Change::GetOrInsert(key, value)),
        1 => (any::<u8>(), any::<u32>()).prop_map(|(key, value)| Change::InsertMany(key, value)),
    ];
    prop::collection::vec(change, 0..if cfg!(miri) { 20 } else { 400 })
}

/// Applies changes to an index that grows, and to one that has room for all: in the buckets of a
/// small table, and in those of one too large for a test.
fn compare<K, V, S>(changes: &[Change], key: impl Fn(u8) -> K, value: impl Fn(u32) -> V)
where
    K: Hash + Eq + Clone + Debug,
    V: PartialEq + Clone + Debug,
    S: BuildHasher + Default,
{
    compare_from(HashIndex::<K, V, S>::default(), changes, &key, &value);
    for is_apart in [false, true] {
        let table = Table::with_buckets(1000, is_apart, Pages::Usual);
        let index = HashIndex { table, ..HashIndex::<K, V, S>::default() };
        compare_from(index, changes, &key, &value);
    }
}

/// Applies changes to an index and to a map, and compares every answer.
fn compare_from<K, V, S>(
    mut index: HashIndex<K, V, S>,
    changes: &[Change],
    key: impl Fn(u8) -> K,
    value: impl Fn(u32) -> V,
) where
    K: Hash + Eq + Clone + Debug,
    V: PartialEq + Clone + Debug,
    S: BuildHasher,
{
    let mut map = HashMap::new();
    for change in changes {
        match *change {
            Change::Insert(k, v) => {
                assert_eq!(index.insert(key(k), value(v)), map.insert(key(k), value(v)));
            }
            Change::Remove(k) => assert_eq!(index.remove(&key(k)), map.remove(&key(k))),
            Change::GetOrInsert(k, v) => {
                let found = index.get_or_insert_with(key(k), || value(v)).clone();
                assert_eq!(found, *map.entry(key(k)).or_insert_with(|| value(v)));
            }
            Change::InsertMany(k, v) => {
                let entries = (k..k.saturating_add(if cfg!(miri) { 9 } else { 70 }))
                    .map(|k| (key(k / 2), value(v.wrapping_add(u32::from(k)))));
                index.insert_many(entries.clone());
                map.extend(entries);
            }
        }
        assert_eq!(index.len(), map.len());
    }
    let keys: Vec<K> = (0..=u8::MAX).step_by(if cfg!(miri) { 40 } else { 1 }).map(&key).collect();
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
    }
    index.iter().for_each(|(key, value)| assert_eq!(map.get(key), Some(value)));
    assert_eq!(index.iter().count(), map.len());
    assert_eq!(index.iter_mut().count(), map.len());
    assert_eq!(index.into_iter().collect::<HashMap<_, _>>(), map);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 64 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn numbers(changes in changes()) {
        compare::<u64, u64, FoldedState>(&changes, u64::from, u64::from);
        compare::<u32, u32, FoldedState>(&changes, u32::from, |value| value);
        compare::<u64, u64, Poor>(&changes, u64::from, u64::from);
    }

    #[test]
    fn short_texts_and_sets(changes in changes()) {
        let text = |key: u8| { let mut text = [0_u8; 12]; text[11] = key; text[3] = 1; text };
        compare::<[u8; 12], u64, FoldedState>(&changes, text, u64::from);
        compare::<u8, (), FoldedState>(&changes, |key| key, |_| ());
        compare::<u8, u8, Poor>(&changes, |key| key, |value| value as u8);
    }

    #[test]
    fn entries_of_several_lines_that_own_memory(changes in changes()) {
        let name = |key: u8| format!("key {key}");
        compare::<String, Vec<u32>, FoldedState>(&changes, name, |value| vec![value; 2]);
        compare::<String, [u64; 20], Poor>(&changes, name, |value| [u64::from(value); 20]);
        compare::<String, String, Poor>(&changes, name, |value| value.to_string());
    }
}

#[test]
fn entries_that_are_aligned_more_than_a_line_lie_right() {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    #[repr(align(128))]
    struct Wide(u32);
    let index: HashIndex<Wide, Wide> = (0..500).map(|n| (Wide(n), Wide(n + 1))).collect();
    for n in 0..500 {
        let value = index.get(&Wide(n)).unwrap();
        assert_eq!((value.0, std::ptr::from_ref(value).addr() % 128), (n + 1, 0));
    }
}

#[test]
fn entries_without_bytes_are_one_at_most() {
    let mut index = HashIndex::new();
    assert_eq!(index.insert((), ()), None);
    assert_eq!(index.insert((), ()), Some(()));
    assert_eq!((index.len(), index.remove(&()), index.len()), (1, Some(()), 0));
}

#[test]
fn tables_with_tags_apart_are_small() {
    for capacity in [1, 1_000, 100_000, 490_000, 1_000_000] {
        let table = Table::<u64, u64>::with_capacity(capacity, Pages::Usual);
        assert!(table.limit() >= capacity);
        if let super::first_step::FirstStep::Apart(_) = table.first_step() {
            assert!(table.bytes() <= super::table::APART_BYTES_MAX, "{capacity}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "hundreds of schedules")]
fn the_walk_keeps_the_laws() {
    fn check<const WORDS: usize>(keys: &[u64], entries: u64, is_apart: bool) {
        let table = Table::with_buckets(200, is_apart, Pages::Usual);
        let hasher = FoldedState::with_seed(3);
        let mut index = HashIndex { table, ..HashIndex::with_hasher(hasher) };
        index.insert_many((0..entries).map(|key| (key * 2, [key; WORDS])));
        let probe = || Probe { table: &index.table, hasher: &index.hasher, keys };
        let expected: Vec<_> = (0..).zip(keys.iter().map(|key| index.get(key).copied())).collect();
        let oracle = conformance::hits(&expected, |value: Option<&[u64; WORDS]>| value.copied());
        conformance::check(probe, Rows::range(0..keys.len() as u32), oracle).unwrap();
    }
    for is_apart in [false, true] {
        check::<1>(&[], 10, is_apart);
        check::<1>(&[1], 0, is_apart);
        check::<1>(&(0..500).collect::<Vec<_>>(), 200, is_apart);
        check::<7>(&(0..300).collect::<Vec<_>>(), 120, is_apart);
    }
}

#[test]
fn a_hash_function_that_panics_loses_no_entry() {
    #[derive(PartialEq, Eq)]
    struct Key(u32, std::rc::Rc<std::cell::Cell<u32>>);
    impl Hash for Key {
        fn hash<H: Hasher>(&self, state: &mut H) {
            let left = self.1.get();
            assert!(left > 0, "enough");
            self.1.set(left - 1);
            self.0.hash(state);
        }
    }
    let left = std::rc::Rc::new(std::cell::Cell::new(u32::MAX));
    let mut index = HashIndex::new();
    for key in 0..100 {
        index.insert(Key(key, left.clone()), key);
    }
    for hashes in 0..100 {
        left.set(hashes);
        let growing = std::panic::AssertUnwindSafe(|| index.reserve(10_000));
        assert!(std::panic::catch_unwind(growing).is_err());
        assert_eq!((index.len(), index.iter().count()), (100, 100));
    }
    left.set(u32::MAX);
    for key in 0..100 {
        assert_eq!(index.get(&Key(key, left.clone())), Some(&key));
    }
    drop(index);
    assert_eq!(std::rc::Rc::strong_count(&left), 1);
}

#[test]
fn most_look_ups_read_one_bucket() {
    let count = if cfg!(miri) { 100 } else { 100_000 };
    let mut random = workahead_walks::random::Random::of(5);
    let mut index = HashIndex::with_hasher(FoldedState::with_seed(1));
    index.table = Table::with_buckets(count, false, Pages::Usual);
    index.insert_many((0..count).map(|value| (random.number() | 1, value)));
    let (mut steps, mut compared) = (0, 0);
    for _ in 0..count {
        let (mut at, _) = index.table.start(index.hasher.hash_one(random.number() & !1));
        let memory = &mut workahead_walks::Direct;
        let mut is_key = |_: &u64| {
            compared += 1;
            false
        };
        steps += 1;
        while let table::Step::Next(_) = index.table.step(&mut at, memory, &mut is_key) {
            steps += 1;
        }
    }
    assert!(steps * 4 < count * 5, "{steps} steps of {count} look-ups that miss");
    assert!(compared * 20 < count, "{compared} keys compared by {count} look-ups that miss");
}

#[test]
fn threads_find_what_one_does() {
    let count = if cfg!(miri) { 100 } else { 5000 };
    let index: HashIndex<u32, u32> = (0..count * 3 / 5).map(|key| (key * 2, key)).collect();
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

#[test]
fn a_table_whose_entries_come_and_go_stays_as_large_as_it_is() {
    let most = if cfg!(miri) { 30 } else { 3000 };
    let mut index = HashIndex::with_options(2 * most, FoldedState::with_seed(9), Pages::Usual);
    let bytes = index.bytes();
    for key in 0..20 * most {
        index.insert(key, key);
        if let Some(old) = key.checked_sub(most) {
            assert_eq!(index.remove(&old), Some(old));
            assert_eq!(index.get(&old), None);
        }
        assert!(index.len() <= index.capacity());
    }
    assert_eq!((index.len(), index.bytes()), (most, bytes));
    for key in 19 * most..20 * most {
        assert_eq!(index.get(&key), Some(&key));
    }
}
