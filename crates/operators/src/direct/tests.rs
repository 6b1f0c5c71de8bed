//! The direct table against a map of the standard library.

use std::collections::HashMap;

use proptest::prelude::*;
use workahead_machine::pages::Pages;

use super::*;
use crate::bucket::Group;
use crate::isa::Detected;
use crate::memory::Direct;
use crate::with_isa;

fn check(table: &Table, map: &HashMap<u64, u64>, keys: &[u64], answers: &Answers) {
    assert_eq!(answers.found().len(), keys.len().div_ceil(BLOCK));
    assert_eq!(answers.values().len(), keys.len());
    assert_eq!(answers.hits(), keys.iter().filter(|key| map.contains_key(key)).count());
    for ((key, (found, value)), row) in keys.iter().zip(answers.each()).zip(0..) {
        assert_eq!(found.then_some(value), map.get(key).copied(), "row {row}, key {key}");
        assert_eq!(table.value_of(*key), map.get(key).copied());
    }
}

fn check_every_way(table: &Table, map: &HashMap<u64, u64>, keys: &[u64]) {
    let mut answers = Answers::default();
    for detected in Detected::all() {
        // Used again with more keys and with fewer.
        for keys in [keys, &[], &keys[..keys.len() / 2]] {
            with_isa!(detected, isa => {
                let _proof = isa;
                look_up(table, keys, &mut Direct, &mut answers)
            });
            check(table, map, keys, &answers);
            let memory = &mut Prefetching::<ToL1>::default();
            with_isa!(detected, isa => {
                let _proof = isa;
                look_up(table, keys, memory, &mut answers)
            });
            check(table, map, keys, &answers);
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
        table.hole = values[0];
        prop_assert!(table.put_unique(&keys, values.iter().copied()));
        check_every_way(&table, &map, &keys);
        let hole = table.hole;
        let shifted = |value: u64| value.wrapping_sub(values[0]).wrapping_add(hole);
        table.update_values(shifted);
        let shifted_map = map.iter().map(|(key, value)| (*key, shifted(*value))).collect();
        check_every_way(&table, &shifted_map, &keys);
        prop_assert!(!table.put_unique(&keys[..1], std::iter::once(7)), "its key is there");
        let mut sorted: Vec<u64> = table.values().collect();
        sorted.sort_unstable();
        let mut expected: Vec<u64> = shifted_map.into_values().collect();
        expected.sort_unstable();
        prop_assert_eq!(sorted, expected);
    }
}

#[test]
fn a_range_of_everything_is_refused() {
    for (lowest, highest) in [(0, u64::MAX), (1, 0), (0, PLACES_MAX - 1)] {
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
