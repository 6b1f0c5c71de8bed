//! Every walk finds what a naive oracle finds, under every technique that can be written, whatever
//! the keys are like.
//!
//! Each case runs every technique of one thread, and some of those with a set or a helper, drawn
//! from all of them.

use proptest::prelude::*;
use proptest::sample::subsequence;
use workahead_machine::pages::Pages;
use workahead_walks::Row;
use workahead_walks::bucket::{self, Every, First, Load, Probe};
use workahead_walks::chained::{Chains, HashJoin};
use workahead_walks::columnar::{self, ColumnarJoin};
use workahead_walks::isa::{Detected, Portable};
use workahead_walks::join_index::{Inner, JoinIndex, LeftOuter, Pair, Pairs, UnmatchedRows};
use workahead_walks::materialise::Materialise;
use workahead_walks::record::{Clustered, JoinedRecord, OneLine, Record, Unclustered};
use workahead_walks::tree::{
    self, Binary, Fill, KeyedRecord, Lookup, Node64, Node128, Tree, Vector,
};

use crate::cases::{Case, cases, drafts};
use crate::conformance::{records, wide};
use crate::techniques::{Trial, ahead, alone};

/// Rows a side at most: more than the widest technique, once in a while.
const ROWS: u32 = 1500;

/// Runs a block once for every instruction set of this machine, with its token bound to a name.
macro_rules! for_every_isa {
    ($isa:ident => $body:block) => {
        for detected in Detected::all() {
            match detected {
                Detected::Portable($isa) => $body,
                Detected::Avx2($isa) => $body,
                Detected::Avx512($isa) => $body,
            }
        }
    };
}

fn techniques() -> impl Strategy<Value = Vec<String>> {
    subsequence(ahead(), 12).prop_map(|some| alone().into_iter().chain(some).collect())
}

/// How often a sink is full: after every hit, now and then, hardly.
fn rooms() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1_usize), 2..40_usize, 500..5000_usize]
}

fn build_row((_, build): (&Record, &Record)) -> u32 {
    build.row
}

/// (key, row) as the tree wants them: 32-bit floating point, sorted.
fn sorted_pairs(keys: &[u32]) -> Vec<(f32, u32)> {
    let mut pairs: Vec<(f32, u32)> = keys.iter().map(|key| *key as f32).zip(0..).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    pairs
}

/// As [`Case::pairs`], for keys that are equal as floating point numbers.
fn equal_as_floats(case: &Case, clustered: bool) -> Vec<(Row, u32)> {
    let rounded = |keys: &[u32]| keys.iter().map(|key| (*key as f32).to_bits()).collect();
    let (build, probe) = (rounded(&case.build), rounded(&case.probe));
    Case { build, probe, rids: case.rids.clone() }.pairs(clustered)
}

fn lookups(case: &Case, techniques: &[String], room: usize) {
    let pairs = sorted_pairs(&case.build);
    let narrow = Tree::<Node64>::bulk_load(&pairs, Fill::PAPER, Pages::Small).unwrap();
    let tree = Tree::<Node128>::bulk_load(&pairs, Fill::PAPER, Pages::Small).unwrap();
    let stream: Vec<(f32, u32)> = case.probe.iter().map(|key| *key as f32).zip(0..).collect();
    let keyed = |key: &u32| KeyedRecord { key: *key as f32, payload: [0; 15] };
    let records: Vec<KeyedRecord> = case.probe.iter().map(keyed).collect();
    let rows = stream.len();
    let value = |hit: (u32, u32)| hit.1;
    let mut trial = Trial { techniques, room, expected: equal_as_floats(case, true), value };
    trial.hold(Portable, &Lookup::new(&narrow, tree::Clustered(&stream), Binary), rows);
    let expected = equal_as_floats(case, false);
    let mut trial = Trial { techniques, room, expected, value };
    let outer = tree::Unclustered { rids: &case.rids, records: &records, row_stage: true };
    for_every_isa!(isa => {
        let walk = Lookup::new(&tree, outer, Vector(isa)).upper_levels_within(4096);
        trial.hold(isa, &walk, rows);
    });
}

fn probes(case: &Case, techniques: &[String], room: usize) {
    let (keys, probing) = (wide(&case.build), wide(&case.probing(false)));
    let values: Vec<u64> = (0..keys.len() as u64).collect();
    let table = |load| bucket::Table::of(&keys, &values, load, Pages::Small);
    // Skewed keys may repeat more often than a bucket table holds; then there is nothing to probe.
    let Ok(table) = table(Load::percent(85).unwrap()).or_else(|_| table(Load::HALF)) else {
        return;
    };
    let expected: Vec<(Row, u64)> =
        case.pairs(false).into_iter().map(|(at, row)| (at, u64::from(row))).collect();
    let mut rows: Vec<(Row, u64)> = expected.iter().map(|(at, _)| (*at, 0)).collect();
    rows.dedup();
    let mut every = Trial { techniques, room, expected, value: |value: u64| value };
    for_every_isa!(isa => {
        every.hold(isa, &Probe::<_, Every>::new(&table, isa, &probing), probing.len());
    });
    // Which match of a row is its first is the table's business; `bucket` tests that.
    let mut first = Trial { techniques, room, expected: rows, value: |_: u64| 0 };
    first.hold(Portable, &Probe::<_, First>::new(&table, Portable, &probing), probing.len());
}

fn indexed(case: &Case, techniques: &[String], room: usize) {
    let (left, right) = (records::<OneLine>(&case.probe), records(&case.build));
    let pairs = |unmatched| Pairs::of_tables(&left, &right, unmatched, Pages::Small).unwrap();
    let value = |pair: Pair<'_>| [pair.left.row, pair.right.map_or(u32::MAX, |right| right.row)];
    let (inner, outer) = (pairs(UnmatchedRows::Dropped), pairs(UnmatchedRows::Kept));
    let none = JoinedRecord { probe: Record::NULL, build: Record::NULL };
    let mut output = vec![none; outer.len().max(1)];
    let (_, destination) = Materialise::announced(&mut output);
    let mut rows: Vec<[u32; 2]> = case.pairs(true).iter().map(|pair| [pair.0, pair.1]).collect();
    let numbered = |index: &Pairs| (0..).zip(index.all().to_vec()).collect();
    let mut found = inner.all().to_vec();
    rows.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, rows, "the index itself");
    let mut trial = Trial { techniques, room, expected: numbered(&inner), value };
    let walk = JoinIndex::<Inner>::new(&inner, &left, &right, destination);
    trial.hold(Portable, &walk, inner.len());
    let mut trial = Trial { techniques, room, expected: numbered(&outer), value };
    let walk = JoinIndex::<LeftOuter>::new(&outer, &left, &right, destination);
    trial.hold(Portable, &walk, outer.len());
}

proptest! {
    #![proptest_config(cases(8))]

    #[test]
    fn rows_in_chains_are_joined(
        draft in drafts(ROWS), techniques in techniques(), room in rooms(),
    ) {
        let case = draft.draw();
        let (build, probe) = (records::<OneLine>(&case.build), records(&case.probe));
        let chains = Chains::build(case.build.iter().copied(), Pages::Small).unwrap();
        let techniques = &techniques[..];
        let walk = HashJoin::new(&chains, &build, Clustered(&probe));
        let mut trial =
            Trial { techniques, room, expected: case.pairs(true), value: build_row };
        trial.hold(Portable, &walk, probe.len());
        let rids = Unclustered { records: &probe, rids: &case.rids, row_stage: true };
        let walk = HashJoin::new(&chains, &build, rids);
        let mut trial =
            Trial { techniques, room, expected: case.pairs(false), value: build_row };
        for_every_isa!(isa => { trial.hold(isa, &walk, probe.len()); });
    }

    #[test]
    fn keys_in_trees_are_found(
        draft in drafts(ROWS), techniques in techniques(), room in rooms(),
    ) {
        lookups(&draft.draw(), &techniques, room);
    }

    #[test]
    fn keys_in_buckets_are_found(
        draft in drafts(ROWS), techniques in techniques(), room in rooms(),
    ) {
        probes(&draft.draw(), &techniques, room);
    }

    #[test]
    fn pairs_of_an_index_are_fetched(
        draft in drafts(ROWS), techniques in techniques(), room in rooms(),
    ) {
        indexed(&draft.draw(), &techniques, room);
    }

    #[test]
    fn columns_are_joined(
        draft in drafts(ROWS), techniques in techniques(), room in rooms(),
    ) {
        let case = draft.draw();
        let table =
            |keys: &[u32]| columnar::Table::of_records(&records(keys), Pages::Small).unwrap();
        let (build, probe) = (table(&case.build), table(&case.probe));
        let chains = Chains::build(case.build.iter().copied(), Pages::Small).unwrap();
        let value = |hit: columnar::Match| hit.build_row;
        let (techniques, rows) = (&techniques[..], case.probe.len());
        let (inner, outer) = (build.columns(), probe.columns());
        let mut trial = Trial { techniques, room, expected: case.pairs(true), value };
        let walk = ColumnarJoin::new(&chains, inner, outer, columnar::Clustered);
        trial.hold(Portable, &walk, rows);
        let mut trial = Trial { techniques, room, expected: case.pairs(false), value };
        let stream = columnar::Unclustered { rids: &case.rids, row_stage: true };
        trial.hold(Portable, &ColumnarJoin::new(&chains, inner, outer, stream), rows);
    }
}
