//! Records of every size: the same answers, whole records copied, all their lines asked for
//! (ledger row E4.19).

use proptest::prelude::*;
use proptest::sample::subsequence;
use workahead_machine::pages::Pages;
use workahead_walks::chained::{Chains, HashJoin};
use workahead_walks::conformance::hits;
use workahead_walks::isa::Portable;
use workahead_walks::join_index::{Draft as IndexDraft, JoinIndex, LeftOuter, Pair};
use workahead_walks::materialise::Materialise;
use workahead_walks::random::Random;
use workahead_walks::record::{Clustered, JoinedRecord, OneLine, Payload, Record, Unclustered};
use workahead_walks::schedule::Lanes;
use workahead_walks::{Direct, Place, References, Row, Schedule, Walk};

use crate::cases::{Case, cases, drafts};
use crate::conformance::{all, case, check, records};
use crate::techniques::{Trial, ahead, alone};

/// Calls a function of a payload, once for each size of a record.
macro_rules! for_every_size {
    ($function:ident($($argument:expr),*)) => {
        $function::<[u32; 6]>($($argument),*);
        $function::<OneLine>($($argument),*);
        $function::<[u32; 30]>($($argument),*);
        $function::<[u32; 62]>($($argument),*);
    };
}

fn laws_of_the_chained_join<P: Payload>(case: &Case) {
    let (build, probe) = (records::<P>(&case.build), records::<P>(&case.probe));
    let chains = Chains::build(build.iter().map(|record| record.key), Pages::Small).unwrap();
    let value = |(_, build): (&Record<P>, &Record<P>)| build.row;
    let clustered = || HashJoin::new(&chains, &build, Clustered(&probe));
    check(clustered, probe.len(), hits(&case.pairs(true), value));
    let probes = Unclustered { records: &probe, rids: &case.rids, row_stage: true };
    let unclustered = || HashJoin::new(&chains, &build, probes);
    check(unclustered, probe.len(), hits(&case.pairs(false), value));
}

fn laws_of_the_join_index<P: Payload>(case: &Case) {
    let (left, right) = (records::<P>(&case.build), records::<P>(&case.probe));
    let draft =
        IndexDraft { pairs: 250, left_rows: 300, right_rows: 300, ..IndexDraft::PAPER_OUTER };
    let pairs = draft.draw(&mut Random::of(1), Pages::Small).unwrap();
    let mut output = vec![JoinedRecord { probe: Record::NULL, build: Record::NULL }; 250];
    let (_, destination) = Materialise::announced(&mut output);
    let expected: Vec<(Row, [u32; 2])> = (0..).zip(pairs.all().to_vec()).collect();
    let value = |pair: Pair<'_, P>| [pair.left.row, pair.right.map_or(u32::MAX, |right| right.row)];
    let walk = || JoinIndex::<LeftOuter, P>::new(&pairs, &left, &right, destination);
    check(walk, 250, hits(&expected, value));
}

#[test]
fn joins_of_records_of_every_size_keep_the_laws() {
    let case = &case();
    for_every_size!(laws_of_the_chained_join(case));
    for_every_size!(laws_of_the_join_index(case));
}

fn joined_under<P: Payload>(case: &Case, techniques: &[String], room: usize) {
    let (build, probe) = (records::<P>(&case.build), records::<P>(&case.probe));
    let chains = Chains::build(case.build.iter().copied(), Pages::Small).unwrap();
    let probes = Unclustered { records: &probe, rids: &case.rids, row_stage: true };
    let walk = HashJoin::new(&chains, &build, probes);
    let value = |(_, build): (&Record<P>, &Record<P>)| build.row;
    let mut trial = Trial { techniques, room, expected: case.pairs(false), value };
    trial.hold(Portable, &walk, probe.len());
}

/// Whole records arrive, the build row's in its half, whatever they carry.
fn copied_whole<P: Payload>(case: &Case) {
    let (build, probe) = (records::<P>(&case.build), records::<P>(&case.probe));
    let chains = Chains::build(case.build.iter().copied(), Pages::Small).unwrap();
    let expected = case.pairs(true);
    let none = JoinedRecord { probe: Record::<P>::NULL, build: Record::NULL };
    let mut output = vec![none; expected.len() + 1];
    let mut sink = Materialise::new(&mut output);
    let mut walk = HashJoin::new(&chains, &build, Clustered(&probe));
    Lanes::new(9).drive(&mut walk, &mut all(probe.len()), &mut Direct, &mut sink);
    assert_eq!(sink.written(), expected.len());
    let row = |&(at, row): &(Row, u32)| (probe[at as usize], build[row as usize]);
    let order = |row: &(Record<P>, Record<P>)| (row.0.row, row.1.row);
    let mut expected: Vec<_> = expected.iter().map(row).collect();
    let mut found: Vec<_> = output.iter().map(|row| (row.probe, row.build)).collect();
    assert_eq!(found.pop(), Some((none.probe, none.build)), "one row more than there are");
    expected.sort_by_key(order);
    found.sort_by_key(order);
    assert!(found == expected, "{} B", P::RECORD_BYTES);
}

fn lines(asks: impl References) -> Vec<(usize, usize)> {
    let mut lines = Vec::new();
    asks.each(|place| lines.push((place.address().addr(), place.bytes())));
    assert_eq!(lines.len(), asks.count());
    lines
}

/// The helper of a work-ahead set loads one line a reference, so there must be one for each.
fn a_reference_for_every_line<P: Payload>(case: &Case) {
    let (build, probe) = (records::<P>(&case.build), records::<P>(&case.probe));
    let chains = Chains::build(case.build.iter().copied(), Pages::Small).unwrap();
    let of = |record: &Record<P>| -> Vec<(usize, usize)> {
        let (first, bytes) = ((&raw const *record).addr(), P::RECORD_BYTES.min(64));
        (0..P::RECORD_LINES).map(|line| (first + line * 64, bytes)).collect()
    };
    let probes = Unclustered { records: &probe, rids: &case.rids, row_stage: true };
    let mut walk = HashJoin::new(&chains, &build, probes);
    let mut rows_of_hits = 0;
    for row in 0..case.rids.len() as Row {
        type Asks<P> = <P as Payload>::Asks;
        let input: Place = walk.input(row).unwrap();
        let input = lines(<Asks<P> as References>::Input::from(input));
        assert_eq!(input, of(&probe[case.rids[row as usize] as usize]));
        let (mut cursor, mut asks) = walk.start(row, &mut Direct);
        let mut found = Vec::new();
        loop {
            let (requested, before) = (lines(asks), found.len());
            let next = walk.step(&mut cursor, &mut Direct, &mut found);
            if found.len() > before {
                assert_eq!(requested, of(found[before].1.1), "the build row");
                rows_of_hits += 1;
            }
            match next {
                Some(next) => asks = next,
                None => break,
            }
        }
    }
    assert_eq!(rows_of_hits, case.pairs(false).len());
    assert!(rows_of_hits > 0);
}

#[test]
fn every_line_of_a_record_is_asked_for() {
    let case = &case();
    for_every_size!(a_reference_for_every_line(case));
}

#[test]
fn records_are_as_large_as_they_say_and_lie_in_their_lines() {
    fn bytes<P: Payload>() -> [usize; 3] {
        let table = [Record::<P>::NULL; 3];
        let straddles = |record: &Record<P>| {
            let at = (&raw const *record).addr() % 64;
            at + P::RECORD_BYTES > 64 * P::RECORD_LINES
        };
        assert!(!table.iter().any(straddles));
        [P::RECORD_BYTES, P::RECORD_LINES, size_of::<JoinedRecord<P>>()]
    }
    assert_eq!(bytes::<[u32; 6]>(), [32, 1, 64]);
    assert_eq!(bytes::<OneLine>(), [64, 1, 128]);
    assert_eq!(bytes::<[u32; 30]>(), [128, 2, 256]);
    assert_eq!(bytes::<[u32; 62]>(), [256, 4, 512]);
}

proptest! {
    #![proptest_config(cases(6))]

    #[test]
    fn records_of_every_size_are_joined(
        draft in drafts(1200),
        techniques in subsequence(ahead(), 6),
        room in prop_oneof![Just(1_usize), 2..40_usize, 500..5000_usize],
    ) {
        let case = draft.draw();
        let techniques: Vec<String> = alone().into_iter().chain(techniques).collect();
        for_every_size!(joined_under(&case, &techniques, room));
        for_every_size!(copied_whole(&case));
    }
}
