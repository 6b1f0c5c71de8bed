//! A schedule serves one run of rows after the other: what a thread does with its morsels.

use proptest::prelude::*;

use super::{Distance, Groups, InTurn, Lanes, Pause, Rounds, Schedule};
use crate::chained::{Chains, HashJoin};
use crate::memory::{Prefetching, ToL1};
use crate::record::{Clustered, Record};
use crate::walk::{Row, Rows};
use workahead_machine::pages::Pages;

/// A walk over records with these keys, joined with themselves.
fn pairs_of_runs(keys: &[u32], runs: &[Rows], schedule: &str) -> Vec<(Row, Row)> {
    let records: Vec<Record> =
        (0..).zip(keys).map(|(row, key)| Record::new(*key, row, 0)).collect();
    let chains = Chains::build(keys.iter().copied(), Pages::Small).unwrap();
    let mut walk = HashJoin::new(&chains, &records, Clustered(&records));
    let mut hits = Vec::new();
    macro_rules! driven {
        ($schedule:expr) => {{
            let mut schedule = $schedule;
            for rows in runs {
                let memory = &mut Prefetching::<ToL1>::default();
                let ended = schedule.drive(&mut walk, &mut { *rows }, memory, &mut hits);
                assert_eq!(ended, Pause::Drained);
            }
        }};
    }
    match schedule {
        "in turn" => driven!(InTurn::new()),
        "lanes" => driven!(Lanes::new(7)),
        "groups" => driven!(Groups::new(7)),
        "rounds" => driven!(Rounds::new(7)),
        _ => driven!(Distance::new(7)),
    }
    let mut pairs: Vec<_> = hits.iter().map(|(row, (_, build))| (*row, build.row)).collect();
    pairs.sort_unstable();
    pairs
}

proptest! {
    #[test]
    fn runs_one_after_the_other_find_what_all_rows_find(
        keys in prop::collection::vec(0_u32..40, 1..100),
        cuts in prop::collection::vec(0_u32..100, 0..4),
    ) {
        let end = keys.len() as Row;
        let mut cuts: Vec<Row> = cuts.into_iter().map(|cut| cut.min(end)).chain([0, end]).collect();
        cuts.sort_unstable();
        let runs: Vec<Rows> = cuts.windows(2).map(|cut| Rows::range(cut[0]..cut[1])).collect();
        let whole = pairs_of_runs(&keys, &[Rows::range(0..end)], "in turn");
        for schedule in ["in turn", "lanes", "groups", "rounds", "distance"] {
            prop_assert_eq!(&pairs_of_runs(&keys, &runs, schedule), &whole, "{}", schedule);
        }
    }
}
