//! Partitioned builds against builds row by row.

use std::collections::HashMap;

use proptest::prelude::*;
use workahead_machine::pages::{Pages, Pool};

use super::*;

fn partitioned(partitions: Partitions, threads: &[&[u64]], pages: &Supply) -> Vec<PartitionedRows> {
    let mut base = 0;
    let partition = |keys: &&[u64]| {
        let mut counts = partitions.counts();
        let (one, other) = keys.split_at(keys.len() / 3);
        counts.add(one);
        counts.add(other);
        let mut partitioned = counts.allocate(pages).unwrap();
        for keys in [one, other] {
            partitioned.add(keys, |at| (base + at) as u64);
            base += keys.len();
        }
        partitioned
    };
    threads.iter().map(partition).collect()
}

/// Keys that call the last homes of partitions home, and others.
fn keys() -> impl Strategy<Value = Vec<u64>> {
    let key = prop_oneof![Just(0), Just(1), Just(u64::MAX), 0..400_u64, any::<u64>()];
    prop::collection::vec(key, 0..3000)
}

proptest! {
    #[test]
    fn a_partitioned_build_makes_the_table_of_a_build_by_rows(
        keys in keys(), cut in 0.0..1.0_f64, threads in 1..4_usize, load in 30..=85_u8,
        pooled: bool,
    ) {
        let load = Load::percent(load).unwrap();
        let fresh = Supply::from(Pages::Small);
        let pool = Pool::keeping(64 << 20);
        // Dirty.
        pool.take::<u8>(2 << 20, Pages::Small).unwrap().fill(0xa5);
        let pages = if pooled { fresh.with_pool(pool) } else { fresh };
        let partitions = Partitions::of(keys.len(), load, 1).unwrap();
        let (one, other) = keys.split_at((keys.len() as f64 * cut) as usize);
        let rows = partitioned(partitions, &[one, other], &pages);
        let grouped = partitions.group(&rows, threads, &pages);
        let mut expected = Vec::new();
        let plain = Table::for_entries(keys.len(), load, Pages::Small).unwrap();
        let plain = plain.grouped(&keys, 0, &mut expected).unwrap();
        let (table, mut repeats) = grouped.unwrap();
        repeats.sort_unstable();
        prop_assert_eq!(&repeats, &expected);
        prop_assert_eq!(table.len(), plain.len());
        for key in &keys {
            prop_assert_eq!(table.values_of(*key), plain.values_of(*key), "{}", key);
        }
        let mut values: [Vec<u64>; 2] = [table.values().collect(), plain.values().collect()];
        values.iter_mut().for_each(|values| values.sort_unstable());
        prop_assert_eq!(&values[0], &values[1]);
        let unique = partitions.unique(&rows, threads, &pages).unwrap();
        prop_assert_eq!(unique.is_some(), repeats.is_empty());
    }

    #[test]
    fn tables_of_different_keys_hold_what_they_were_given(
        given in prop::collection::hash_map(any::<u64>(), any::<u64>(), 0..2000),
        threads in 1..4_usize,
    ) {
        let pages = Supply::from(Pages::Small);
        let (keys, values): (Vec<u64>, Vec<u64>) = given.iter().map(|(k, v)| (*k, *v)).unzip();
        let partitions = Partitions::of(keys.len(), Load::percent(80).unwrap(), 1).unwrap();
        let mut counts = partitions.counts();
        counts.add(&keys);
        let mut rows = counts.allocate(&pages).unwrap();
        rows.add(&keys, |at| values[at]);
        let table = partitions.unique(&[rows], threads, &pages).unwrap().expect("no key repeats");
        let held: HashMap<u64, u64> =
            keys.iter().map(|key| (*key, table.values_of(*key)[0])).collect();
        prop_assert_eq!(held, given);
    }
}

#[test]
fn rows_that_leave_their_part_are_found_again() {
    // Many times more keys than a partition has room for, all at home in its last bucket.
    let partitions = Partitions::of(40_000, Load::HALF, 1).unwrap();
    assert!(partitions.count() > 8);
    let last = (3 << partitions.shift) - 1;
    let at_home = (1_u64..).filter(|key| home(partitions.homes, *key) == last).take(300);
    let keys: Vec<u64> = at_home.collect();
    let pages = Supply::from(Pages::Small);
    let (table, repeats) =
        partitions.group(&partitioned(partitions, &[&keys], &pages), 2, &pages).unwrap();
    assert!(repeats.is_empty() && table.len() == keys.len());
    for (row, key) in keys.iter().enumerate() {
        assert_eq!(table.values_of(*key), [row as u64]);
    }
}

#[test]
fn too_many_keys_are_refused() {
    let keys: Vec<u64> = (1..5000).collect();
    let pages = Supply::from(Pages::Small);
    let partitions = Partitions::of(10, Load::HALF, 1 << 18).unwrap();
    let crowded = partitions.group(&partitioned(partitions, &[&keys], &pages), 1, &pages);
    assert!(matches!(crowded, Err(TableError::Crowded { .. })));
}

#[test]
fn partitions_are_a_power_of_two_and_not_too_many() {
    for entries in [0, 1, 1000, 1 << 20, 1 << 28] {
        for partition_bytes in [1, 1 << 18, 3 << 17] {
            let partitions = Partitions::of(entries, Load::HALF, partition_bytes).unwrap();
            assert!(
                (1..=PARTITIONS_MAX).contains(&partitions.count()),
                "{entries} {partition_bytes}"
            );
        }
    }
}
