//! The bucket table against a map of the standard library.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::isa::{Detected, Portable};
use crate::memory::{Memory, Prefetching, ToL1, ToL2};
use crate::schedule::{Distance, Groups, InTurn, Lanes, Pause, Rounds};
use crate::walk::{Row, Sink, Walk};
use crate::with_isa;

type Hits = Vec<(Row, u64)>;

const WIDTHS: [usize; 5] = [1, 2, 7, 64, 1024];

/// The walk must not care which of these drives it.
#[derive(Debug, Clone, Copy)]
enum Order {
    InTurn,
    Lanes(usize),
    Groups(usize),
    Rounds(usize),
    Distance(usize),
}

fn orders() -> impl Iterator<Item = Order> {
    let widths = |order: fn(usize) -> Order| WIDTHS.into_iter().map(order);
    std::iter::once(Order::InTurn)
        .chain(widths(Order::Lanes))
        .chain(widths(Order::Groups))
        .chain(widths(Order::Rounds))
        .chain(widths(Order::Distance))
}

impl Order {
    fn keeps_order(self) -> bool {
        matches!(self, Order::InTurn | Order::Distance(_))
    }

    /// Drives all rows, pausing whenever the sink has taken `room` hits since the last pause.
    fn drive<W: Walk<Hit = u64>>(self, walk: &mut W, rows: Rows, room: usize) -> Hits {
        let mut memory = Prefetching::<ToL1>::default();
        match self {
            Order::InTurn => to_end(&mut InTurn::new(), walk, rows, &mut memory, room),
            Order::Lanes(width) => to_end(&mut Lanes::new(width), walk, rows, &mut memory, room),
            Order::Groups(width) => to_end(&mut Groups::new(width), walk, rows, &mut memory, room),
            Order::Rounds(width) => to_end(&mut Rounds::new(width), walk, rows, &mut memory, room),
            Order::Distance(distance) => {
                let mut memory = Prefetching::<ToL2>::default();
                to_end(&mut Distance::new(distance), walk, rows, &mut memory, room)
            }
        }
    }
}

/// A sink that is full after a number of hits.
struct Tiny {
    hits: Hits,
    full_at: usize,
}

impl Sink<u64> for Tiny {
    fn emit(&mut self, row: Row, hit: u64) {
        self.hits.push((row, hit));
    }
    fn is_full(&self) -> bool {
        self.hits.len() >= self.full_at
    }
}

fn to_end<W: Walk<Hit = u64>, S: Schedule<W>, M: Memory>(
    schedule: &mut S,
    walk: &mut W,
    mut rows: Rows,
    memory: &mut M,
    room: usize,
) -> Hits {
    let mut sink = Tiny { hits: Vec::new(), full_at: room };
    while schedule.drive(walk, &mut rows, memory, &mut sink) == Pause::Full {
        assert!(sink.hits.len() >= sink.full_at, "paused with room left");
        sink.full_at = sink.hits.len() + room;
    }
    sink.hits
}

/// The hits that every strategy must find.
fn oracle(build: &[(u64, u64)], probes: &[u64]) -> Hits {
    let mut table = HashMap::<u64, Vec<u64>>::new();
    for (key, value) in build {
        table.entry(*key).or_default().push(*value);
    }
    let matches = |key: &u64| table.get(key).cloned().unwrap_or_default();
    let mut hits: Hits = probes
        .iter()
        .zip(0..)
        .flat_map(|(key, row)| matches(key).into_iter().map(move |value| (row, value)))
        .collect();
    hits.sort_unstable();
    hits
}

fn table(build: &[(u64, u64)], load: Load) -> Result<Table, TableError> {
    let (keys, values): (Vec<_>, Vec<_>) = build.iter().copied().unzip();
    Table::of(&keys, &values, load, Pages::Huge)
}

/// Every order, every instruction set, every match: the oracle's hits.
fn check_every(build: &[(u64, u64)], probes: &[u64], load: Load, room: usize) {
    let table = table(build, load).unwrap();
    let expected = oracle(build, probes);
    let rows = Rows::range(0..probes.len() as u32);
    let distinct: std::collections::HashSet<_> = build.iter().map(|(key, _)| key).collect();
    assert_eq!(table.repeats(), distinct.len() < build.len());
    for order in orders() {
        for detected in Detected::all() {
            let mut hits = with_isa!(detected, isa => {
                order.drive(&mut Probe::<_, Every>::new(&table, isa, probes), rows, room)
            });
            if order.keeps_order() {
                assert!(hits.is_sorted_by_key(|(row, _)| *row), "{order:?}");
            }
            hits.sort_unstable();
            assert_eq!(hits, expected, "{order:?} {}", detected.name());
        }
        let first = order.drive(&mut Probe::<_, First>::new(&table, Portable, probes), rows, room);
        check_first(first, &expected, &table);
    }
}

/// A first match for each row that has one, and one of its own.
fn check_first(mut first: Hits, every: &Hits, table: &Table) {
    first.sort_unstable();
    assert!(first.iter().all(|hit| every.binary_search(hit).is_ok()));
    let mut rows: Vec<_> = every.iter().map(|(row, _)| *row).collect();
    rows.dedup();
    assert_eq!(first.iter().map(|(row, _)| *row).collect::<Vec<_>>(), rows);
    if !table.repeats() {
        assert_eq!(&first, every);
    }
}

/// Keys from few to many, near and far, with the values an empty slot could be taken for.
fn keys() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0_u64),
        1 => Just(1_u64),
        1 => Just(u64::MAX),
        4 => 0..40_u64,
        4 => any::<u64>(),
        2 => (0..64_u32).prop_map(|bit| 1_u64 << bit),
        // A heavy hitter and its like.
        2 => (0..9_u64).prop_map(|x| x * x * x / 100),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn finds_what_a_map_finds(
        build in prop::collection::vec((keys(), any::<u64>()), 0..300),
        others in prop::collection::vec(keys(), 0..200),
        hits in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        load in 20..=90_u8,
        room in prop_oneof![Just(1_usize), 2..9_usize, Just(10_000)],
    ) {
        let mut probes = others;
        if !build.is_empty() {
            probes.extend(hits.iter().map(|hit| hit.get(&build).0));
        }
        check_every(&build, &probes, Load::percent(load).unwrap(), room);
    }

    #[test]
    fn any_order_of_building_holds_the_same(
        build in prop::collection::vec((keys(), any::<u64>()), 0..300),
        width in 0..WIDTHS.len(),
    ) {
        let (keys, values): (Vec<_>, Vec<_>) = build.iter().copied().unzip();
        let empty = || Table::for_entries(keys.len(), Load::percent(80).unwrap(), Pages::Small);
        let rows = || Rows::range(0..keys.len() as u32);
        let (direct, width) = (&mut Direct, WIDTHS[width]);
        let mut in_turn = Build::new(empty().unwrap(), &keys, &values);
        InTurn::new().drive(&mut in_turn, &mut rows(), direct, &mut ());
        let mut lanes = Build::new(empty().unwrap(), &keys, &values);
        Lanes::new(width).drive(&mut lanes, &mut rows(), direct, &mut ());
        let mut rounds = Build::new(empty().unwrap(), &keys, &values);
        Rounds::new(width).drive(&mut rounds, &mut rows(), direct, &mut ());
        for built in [in_turn, lanes, rounds] {
            let table = built.finish().unwrap();
            prop_assert_eq!(table.len(), build.len());
            for key in &keys {
                let mut expected: Vec<_> =
                    build.iter().filter(|(held, _)| held == key).map(|(_, value)| *value).collect();
                expected.sort_unstable();
                let mut found = table.values_of(*key);
                found.sort_unstable();
                prop_assert_eq!(found, expected);
            }
        }
    }
}

#[test]
fn consecutive_keys_and_misses_between_them() {
    let build: Vec<_> = (0..2000_u64).map(|i| (2 * i, !i)).collect();
    let probes: Vec<_> = (0..3000).collect();
    check_every(&build, &probes, Load::percent(90).unwrap(), 5);
}

#[test]
fn strides_of_every_power_of_two_keep_their_reach() {
    for shift in 0..52 {
        let keys: Vec<_> = (0..4096_u64).map(|i| i << shift).collect();
        let table = Table::of(&keys, &keys, Load::HALF, Pages::Small).unwrap();
        assert_eq!((table.len(), table.repeats()), (4096, false), "stride 2^{shift}");
    }
}

#[test]
fn the_stride_that_fools_a_single_multiplication_is_spread() {
    // The inverse of the multiplier by Newton's iteration: key · multiplier = i.
    let multiplier = 0x9E37_79B9_7F4A_7C15_u64;
    let inverse = (0..6)
        .fold(multiplier, |x, _| x.wrapping_mul(2_u64.wrapping_sub(multiplier.wrapping_mul(x))));
    assert_eq!(inverse.wrapping_mul(multiplier), 1);
    let keys: Vec<_> = (0..100_000_u64).map(|i| i.wrapping_mul(inverse)).collect();
    let table = Table::of(&keys, &keys, Load::HALF, Pages::Small).unwrap();
    assert_eq!(table.len(), keys.len());
}

#[test]
fn one_key_many_times() {
    for key in [0, 1, 42, u64::MAX] {
        let build: Vec<_> = (0..500).map(|value| (key, value)).collect();
        check_every(&build, &[key, !key, key, 1, 0], Load::HALF, 3);
    }
}

#[test]
fn a_key_repeated_too_often_is_refused_by_name() {
    for key in [0, 42] {
        let keys = vec![key; REACH * SLOTS + 1];
        let error = Table::of(&keys, &keys, Load::HALF, Pages::Small).err().unwrap();
        assert!(matches!(error, TableError::Crowded { refused: 1, entries: 1025 }), "{error}");
        assert!(error.to_string().contains("a chained table"), "{error}");
        assert!(Table::of(&keys[1..], &keys[1..], Load::HALF, Pages::Small).is_ok());
    }
}

#[test]
fn more_entries_than_slots_are_refused_not_lost() {
    let table = Table::for_entries(10, Load::HALF, Pages::Small).unwrap();
    let keys: Vec<_> = (1..5000).collect();
    let error = table.extended(&keys, &keys).err().unwrap();
    let TableError::Crowded { refused, entries } = error else { panic!("{error}") };
    assert!(entries == 4999 && refused > 3900, "{refused}");
}

#[test]
fn sizes_beyond_counting_are_errors() {
    for entries in [usize::MAX, usize::MAX / 100, 1 << 33] {
        let error = Table::for_entries(entries, Load::HALF, Pages::Huge).err().unwrap();
        assert!(error.to_string().contains("partition"), "{error}");
    }
    assert!(Load::percent(0).is_none() && Load::percent(91).is_none());
}

#[test]
fn an_empty_table_holds_nothing_not_even_zero() {
    let table = Table::for_entries(0, Load::HALF, Pages::Small).unwrap();
    assert!(table.is_empty());
    for key in [0, 1, u64::MAX] {
        assert!(table.values_of(key).is_empty());
    }
}

#[test]
fn the_table_is_its_buckets_and_little_more() {
    let table = Table::for_entries(2_000_000, Load::HALF, Pages::Huge).unwrap();
    let least = 2_000_000 * 2 * 16;
    assert!(table.bytes() as f64 <= least as f64 * 1.01, "{} of {least}", table.bytes());
}

#[test]
fn extending_sees_what_was_there() {
    let table = Table::for_entries(8, Load::HALF, Pages::Small).unwrap();
    let table = table.extended(&[5, 6], &[50, 60]).unwrap();
    assert!(!table.repeats());
    let table = table.extended(&[7, 5], &[70, 51]).unwrap();
    assert!(table.repeats());
    assert_eq!(table.values_of(5), [50, 51]);
}

#[test]
fn output_columns_over_many_batches() {
    let build: Vec<_> = (0..3000_u64).map(|i| (i * 7, i)).collect();
    let table = table(&build, Load::HALF).unwrap();
    let probes: Vec<_> = (0..10_000_u64).map(|i| i * 11 % 21_000).collect();
    let values: Vec<_> = (0..10_000_u64).map(|i| !i).collect();
    for order in [1, 2, 7, 64] {
        let mut walk = Probe::<_, Every>::new(&table, Portable, &probes);
        let mut rows = Rows::range(0..10_000);
        let mut sink = Output::<128>::new(&probes, &values, order);
        let mut schedule = Lanes::new(order);
        let mut joined = Vec::new();
        loop {
            let pause = schedule.drive(&mut walk, &mut rows, &mut Direct, &mut sink);
            let [keys, probe_values, build_values] = sink.columns();
            for i in 0..sink.len() {
                let row = !probe_values[i] as Row;
                assert_eq!(keys[i], probes[row as usize]);
                joined.push((row, build_values[i]));
            }
            sink.clear();
            if pause == Pause::Drained {
                break;
            }
        }
        joined.sort_unstable();
        assert_eq!(joined, oracle(&build, &probes));
    }
}
