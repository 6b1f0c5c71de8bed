//! Joins by partitions against a map of rows, and what scattering promises.

use std::collections::HashMap;

use proptest::prelude::*;
use workahead_machine::pages::{Pages, Pool, Supply};

use super::*;
use crate::random::Random;
use crate::walk::Row;

/// Caches so small that a few thousand rows make many partitions.
const TINY: Room = Room { l2_bytes: 16 << 10, tlb_entries: None, page_bytes: 4096 };

fn pages(pooled: bool) -> Supply {
    let fresh = Supply::from(Pages::Small);
    if !pooled {
        return fresh;
    }
    let pool = Pool::keeping(64 << 20);
    // Dirty.
    pool.take::<u8>(2 << 20, Pages::Small).unwrap().fill(0xa5);
    fresh.with_pool(pool)
}

/// How keys are drawn.
#[derive(Debug, Clone, Copy)]
enum Drawn {
    Equal(u64),
    Spread,
    Few,
    /// The `i`-th key about 1 / `i` as often as the first.
    Zipf,
    /// Most of one key, others spread.
    Hot,
}

fn keys(drawn: Drawn, rows: usize, seed: u64) -> Vec<u64> {
    let (mut random, mut own) = (Random::of(0x5eed), Random::of(seed));
    let spread: Vec<u64> = (0..8192).map(|_| random.number()).collect();
    let key = |_| {
        let below = match drawn {
            Drawn::Equal(key) => return key,
            Drawn::Hot if own.below(8) > 0 => return 0,
            Drawn::Spread | Drawn::Hot => 8192,
            Drawn::Few => 37,
            Drawn::Zipf => 1 << own.below(14),
        };
        spread[own.below(below) as usize]
    };
    (0..rows).map(key).collect()
}

fn drawn() -> impl Strategy<Value = Drawn> {
    prop_oneof![
        1 => Just(Drawn::Equal(0)),
        1 => Just(Drawn::Equal(u64::MAX)),
        4 => Just(Drawn::Spread),
        2 => Just(Drawn::Few),
        2 => Just(Drawn::Zipf),
        1 => Just(Drawn::Hot),
    ]
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![prop::sample::select(&[0, 1, 2, 7, 8, 9, 63, 64, 65][..]), 0..9000_usize]
}

/// Values that identify rows.
fn value(row: usize) -> u64 {
    row as u64 ^ 0xfeed_0000_0000
}

fn oracle(build: &[u64], probe: &[u64], value: impl Fn(usize) -> u64) -> Vec<(Row, u64)> {
    let mut rows = HashMap::<u64, Vec<u64>>::new();
    build.iter().enumerate().for_each(|(row, key)| rows.entry(*key).or_default().push(value(row)));
    let of = |(row, key)| rows.get(key).into_iter().flatten().map(move |v| (row as Row, *v));
    let mut pairs: Vec<_> = probe.iter().enumerate().flat_map(of).collect();
    pairs.sort_unstable();
    pairs
}

fn joined<V: Value>(
    join: &Join<'_>,
    (build, probe): (&[u64], &[u64]),
    value: impl Fn(usize) -> V + Sync,
    threads: usize,
) -> Vec<(Row, u64)> {
    let sinks: Vec<Vec<(Row, u64)>> =
        join.run(build, value, probe, vec![Vec::new(); threads]).unwrap();
    let mut pairs: Vec<_> = sinks.into_iter().flatten().collect();
    pairs.sort_unstable();
    pairs
}

fn different(keys: &[u64]) -> usize {
    keys.iter().collect::<std::collections::HashSet<_>>().len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_pair_is_found_once(
        build in (drawn(), sizes()), probe in (drawn(), sizes()), threads in 1..4_usize,
        passes in 1..3_usize, pooled: bool,
    ) {
        let build = keys(build.0, build.1, 1);
        // All against all of one key is more than there is time for.
        let most = if different(&build) < build.len() / 16 { 500 } else { usize::MAX };
        let probe = keys(probe.0, probe.1.min(most), 2);
        let rows = build.len().max(probe.len());
        let pages = pages(pooled);
        let cut = Cut::of(different(&build), rows, TINY).unwrap().with_passes(passes);
        let mut join = Join::new(cut, &pages);
        (join.morsel_rows, join.piece_rows) = (100, 300);
        let expected = oracle(&build, &probe, value);
        prop_assert_eq!(joined(&join, (&build, &probe), value, threads), expected);
        let expected = oracle(&build, &probe, |row| row as u64);
        prop_assert_eq!(joined(&join, (&build, &probe), |row| row as Row, threads), expected);
    }

    #[test]
    fn scattering_sorts_by_partition_and_keeps_the_order_within(
        keys in prop::collection::vec(0..1000_u64, 0..3000), partitions in 1..70_usize,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4), pooled: bool,
    ) {
        let partition = |key: u64| key as usize * 7 % partitions;
        let pages = pages(pooled);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(keys.len() + 1)).collect();
        cuts.extend([0, keys.len()]);
        cuts.sort_unstable();
        let mut histogram = Histogram::of(partitions);
        histogram.add(&keys, partition);
        let mut narrow = Scatter::<u32>::of(histogram.clone(), &pages).unwrap();
        let mut wide = Scatter::<u64>::of(histogram, &pages).unwrap();
        for run in cuts.windows(2) {
            let run = run[0]..run[1];
            narrow.add(&keys[run.clone()], partition, |at| (run.start + at) as u32);
            wide.add(&keys[run.clone()], partition, |at| value(run.start + at));
        }
        let (narrow, wide) = (narrow.finish(), wide.finish());
        let mut expected: Vec<usize> = (0..keys.len()).collect();
        expected.sort_by_key(|row| partition(keys[*row]));
        let of = |scattered: &[u64]| scattered.to_vec();
        let expected_keys: Vec<u64> = expected.iter().map(|row| keys[*row]).collect();
        prop_assert_eq!(of(narrow.keys()), &expected_keys[..]);
        prop_assert_eq!(of(wide.keys()), &expected_keys[..]);
        prop_assert!(narrow.values().iter().copied().eq(expected.iter().map(|row| *row as u32)));
        prop_assert!(wide.values().iter().copied().eq(expected.iter().map(|row| value(*row))));
        let each = (0..partitions).map(|at| narrow.partition(at));
        prop_assert_eq!(each.clone().map(|(keys, _)| keys.len()).sum::<usize>(), keys.len());
        for (at, (keys, values)) in each.enumerate() {
            prop_assert!(keys.iter().all(|key| partition(*key) == at));
            prop_assert!(values.is_sorted());
        }
    }
}

#[test]
fn one_pass_while_the_lanes_stay_in_cache_and_the_pages_in_the_tlb() {
    let room = Room { l2_bytes: 512 << 10, tlb_entries: Some(2048), page_bytes: 2 << 20 };
    let cut = |entries, rows, room| Cut::of(entries, rows, room).unwrap();
    let small = cut(2_000_000, 16_000_000, room);
    assert_eq!((small.passes(), small.partitions()), (1, 245));
    assert_eq!(cut(16_000_000, 64_000_000, room).passes(), 1);
    assert_eq!(cut(64_000_000, 64_000_000, room).passes(), 2, "8000 lanes are a megabyte");
    let pages = Room { page_bytes: 4096, tlb_entries: Some(256), ..room };
    assert_eq!(cut(2_000_000, 16_000_000, pages).passes(), 2, "490 streams, 256 pages");
    assert_eq!(cut(0, 0, room).partitions(), 1);
}

#[test]
#[should_panic(expected = "partition 1 has other rows than were counted")]
fn rows_that_were_counted_must_come() {
    let partition = |key: u64| key as usize;
    let mut histogram = Histogram::of(2);
    histogram.add(&[0, 1, 1], partition);
    let mut scatter = Scatter::of(histogram, &Pages::Small.into()).unwrap();
    scatter.add(&[0, 1], partition, |at| at as u32);
    let _ = scatter.finish();
}

#[test]
fn keys_that_crowd_in_one_home_are_an_error() {
    let pages = Pages::Small.into();
    let cut = Cut::of(10, 5000, TINY).unwrap();
    let build: Vec<u64> = (0..5000).collect();
    let sinks = vec![Vec::<(Row, u64)>::new()];
    let crowded = Join::new(cut, &pages).run(&build, |row| row as u32, &[1], sinks);
    assert!(matches!(crowded, Err(RadixError::Table(TableError::Crowded { .. }))));
}
