//! The perfect hash table against a map of the standard library.

use std::collections::HashMap;

use proptest::prelude::*;
use workahead_machine::pages::Pages;

use super::*;
use crate::bucket::Group;
use crate::isa::Detected;
use crate::memory::{Direct, Prefetching, ToL1};
use crate::with_isa;

fn check(table: &Table, map: &HashMap<u64, u64>, keys: &[u64], selection: &SelectionVector) {
    assert_eq!(selection.found().len(), keys.len().div_ceil(BLOCK));
    assert_eq!(selection.values().len(), keys.len());
    assert_eq!(selection.hits(), keys.iter().filter(|key| map.contains_key(key)).count());
    for ((key, (found, value)), row) in keys.iter().zip(selection.each()).zip(0..) {
        assert_eq!(found.then_some(value), map.get(key).copied(), "row {row}, key {key}");
        assert_eq!(table.value_of(*key), map.get(key).copied());
    }
}

fn check_every_way(table: &Table, map: &HashMap<u64, u64>, keys: &[u64]) {
    let mut selection = SelectionVector::default();
    for detected in Detected::all() {
        // Used again with more keys and with fewer.
        for keys in [keys, &[], &keys[..keys.len() / 2]] {
            with_isa!(detected, isa => {
                let _proof = isa;
                look_up(table, keys, &mut Direct, &mut selection)
            });
            check(table, map, keys, &selection);
            let memory = &mut Prefetching::<ToL1>::default();
            with_isa!(detected, isa => {
                let _proof = isa;
                look_up(table, keys, memory, &mut selection)
            });
            check(table, map, keys, &selection);
        }
    }
}

/// Ends of a range of 200 keys: at both ends of the numbers, through zero, and anywhere.
fn lowest() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(u64::MAX - 199),
        Just(-100_i64 as u64),
        Just(i64::MIN as u64),
        Just(i64::MAX as u64 - 100),
        any::<u64>()
    ]
}

proptest! {
    #[test]
    fn groups_are_those_of_a_map(
        lowest in lowest(),
        offsets in prop::collection::vec(0..200_u64, 0..500),
        near in prop::collection::vec(0..500_u64, 0..300),
        far in prop::collection::vec(any::<u64>(), 0..20),
        split in 0..500_usize,
    ) {
        let key = |offset: &u64| lowest.wrapping_add(*offset);
        let keys: Vec<u64> = offsets.iter().map(key).collect();
        let mut table = Table::for_range(lowest, lowest.wrapping_add(199), Pages::Small).unwrap();
        let mut repeats: Vec<(Row, Row)> = Vec::new();
        let (first, second) = keys.split_at(split.min(keys.len()));
        table.group(first, 0, &mut repeats);
        table.group(second, first.len() as Row, &mut repeats);

        let mut rows = HashMap::<u64, Vec<Row>>::new();
        keys.iter().zip(0..).for_each(|(key, row)| rows.entry(*key).or_default().push(row));
        prop_assert_eq!(table.len(), rows.len());
        prop_assert_eq!(repeats.len() + rows.len(), keys.len());
        for (key, rows) in &rows {
            let group = Group::of(table.value_of(*key).unwrap());
            prop_assert_eq!(group.first_row(), rows[0]);
            prop_assert_eq!(group.further_rows() as usize, rows.len() - 1);
        }
        for (row, first) in &repeats {
            prop_assert_eq!(keys[*row as usize], keys[*first as usize]);
            prop_assert_eq!(rows[&keys[*row as usize]][0], *first);
        }

        let map: HashMap<u64, u64> =
            rows.keys().map(|key| (*key, table.value_of(*key).unwrap())).collect();
        let mut probes = keys;
        probes.extend(near.iter().map(|offset| lowest.wrapping_add(*offset).wrapping_sub(150)));
        probes.extend(far);
        check_every_way(&table, &map, &probes);
    }

    #[test]
    fn every_value_can_be_held(
        lowest in lowest(),
        values in prop::collection::hash_map(0..200_u64, any::<u64>(), 1..200),
    ) {
        let map: HashMap<u64, u64> =
            values.iter().map(|(offset, value)| (lowest.wrapping_add(*offset), *value)).collect();
        let (keys, values): (Vec<u64>, Vec<u64>) = map.iter().map(|(k, v)| (*k, *v)).unzip();
        let mut table = Table::for_range(lowest, lowest.wrapping_add(199), Pages::Small).unwrap();
        // Each is the hole once: as it is put and as it is updated.
        let hole = std::mem::replace(&mut table.hole, values[0]);
        prop_assert!(!table.shared().put(&keys, values.iter().copied()));
        table.clear(2);
        table.hole = hole;
        prop_assert!(table.shared().put(&keys, values.iter().copied()));
        prop_assert!(table.is_unique(3));
        check_every_way(&table, &map, &keys);
        let hole = table.hole;
        let shifted = |value: u64| value.wrapping_sub(values[0]).wrapping_add(hole);
        table.update_values(shifted);
        let shifted_map = map.iter().map(|(key, value)| (*key, shifted(*value))).collect();
        check_every_way(&table, &shifted_map, &keys);
        prop_assert!(!table.shared().put(&keys[..1], std::iter::once(7)), "its key is there");
        let mut sorted: Vec<u64> = table.values().collect();
        sorted.sort_unstable();
        let mut expected: Vec<u64> = shifted_map.into_values().collect();
        expected.sort_unstable();
        prop_assert_eq!(sorted, expected);
    }
}

/// Enough slots for many blocks.
const WIDE: u64 = 100_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn groups_of_many_threads_are_those_of_one(
        lowest in lowest(),
        seed in any::<u64>(),
        rows in 0..20_000_usize,
        among in prop_oneof![Just(1), 1..50_u32, Just(WIDE as u32)],
        threads in 1..9_usize,
        pieces in 1..3000_usize,
    ) {
        let mut random = Random::of(seed);
        let keys: Vec<u64> =
            (0..rows).map(|_| lowest.wrapping_add(u64::from(random.below(among)))).collect();
        let range = (lowest, lowest.wrapping_add(WIDE));
        let mut one = Table::for_range_by(1, range, &Pages::Small.into()).unwrap();
        let mut expected: Vec<(Row, Row)> = Vec::new();
        one.group(&keys, 0, &mut expected);
        let mut many = Table::for_range_by(threads, range, &Pages::Small.into()).unwrap();
        let shared = many.shared();
        let keys = &keys[..];
        let group = move |part: usize| {
            let mut grouping = shared.grouping(Share::of(part, threads));
            let mut repeats: Vec<(Row, Row)> = Vec::new();
            for (number, keys) in keys.chunks(pieces).enumerate() {
                grouping.add(keys, (number * pieces) as Row, &mut repeats);
            }
            repeats
        };
        let mut repeats: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> =
                (0..threads).map(|part| scope.spawn(move || group(part))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        repeats.sort_unstable();
        prop_assert_eq!(repeats, expected);
        prop_assert_eq!(many.len(), one.len());
        prop_assert!(many.slots[..] == one.slots[..]);
    }

    #[test]
    fn many_threads_put_unique_keys_and_find_that_some_are_not(
        seed in any::<u64>(),
        rows in 1..20_000_u32,
        repeated in prop::option::of((any::<u32>(), any::<u32>())),
        threads in 1..9_usize,
    ) {
        let mut keys: Vec<u64> =
            Random::of(seed).permutation(rows).into_iter().map(u64::from).collect();
        let repeated = repeated.map(|(from, to)| ((from % rows) as usize, (to % rows) as usize));
        let repeats = repeated.is_some_and(|(from, to)| from != to);
        if let Some((from, to)) = repeated {
            keys[to] = keys[from];
        }
        let range = (0, u64::from(rows - 1));
        let pool = workahead_machine::pages::Pool::keeping(16 << 20);
        let pages = Supply::from(Pages::Small).with_pool(pool);
        for _ in 0..2 {
            // The second time on pages that are not zero.
            let mut table = Table::for_range_by(threads, range, &pages).unwrap();
            let (shared, keys) = (table.shared(), &keys[..]);
            let share = keys.len().div_ceil(threads);
            let put = thread::scope(|scope| {
                let put = |keys: &[u64]| shared.put(keys, keys.iter().map(|key| key * 3));
                let threads: Vec<_> =
                    keys.chunks(share).map(|keys| scope.spawn(move || put(keys))).collect();
                threads.into_iter().all(|thread| thread.join().unwrap())
            });
            prop_assert_eq!(put && table.is_unique(threads), !repeats);
            if !repeats {
                prop_assert!(keys.iter().all(|key| table.value_of(*key) == Some(key * 3)));
            }
        }
    }
}

#[test]
fn a_range_of_everything_is_refused() {
    for (lowest, highest) in [(0, u64::MAX), (1, 0), (0, SLOTS_MAX - 1)] {
        let refused = Table::for_range(lowest, highest, Pages::Small);
        assert!(matches!(refused, Err(TableError::TooWide { .. })), "{lowest} {highest}");
    }
    assert_eq!(Table::bytes_for(0), Some(16));
}

#[test]
#[should_panic(expected = "out of the table's range")]
fn a_key_out_of_range_is_not_built() {
    let mut table = Table::for_range(5, 9, Pages::Small).unwrap();
    table.group(&[10], 0, &mut Vec::new());
}
