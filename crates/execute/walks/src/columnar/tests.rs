//! The join over columns against two loops, under the laws and every technique, and against the
//! join over rows.

use proptest::prelude::*;
use workahead_machine::pages::Pages;
use workahead_machine::pin;

use super::*;
use crate::Technique;
use crate::chained::HashJoin;
use crate::conformance::{self, Kit};
use crate::isa::Portable;
use crate::materialise::pair_checksum;
use crate::memory::Direct;
use crate::place::References;
use crate::random::Random;
use crate::record::{self, JoinedRecord, Record, drawn_table};
use crate::schedule::{InTurn, Schedule};
use crate::technique::run;
use crate::walk::Rows;
use crate::work_ahead::Placement;

const TECHNIQUES: [&str; 10] = [
    "sequential",
    "staged:width=7",
    "group:width=16",
    "amac:width=32",
    "rounds:width=100",
    "distance:rows=5",
    "coroutine:width=9",
    "work-ahead:size=64,helper=off",
    "work-ahead:size=7,direction=forward,wait=none",
    "direct-helper:size=64",
];

/// The answer of two loops for the rows of `rids`, by position in `rids`.
fn two_loops(build: Columns<'_>, probe: Columns<'_>, rids: &[u32]) -> Vec<(Row, Match)> {
    let mut hits = Vec::new();
    for (row, &probe_row) in (0..).zip(rids) {
        let key = probe.keys[probe_row as usize];
        for build_row in (0..build.keys.len() as u32).filter(|&b| build.keys[b as usize] == key) {
            let [a, b] = probe.integers.map(|integers| integers[probe_row as usize]);
            let [c, d] = build.integers.map(|integers| integers[build_row as usize]);
            hits.push((row, Match { probe_row, build_row, assembled: [key, a, b, c, d] }));
        }
    }
    hits
}

fn check<P: Stream + Send>(walk: ColumnarJoin<'_, P>, rows: usize, expected: &[(Row, Match)]) {
    let all = Rows::range(0..rows as Row);
    let kit = Kit::usual().widths(&[1, 7, 64]);
    kit.check(|| walk, all, conformance::hits(expected, |found| found)).unwrap();
    let checksum = expected.iter().fold(0_u64, |sum, (_, found)| {
        sum.wrapping_add(pair_checksum(found.probe_row, found.build_row))
    });
    let mut records: Vec<JoinedRow> = expected.iter().map(|hit| hit.1.assembled).collect();
    records.sort_unstable();
    let allowed = pin::affinity().unwrap();
    let placement = Placement { helper_cpu: allowed.iter().last().unwrap(), allowed: &allowed };
    for name in TECHNIQUES {
        let technique: Technique = name.parse().unwrap();
        let mut output = vec![[0; 5]; expected.len().max(1)];
        let mut sink = Materialise::new(&mut output);
        run(technique, Portable, &mut walk.clone(), &mut all.clone(), placement, &mut sink)
            .unwrap();
        assert_eq!((sink.written(), sink.checksum()), (expected.len(), checksum), "{name}");
        output.truncate(expected.len());
        output.sort_unstable();
        assert_eq!(output, records, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_technique_finds_what_two_loops_find(
        (build_rows, probe_rows, keys) in (0..150_u32, 0..150_u32, 1..100_u32),
        seed: u64,
    ) {
        let random = &mut Random::of(seed);
        let build = Table::drawn(build_rows, keys, random, Pages::Small).unwrap();
        let probe = Table::drawn(probe_rows, keys, random, Pages::Small).unwrap();
        let (build, probe) = (build.columns(), probe.columns());
        let chains = Chains::build(build.keys.iter().copied(), Pages::Small).unwrap();
        let in_order: Vec<u32> = (0..probe_rows).collect();
        let walk = ColumnarJoin::new(&chains, build, probe, Clustered);
        check(walk, in_order.len(), &two_loops(build, probe, &in_order));
        let rids = random.permutation(probe_rows);
        let stream = Unclustered { rids: &rids, row_stage: true };
        let walk = ColumnarJoin::new(&chains, build, probe, stream);
        check(walk, rids.len(), &two_loops(build, probe, &rids));
    }
}

/// Row A38 of the ledger: rows and columns join alike.
#[test]
fn columns_join_as_their_records_do() {
    let random = &mut Random::of(11);
    let mut table = || drawn_table(5000, 3000, random, Pages::Small).unwrap();
    let (build, probe) = (table(), table());
    let chains = Chains::build(build.iter().map(|record| record.key), Pages::Small).unwrap();
    let rows = Rows::range(0..5000);
    let mut joined = vec![JoinedRecord { probe: Record::NULL, build: Record::NULL }; 20_000];
    let mut by_row = Materialise::new(&mut joined);
    let mut walk = HashJoin::new(&chains, &build, record::Clustered(&probe));
    InTurn::new().drive(&mut walk, &mut rows.clone(), &mut Direct, &mut by_row);
    let (written, checksum) = (by_row.written(), by_row.checksum());
    let [build, probe] =
        [&build, &probe].map(|records| Table::of_records(records, Pages::Small).unwrap());
    let mut assembled = vec![[0; 5]; 20_000];
    let mut by_column = Materialise::new(&mut assembled);
    let mut walk = ColumnarJoin::new(&chains, build.columns(), probe.columns(), Clustered);
    InTurn::new().drive(&mut walk, &mut rows.clone(), &mut Direct, &mut by_column);
    assert_eq!((by_column.written(), by_column.checksum()), (written, checksum));
    for (row, record) in joined[..written].iter().zip(&assembled) {
        let JoinedRecord { probe, build } = row;
        let [a, b] = [probe.payload[0], probe.payload[1]];
        assert_eq!(record, &[probe.key, a, b, build.payload[0], build.payload[1]]);
    }
}

/// Ledger row S4.23.
#[test]
fn an_entry_has_up_to_five_pointers() {
    assert_eq!((Asks::LEAST, Asks::MOST), (1, 5));
}
