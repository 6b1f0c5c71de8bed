//! The helper stores nothing that anyone shares with it (ledger row A31).
//!
//! By construction the only stores to a set are those of `Slot::store`, which the main thread's
//! posts call, and of `finish`. These tests see it from outside: lap after lap a helper finds the
//! slots as the main thread left them, and tables are byte for byte the same after any run.

use workahead_machine::pages::Pages;
use workahead_machine::pin;
use workahead_walks::chained::{Chains, HashJoin, Lists};
use workahead_walks::hash::hash_u32;
use workahead_walks::isa::Portable;
use workahead_walks::random::Random;
use workahead_walks::record::{Record, Unclustered, drawn_table};
use workahead_walks::technique::run;
use workahead_walks::work_ahead::{
    Deduplicate, Direction, Guard, Helper, Placement, Skip, Slots, TurnEnd, Wait, WorkAheadSet,
    dummy,
};
use workahead_walks::{Place, Row, Rows, Several, Technique};

const ENTRIES: usize = 50;
const LAPS: usize = 4;

/// The loads of a helper in some laps over slots that nobody posts to any more.
fn laps_over(guard: Guard, direction: Direction, table: &[[u64; 8]]) -> Vec<Vec<usize>> {
    let slots = Slots::<Several<2, 3>>::of_size(2 * ENTRIES, guard);
    assert_eq!(slots.entries(), ENTRIES);
    let mut set = WorkAheadSet::new(&slots, usize::MAX, Deduplicate::Nothing);
    let mut posted = 0;
    set.take_turns(|mut turn| {
        turn.finish();
        if posted == ENTRIES {
            return TurnEnd::Nothing;
        }
        let [a, b, c] = [0, 1, 2].map(|k| Place::of(&table[posted * 3 + k]));
        posted += 1;
        turn.post((), Several::<2, 3>::first(2 + posted % 2, [a, b, c]))
    });
    let helper = Helper { direction, wait: Wait::None, skip: Skip::Nothing };
    let mut loaded = Vec::new();
    // The flag is the main thread's to set: here, out of the helper's load.
    let report = helper.run(&slots, |address| {
        loaded.push(address);
        if loaded.len() == LAPS * ENTRIES * 3 {
            slots.finish();
        }
    });
    assert_eq!(report.entries_loaded as usize, LAPS * ENTRIES);
    // Either way round, every entry comes once a lap.
    loaded.chunks(ENTRIES * 3).map(<[usize]>::to_vec).collect()
}

#[test]
fn every_lap_finds_the_slots_as_they_were_posted() {
    let table = vec![[0_u64; 8]; ENTRIES * 3];
    let mut expected: Vec<usize> = Vec::new();
    for entry in 0..ENTRIES {
        let third = entry % 2 == 0;
        let cells = [0, 1, 2].map(|k| (&raw const table[entry * 3 + k]).addr());
        expected.extend([cells[0], cells[1], if third { cells[2] } else { dummy() }]);
    }
    expected.sort_unstable();
    for guard in [Guard::None, Guard::Mutex] {
        for direction in [Direction::Forward, Direction::Backward] {
            let laps = laps_over(guard, direction, &table);
            assert_eq!(laps.len(), LAPS);
            for mut lap in laps {
                lap.sort_unstable();
                assert_eq!(lap, expected, "{guard:?}, {direction:?}");
            }
        }
    }
}

/// All bytes that a hash join reads, by value.
fn image(lists: Lists<'_>, tables: [&[Record]; 2], rids: &[u32]) -> (Vec<u32>, Vec<Record>) {
    let mut words = rids.to_vec();
    let records: Vec<Record> = tables.concat();
    for record in &records {
        let mut handle = *lists.head(hash_u32(record.key));
        while let Some(cell) = lists.cell(handle) {
            words.extend([handle, cell.hash, cell.row]);
            handle = cell.next;
        }
    }
    (words, records)
}

#[test]
fn tables_are_the_same_after_every_run_beside_a_helper() {
    let random = &mut Random::of(1);
    let build = drawn_table(3000, 1000, random, Pages::Small).unwrap();
    let probe = drawn_table(3000, 1500, random, Pages::Small).unwrap();
    let rids = random.permutation(3000);
    let chains = Chains::build(build.iter().map(|record| record.key), Pages::Small).unwrap();
    let of_now = || image(Lists::of(&chains), [&build, &probe], &rids);
    let before = of_now();
    let allowed = pin::affinity().unwrap();
    let placement = Placement { helper_cpu: allowed.iter().last().unwrap(), allowed: &allowed };
    for technique in [
        "work-ahead:size=128",
        "work-ahead:size=128,direction=forward,wait=none",
        "work-ahead:size=64,guard=mutex",
        "work-ahead:size=64,dedupe=helper,wait=none",
        "direct-helper",
    ] {
        let how: Technique = technique.parse().unwrap();
        let probes = Unclustered { records: &probe, rids: &rids, row_stage: true };
        let mut walk = HashJoin::new(&chains, &build, probes);
        let (mut rows, mut hits) = (Rows::range(0..rids.len() as Row), Vec::new());
        run(how, Portable, &mut walk, &mut rows, placement, &mut hits).unwrap();
        assert!(!hits.is_empty());
        assert!(of_now() == before, "{technique}");
    }
}
