//! The law kit on every walk of the crate, with the allocations of its steps counted.

use workahead_machine::pages::Pages;
use workahead_walks::bucket::{self, Build, Every, First, Grouping, Load, Probe};
use workahead_walks::chained::{Chains, HashJoin};
use workahead_walks::columnar::{self, ColumnarJoin};
use workahead_walks::conformance::{Kit, RowHits, hits};
use workahead_walks::isa::Portable;
use workahead_walks::join_index::{Draft as IndexDraft, Inner, JoinIndex, LeftOuter};
use workahead_walks::materialise::Materialise;
use workahead_walks::random::Random;
use workahead_walks::record::{Clustered, JoinedRecord, OneLine, Payload, Record, Unclustered};
use workahead_walks::tree::{
    self, Binary, Fill, KeyedRecord, Lookup, Node64, Node128, Tree, Vector,
};
use workahead_walks::{Row, Rows, Walk};

use crate::allocator::allocations;
use crate::cases::{Case, Draft};

/// Keys that repeat, some of them often, and a probe in two that misses.
pub(crate) fn case() -> Case {
    Draft { build_rows: 300, probe_rows: 300, keys: 150, skew: 3, hit_percent: 50, seed: 42 }.draw()
}

pub(crate) fn records<P: Payload>(keys: &[u32]) -> Vec<Record<P>> {
    (0..).zip(keys).map(|(row, key)| Record::new(*key, row, row)).collect()
}

pub(crate) fn all(rows: usize) -> Rows {
    Rows::range(0..rows as Row)
}

/// Checks a walk; a sin is a failed test.
pub(crate) fn check<W: Walk>(
    make: impl Fn() -> W,
    rows: usize,
    oracle: impl Fn(W, RowHits<W>) -> Result<(), String>,
) {
    let kept = Kit::usual().counting(allocations).check(make, all(rows), oracle);
    kept.unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn the_chained_join_keeps_the_laws() {
    let case = case();
    let (build, probe) = (records::<OneLine>(&case.build), records(&case.probe));
    let chains = Chains::build(build.iter().map(|record| record.key), Pages::Small).unwrap();
    let rows = probe.len();
    let clustered = || HashJoin::new(&chains, &build, Clustered(&probe));
    check(clustered, rows, hits(&case.pairs(true), |(_, build): (&Record, &Record)| build.row));
    let pairs = case.pairs(false);
    for row_stage in [false, true] {
        let probes = Unclustered { records: &probe, rids: &case.rids, row_stage };
        let unclustered = || HashJoin::new(&chains, &build, probes);
        check(unclustered, rows, hits(&pairs, |(_, build): (&Record, &Record)| build.row));
    }
}

#[test]
fn the_tree_keeps_the_laws() {
    let case = case();
    let key = |key: &u32| *key as f32;
    let mut pairs: Vec<(f32, u32)> = case.build.iter().map(key).zip(0..).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let expected = |clustered| -> Vec<(Row, u32)> {
        let found = |(row, probe): (Row, &u32)| {
            let equal = pairs.iter().filter(move |pair| pair.0 == *probe as f32);
            equal.map(move |pair| (row, pair.1)).collect::<Vec<_>>()
        };
        (0..).zip(&case.probing(clustered)).flat_map(found).collect()
    };
    let stream: Vec<(f32, u32)> = case.probe.iter().map(key).zip(0..).collect();
    let narrow = Tree::<Node64>::bulk_load(&pairs, Fill::PAPER, Pages::Small).unwrap();
    let clustered = || Lookup::new(&narrow, tree::Clustered(&stream), Binary);
    check(clustered, stream.len(), hits(&expected(true), |hit: (u32, u32)| hit.1));
    let records: Vec<KeyedRecord> = case
        .probe
        .iter()
        .map(|probe| KeyedRecord { key: *probe as f32, payload: [0; 15] })
        .collect();
    let wide = Tree::<Node128>::bulk_load(&pairs, Fill::PAPER, Pages::Small).unwrap();
    assert!(wide.height() > 1);
    for row_stage in [false, true] {
        let outer = tree::Unclustered { rids: &case.rids, records: &records, row_stage };
        let unclustered =
            || Lookup::new(&wide, outer, Vector(Portable)).upper_levels_within(wide.bytes());
        check(unclustered, stream.len(), hits(&expected(false), |hit: (u32, u32)| hit.1));
    }
}

pub(crate) fn wide(keys: &[u32]) -> Vec<u64> {
    keys.iter().map(|key| u64::from(*key)).collect()
}

#[test]
fn bucket_probes_keep_the_laws() {
    let case = case();
    let (build, probe) = (wide(&case.build), wide(&case.probe));
    let values: Vec<u64> = (0..build.len() as u64).collect();
    let load = Load::percent(85).unwrap();
    let table = bucket::Table::of(&build, &values, load, Pages::Small).unwrap();
    let expected: Vec<(Row, u64)> =
        case.pairs(true).into_iter().map(|(at, row)| (at, u64::from(row))).collect();
    let every = || Probe::<_, Every>::new(&table, Portable, &probe);
    check(every, probe.len(), hits(&expected, |value: u64| value));
    // The first match of a row is one of them, and every row that has one finds it.
    let mut rows: Vec<(Row, ())> = expected.iter().map(|(row, _)| (*row, ())).collect();
    rows.dedup();
    let first = || Probe::<_, First>::new(&table, Portable, &probe);
    check(first, probe.len(), |walk, found| {
        if let Some(odd) = found.iter().find(|hit| !expected.contains(hit)) {
            return Err(format!("{odd:?} is not a match"));
        }
        hits(&rows, |_: u64| ())(walk, found)
    });
}

fn sorted<T: Ord>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_unstable();
    values
}

#[test]
fn bucket_builds_keep_the_laws() {
    let case = case();
    let keys = wide(&case.build);
    let values: Vec<u64> = (0..keys.len() as u64).collect();
    let empty = || {
        bucket::Table::for_entries(keys.len(), Load::percent(85).unwrap(), Pages::Small).unwrap()
    };
    let of = |key: u64| (0..).zip(&keys).filter(move |row| *row.1 == key).map(|row| row.0);
    check(
        || Build::new(empty(), &keys, &values),
        keys.len(),
        |walk, found| {
            let table = walk.finish().map_err(|error| error.to_string())?;
            let lost = keys.iter().find(|key| !of(**key).eq(sorted(table.values_of(**key))));
            match lost {
                None if found.is_empty() && table.len() == keys.len() => Ok(()),
                None => Err(format!("{} entries, {} hits", table.len(), found.len())),
                Some(key) => Err(format!("the rows of key {key} are {:?}", table.values_of(*key))),
            }
        },
    );
}

#[test]
fn bucket_groupings_keep_the_laws() {
    let case = case();
    let keys = wide(&case.build);
    let empty = || {
        bucket::Table::for_entries(keys.len(), Load::percent(85).unwrap(), Pages::Small).unwrap()
    };
    check(
        || Grouping::new(empty(), Portable, &keys, 0),
        keys.len(),
        |walk, found| {
            let table = walk.finish().map_err(|error| error.to_string())?;
            // Which row comes first depends on the order; that a key's rows are one group does not.
            for key in &keys {
                let [value] = table.values_of(*key)[..] else {
                    return Err(format!("key {key} is not held once"));
                };
                let group = bucket::Group::of(value);
                let later = found.iter().filter(|hit| hit.1 == group.first_row()).map(|hit| hit.0);
                let rows = sorted(later.chain([group.first_row()]));
                let of = (0..).zip(&keys).filter(|row| row.1 == key).map(|row| row.0);
                if rows.len() != group.further_rows() as usize + 1 || !of.eq(rows) {
                    return Err(format!("the group of key {key} is {group:?}"));
                }
            }
            Ok(())
        },
    );
}

#[test]
fn the_join_index_keeps_the_laws() {
    let case = case();
    let (left, right) = (records::<OneLine>(&case.build), records(&case.probe));
    let draft = IndexDraft { pairs: 250, left_rows: 300, right_rows: 300, ..IndexDraft::PAPER };
    let none = JoinedRecord { probe: Record::NULL, build: Record::NULL };
    let mut output = vec![none; 250];
    let (_, destination) = Materialise::announced(&mut output);
    let inner = draft.draw(&mut Random::of(1), Pages::Small).unwrap();
    let outer = IndexDraft { null_percent: 20, ..draft };
    let outer = outer.draw(&mut Random::of(2), Pages::Small).unwrap();
    let expected =
        |pairs: &[[u32; 2]]| -> Vec<(Row, [u32; 2])> { (0..).zip(pairs.to_vec()).collect() };
    let value = |pair: workahead_walks::join_index::Pair<'_>| {
        [pair.left.row, pair.right.map_or(u32::MAX, |right| right.row)]
    };
    let walk = || JoinIndex::<Inner>::new(&inner, &left, &right, destination);
    check(walk, 250, hits(&expected(inner.all()), value));
    let walk = || JoinIndex::<LeftOuter>::new(&outer, &left, &right, destination);
    check(walk, 250, hits(&expected(outer.all()), value));
}

#[test]
fn the_columnar_join_keeps_the_laws() {
    let case = case();
    let table = |keys: &[u32]| columnar::Table::of_records(&records(keys), Pages::Small).unwrap();
    let (build, probe) = (table(&case.build), table(&case.probe));
    let chains = Chains::build(case.build.iter().copied(), Pages::Small).unwrap();
    let walk = || ColumnarJoin::new(&chains, build.columns(), probe.columns(), columnar::Clustered);
    let rows = case.probe.len();
    check(walk, rows, hits(&case.pairs(true), |hit: columnar::Match| hit.build_row));
    for row_stage in [false, true] {
        let stream = columnar::Unclustered { rids: &case.rids, row_stage };
        let walk = || ColumnarJoin::new(&chains, build.columns(), probe.columns(), stream);
        check(walk, rows, hits(&case.pairs(false), |hit: columnar::Match| hit.build_row));
    }
}
