//! Both variants against the pairs themselves, under every technique; indexes against two loops.

use proptest::prelude::*;
use workahead_machine::pages::Pages;
use workahead_machine::pin;

use super::*;
use crate::Technique;
use crate::conformance;
use crate::isa::Portable;
use crate::materialise::pair_checksum;
use crate::random::Random;
use crate::record::drawn_table;
use crate::technique::run;
use crate::walk::Rows;
use crate::work_ahead::Placement;

const TECHNIQUES: [&str; 12] = [
    "sequential",
    "staged:width=7",
    "group:width=16",
    "amac:width=32",
    "amac:width=1,hint=l2",
    "rounds:width=100",
    "distance:rows=5",
    "coroutine:width=9",
    "work-ahead:size=64,helper=off",
    "work-ahead:size=3,direction=forward,wait=none",
    "work-ahead:size=128,dedupe=post",
    "direct-helper:size=64",
];

fn table<P: Payload>(rows: u32, keys: u32, seed: u64) -> Vec<Record<P>> {
    let drawn = drawn_table(rows, keys, &mut Random::of(seed), Pages::Small).unwrap();
    drawn
        .iter()
        .map(|record| Record::new(record.key, record.row, record.key ^ record.row))
        .collect()
}

/// The output of pairs, read off the tables.
fn joined<P: Payload>(
    pairs: &Pairs,
    left: &[Record<P>],
    right: &[Record<P>],
) -> Vec<JoinedRecord<P>> {
    let row = |&[l, r]: &[u32; 2]| JoinedRecord {
        probe: left[l as usize],
        build: right.get(r as usize).copied().unwrap_or(Record::NULL),
    };
    pairs.all().iter().map(row).collect()
}

fn check<V, P>(pairs: &Pairs, left: &[Record<P>], right: &[Record<P>])
where
    V: Variant + Send,
    P: Payload,
{
    let expected = joined(pairs, left, right);
    let checksum = expected
        .iter()
        .fold(0_u64, |sum, row| sum.wrapping_add(pair_checksum(row.probe.row, row.build.row)));
    let allowed = pin::affinity().unwrap();
    let placement = Placement { helper_cpu: allowed.iter().last().unwrap(), allowed: &allowed };
    let mut output =
        vec![JoinedRecord { probe: Record::NULL, build: Record::NULL }; pairs.len().max(1)];
    for name in TECHNIQUES {
        let technique: Technique = name.parse().unwrap();
        output.fill(JoinedRecord { probe: Record::NULL, build: left[0] });
        let (mut sink, destination) = Materialise::announced(&mut output);
        let mut walk = JoinIndex::<V, P>::new(pairs, left, right, destination);
        let rows = &mut Rows::range(0..pairs.len() as Row);
        run(technique, Portable, &mut walk, rows, placement, &mut sink).unwrap();
        assert_eq!((sink.written(), sink.checksum()), (pairs.len(), checksum), "{name}");
        assert!(output[..pairs.len()] == expected, "{name}: rows, in the order of the index");
    }
}

/// Both variants over tables whose records carry a `P`.
fn check_both<P: Payload>(outer: &Pairs, inner: &Pairs, rows: (u32, u32), seed: u64) {
    let (left, right) = (&table::<P>(rows.0, 50, seed), &table::<P>(rows.1, 50, !seed));
    check::<LeftOuter, P>(outer, left, right);
    check::<LeftOuter, P>(inner, left, right);
    check::<Inner, P>(inner, left, right);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_technique_writes_what_the_pairs_say(
        (left_rows, right_rows, pairs) in (1..200_u32, 1..200_u32, 0..400_usize),
        null_percent in 0..=100_u8,
        order in prop_oneof![Just(Order::Random), Just(Order::Left)],
        seed: u64,
    ) {
        let draft = Draft { pairs, left_rows, right_rows, null_percent, order };
        let outer = draft.draw(&mut Random::of(seed), Pages::Small).unwrap();
        let inner = Draft { null_percent: 0, ..draft };
        let inner = inner.draw(&mut Random::of(seed), Pages::Small).unwrap();
        prop_assert_eq!(outer.nulls(), pairs * usize::from(null_percent) / 100);
        prop_assert_eq!(outer.all().iter().filter(|pair| pair[1] == NULL).count(), outer.nulls());
        prop_assert!(order == Order::Random || outer.all().is_sorted_by_key(|pair| pair[0]));
        let rows = (left_rows, right_rows);
        check_both::<OneLine>(&outer, &inner, rows, seed);
        match seed % 3 {
            0 => check_both::<[u32; 6]>(&outer, &inner, rows, seed),
            1 => check_both::<[u32; 30]>(&outer, &inner, rows, seed),
            _ => check_both::<[u32; 62]>(&outer, &inner, rows, seed),
        }
    }

    #[test]
    fn an_index_of_tables_is_what_two_loops_find(
        left in (0..60_u32, 1..40_u32, any::<u64>()),
        right in (0..60_u32, 1..40_u32, any::<u64>()),
    ) {
        let left = table::<OneLine>(left.0, left.1, left.2);
        let right = table::<OneLine>(right.0, right.1, right.2);
        for unmatched in [UnmatchedRows::Dropped, UnmatchedRows::Kept] {
            let mut expected = Vec::new();
            for l in &left {
                let before = expected.len();
                let equal = right.iter().filter(|r| r.key == l.key);
                expected.extend(equal.map(|r| [l.row, r.row]));
                if expected.len() == before && unmatched == UnmatchedRows::Kept {
                    expected.push([l.row, NULL]);
                }
            }
            let found = Pairs::of_tables(&left, &right, unmatched, Pages::Small).unwrap();
            prop_assert!(found.all().is_sorted_by_key(|pair| pair[0]));
            let mut pairs = found.all().to_vec();
            pairs.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(pairs, expected);
        }
    }
}

#[test]
fn the_laws_are_kept() {
    let (left, right) = (table::<OneLine>(300, 90, 1), table(200, 90, 2));
    let pairs = Pairs::of_tables(&left, &right, UnmatchedRows::Kept, Pages::Small).unwrap();
    assert!(pairs.nulls() > 0 && pairs.nulls() < pairs.len());
    let mut output = vec![JoinedRecord { probe: Record::NULL, build: Record::NULL }; pairs.len()];
    let (_, destination) = Materialise::announced(&mut output);
    let rows = Rows::range(0..pairs.len() as Row);
    let row_ids = |&[l, r]: &[u32; 2]| (l, (r != NULL).then_some(r));
    let of_pair = |(at, pair)| (at, (at, row_ids(pair)));
    let expected: Vec<(Row, _)> = (0..).zip(pairs.all()).map(of_pair).collect();
    let found = |pair: Pair<'_>| (pair.slot, (pair.left.row, pair.right.map(|right| right.row)));
    let make = || JoinIndex::<LeftOuter>::new(&pairs, &left, &right, destination);
    conformance::check(make, rows, conformance::hits(&expected, found)).unwrap();
}

#[test]
fn a_short_output_is_written_round_and_round() {
    let (left, right) = (table::<OneLine>(100, 10, 1), table(100, 10, 2));
    let draft = Draft { pairs: 250, left_rows: 100, right_rows: 100, ..Draft::PAPER_OUTER };
    let pairs = draft.draw(&mut Random::of(5), Pages::Small).unwrap();
    let mut output = vec![JoinedRecord { probe: Record::NULL, build: Record::NULL }; 100];
    let (mut sink, destination) = Materialise::announced(&mut output);
    let mut walk = JoinIndex::<LeftOuter>::new(&pairs, &left, &right, destination);
    let allowed = pin::affinity().unwrap();
    let placement = Placement { helper_cpu: allowed.iter().next().unwrap(), allowed: &allowed };
    let rows = &mut Rows::range(0..250);
    let technique = "amac:width=8".parse().unwrap();
    run(technique, Portable, &mut walk, rows, placement, &mut sink).unwrap();
    assert_eq!(sink.written(), 250);
    let expected = joined(&pairs, &left, &right);
    assert!(output[..50] == expected[200..] && output[50..] == expected[150..200]);
}

/// Ledger row S4.21/S4.22: entries of exactly three, or of two to three references.
#[test]
fn entries_are_as_the_paper_sizes_them() {
    use crate::work_ahead::{Guard, Slots};
    const fn bounds<A: References>() -> (usize, usize) {
        (A::LEAST, A::MOST)
    }
    assert_eq!(bounds::<Asks<Inner, OneLine>>(), (3, 3));
    assert_eq!(bounds::<Asks<LeftOuter, OneLine>>(), (2, 3));
    let slots = Slots::<Asks<LeftOuter, OneLine>>::of_size(128, Guard::None);
    assert_eq!(slots.entries(), 64);
    // A reference for each line of a longer record, and still one for the output.
    assert_eq!(bounds::<Asks<Inner, [u32; 6]>>(), (3, 3));
    assert_eq!(bounds::<Asks<LeftOuter, [u32; 30]>>(), (3, 5));
    assert_eq!(bounds::<Asks<LeftOuter, [u32; 62]>>(), (5, 9));
}

#[test]
#[should_panic(expected = "an inner join index has no null")]
fn an_inner_join_refuses_nulls() {
    let left = table::<OneLine>(10, 10, 1);
    let draft = Draft { pairs: 10, left_rows: 10, right_rows: 10, ..Draft::PAPER_OUTER };
    let pairs = draft.draw(&mut Random::of(5), Pages::Small).unwrap();
    let mut output = [JoinedRecord { probe: Record::NULL, build: Record::NULL }];
    let (_, destination) = Materialise::announced(&mut output);
    let _ = JoinIndex::<Inner>::new(&pairs, &left, &left, destination);
}
