//! Several threads on one table: their outputs are disjoint and together the whole answer (A37).

use proptest::prelude::*;
use workahead_machine::pages::Pages;
use workahead_machine::pin;
use workahead_walks::chained::{Chains, HashJoin};
use workahead_walks::isa::{Detected, Isa};
use workahead_walks::record::{Record, Unclustered};
use workahead_walks::technique::Driver;
use workahead_walks::threads::{Shares, Split, together};
use workahead_walks::{Pause, Row, Technique, with_isa};

use crate::cases::{cases, drafts};
use crate::conformance::records;

fn splits() -> impl Strategy<Value = Split> {
    let morsel = prop_oneof![Just(1_u32), 2..100_u32, Just(u32::MAX)];
    prop_oneof![Just(Split::Strided), morsel.prop_map(|rows| Split::Morsels { rows })]
}

/// The hits of one thread's shares, each share driven to its end.
fn drive<'a>(
    technique: Technique,
    isa: impl Isa,
    mut walk: HashJoin<'a, Unclustered<'a>>,
    (shares, thread): (&Shares, usize),
) -> Vec<(Row, (&'a Record, &'a Record))> {
    let mut found = Vec::new();
    for mut rows in shares.of(thread as u32) {
        let mut driver = Driver::of(technique).expect("a technique of one thread");
        while driver.drive(isa, &mut walk, &mut rows, &mut found) == Pause::Full {}
    }
    found
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn shares_of_the_rows_find_the_whole(
        draft in drafts(1000),
        split in splits(),
        threads in 1..=5_usize,
        technique in prop::sample::select(vec![
            "sequential", "staged:width=7", "group:width=3", "amac:width=16", "rounds:width=64",
            "distance:rows=9",
        ]),
    ) {
        let case = draft.draw();
        let (build, probe) = (records(&case.build), records(&case.probe));
        let chains = Chains::build(case.build.iter().copied(), Pages::Small).unwrap();
        let probes = Unclustered { records: &probe, rids: &case.rids, row_stage: true };
        let walk = HashJoin::new(&chains, &build, probes);
        let technique: Technique = technique.parse().unwrap();
        let shares = Shares::new(split, probe.len() as Row, threads as u32);
        let allowed = pin::affinity().unwrap();
        let all: Vec<usize> = allowed.iter().collect();
        let cpus: Vec<usize> = all.into_iter().cycle().take(threads).collect();
        let ran = together(&cpus, &allowed, |thread| {
            with_isa!(Detected::best(), isa => drive(technique, isa, walk, (&shares, thread)))
        });
        let ran = ran.unwrap();
        prop_assert_eq!(ran.len(), threads);
        let rows = |hits: &[(Row, _)]| {
            let mut rows: Vec<Row> = hits.iter().map(|hit| hit.0).collect();
            rows.sort_unstable();
            rows.dedup();
            rows
        };
        let each: Vec<Vec<Row>> = ran.iter().map(|one| rows(&one.result)).collect();
        let mut all: Vec<Row> = each.concat();
        all.sort_unstable();
        prop_assert!(all.is_sorted_by(|a, b| a < b), "two threads had one row");
        if split == Split::Strided {
            for (thread, rows) in each.iter().enumerate() {
                prop_assert!(rows.iter().all(|row| *row as usize % threads == thread));
            }
        }
        let mut found: Vec<(Row, u32)> =
            ran.iter().flat_map(|one| &one.result).map(|hit| (hit.0, hit.1.1.row)).collect();
        found.sort_unstable();
        let mut expected = case.pairs(false);
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }
}
