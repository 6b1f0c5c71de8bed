//! The rules of the main thread's half, one property each, against a queue (ledger row A30; Zhou et
//! al., VLDB 2005, §4.1, §4.2).

use std::collections::VecDeque;

use proptest::prelude::*;

use super::super::slots::{Guard, Slots, dummy};
use super::super::{Deduplicate, TurnEnd, WorkAheadSet, drive};
use crate::memory::{Direct, Memory};
use crate::place::{Lines, Place, Several};
use crate::walk::{Row, Rows, Sink, Walk};

/// Between two and four references, as the walk of this test asks for.
type Asks = Several<LEAST, MOST>;
const LEAST: usize = 2;
const MOST: usize = 4;

/// The action of a turn.
#[derive(Debug, Clone, Copy)]
struct Move {
    /// The state at hand, if there is one, is posted again instead of being finished.
    keeps: bool,
    /// New work waits, to be admitted or not.
    begins: bool,
    /// References of whatever is posted.
    pointers: usize,
}

/// The view of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TurnView {
    /// The work at hand when it began.
    hand: Option<usize>,
    /// Valid pointers, and whether more are admitted, once there is nothing at hand.
    admission: Option<(usize, bool)>,
    /// The content of its slot after it.
    slot: [usize; MOST],
}

/// Lines to point to.
static LINES: [[u64; 8]; 64] = [[0; 8]; 64];

/// The references that a turn posts: different from those of the turns before.
fn places(turn: usize) -> [Place; MOST] {
    [0, 1, 2, 3].map(|k| Place::of(&LINES[(turn * MOST + k) % LINES.len()]))
}

/// Plays moves on sets of either kind, which show the same.
fn play(entries: usize, threshold: usize, moves: &[Move]) -> Vec<TurnView> {
    let apart = Slots::<Asks>::of_size(LEAST * entries, Guard::None);
    assert_eq!(apart.entries(), entries);
    let pairs = Slots::<Asks>::of_pairs::<usize>(LEAST * entries, Guard::None);
    assert_eq!(pairs.entries(), entries + 1);
    let seen = play_on(&apart, threshold, moves);
    assert_eq!(play_on(&pairs, threshold, moves), seen);
    seen
}

fn play_on(slots: &Slots<Asks>, threshold: usize, moves: &[Move]) -> Vec<TurnView> {
    let (entries, shared) = (slots.entries(), slots.shared());
    let mut set = WorkAheadSet::new(slots, threshold, Deduplicate::Nothing);
    let mut seen = Vec::new();
    let mut moves = moves.iter().enumerate();
    set.take_turns(|mut turn| {
        let Some((at, &Move { keeps, begins, pointers })) = moves.next() else {
            return TurnEnd::Nothing;
        };
        let hand = turn.hand().copied();
        if !keeps {
            turn.finish();
        }
        let is_free = turn.hand().is_none();
        let admission = is_free.then(|| (turn.valid(), turn.admits()));
        let asks = Asks::first(pointers, places(at));
        let posted = match admission {
            None => turn.post_again(asks),
            Some((_, true)) if begins => turn.post(at, asks),
            Some(_) => turn.post_dummies(),
        };
        let slot = [0, 1, 2, 3].map(|k| shared.pointer(at % entries, k));
        seen.push(TurnView { hand, admission, slot });
        posted
    });
    seen
}

/// The result by the rules: `slots` in the order in which they will be written again, each with the
/// work it holds and how many pointers that has. Returns what is left at the end, too.
fn by_the_rules(entries: usize, threshold: usize, moves: &[Move]) -> (Vec<TurnView>, Vec<usize>) {
    type HeldWork = Option<(usize, usize)>;
    let mut slots: VecDeque<HeldWork> = vec![None; entries].into();
    let mut at_hand: HeldWork = None;
    let mut seen = Vec::new();
    for (at, &Move { keeps, begins, pointers }) in moves.iter().enumerate() {
        let hand = at_hand.map(|held| held.0);
        let kept = hand.filter(|_| keeps);
        let valid: usize = slots.iter().flatten().map(|held| held.1).sum();
        let admits = valid < threshold;
        let work = kept.or((begins && admits).then_some(at));
        let mut slot = [dummy(); MOST];
        if work.is_some() {
            for (pointer, place) in slot.iter_mut().zip(&places(at)[..pointers]) {
                *pointer = place.address().addr();
            }
        }
        let admission = kept.is_none().then_some((valid, admits));
        seen.push(TurnView { hand, admission, slot });
        at_hand = slots.pop_front().expect("a slot at least");
        slots.push_back(work.map(|work| (work, pointers)));
    }
    let left = std::iter::once(at_hand).chain(slots).flatten().map(|held| held.0).collect();
    (seen, left)
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = (any::<bool>(), prop::bool::weighted(0.8), LEAST..=MOST);
    prop::collection::vec(
        one.prop_map(|(keeps, begins, pointers)| Move { keeps, begins, pointers }),
        0..200,
    )
}

/// Turns that finish what comes to hand and begin nothing.
fn draining(turns: usize) -> Vec<Move> {
    vec![Move { keeps: false, begins: false, pointers: LEAST }; turns]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// S4.7: `post` writes the next slot, round and round, and gives back what it held.
    #[test]
    fn a_post_returns_the_previous_content_of_its_slot(
        entries in 1..20_usize, threshold in 1..60_usize, moves in moves(),
    ) {
        let hands = |seen: &[TurnView]| seen.iter().map(|seen| seen.hand).collect::<Vec<_>>();
        let expected = by_the_rules(entries, threshold, &moves).0;
        prop_assert_eq!(hands(&play(entries, threshold, &moves)), hands(&expected));
    }

    /// S4.7: dummies drain the set: all work in it comes back, once, in the order it was posted,
    /// and nothing but dummies is left.
    #[test]
    fn dummies_drain_the_set(
        entries in 1..20_usize, threshold in 1..60_usize, moves in moves(),
    ) {
        let left = by_the_rules(entries, threshold, &moves).1;
        let all = [&moves[..], &draining(2 * entries + 1)].concat();
        let seen = play(entries, threshold, &all);
        let drained = &seen[moves.len()..];
        let back: Vec<usize> = drained[..=entries].iter().filter_map(|seen| seen.hand).collect();
        prop_assert_eq!(back, left);
        let empty = |hand| TurnView { hand, admission: Some((0, true)), slot: [dummy(); MOST] };
        prop_assert!(drained[entries + 1..].iter().all(|seen| *seen == empty(None)));
        prop_assert!(drained.iter().all(|seen| seen.slot == [dummy(); MOST]));
    }

    /// S4.8: a slot has room for M references; those not used hold the dummy line, which is none
    /// of the lines that are used.
    #[test]
    fn entries_are_padded_with_the_dummy_line(
        entries in 1..20_usize, threshold in 1..60_usize, moves in moves(),
    ) {
        let slots = |seen: &[TurnView]| seen.iter().map(|seen| seen.slot).collect::<Vec<_>>();
        let expected = by_the_rules(entries, threshold, &moves).0;
        prop_assert_eq!(slots(&play(entries, threshold, &moves)), slots(&expected));
        let lines = LINES.as_ptr_range();
        prop_assert!(!(lines.start.addr()..lines.end.addr()).contains(&dummy()));
    }

    /// S4.9: new work is admitted below the threshold of valid pointers, whatever is free.
    #[test]
    fn work_is_admitted_below_the_threshold_of_valid_pointers(
        entries in 1..20_usize, threshold in 1..60_usize, moves in moves(),
    ) {
        let admissions =
            |turns: &[TurnView]| turns.iter().map(|turn| turn.admission).collect::<Vec<_>>();
        let expected = by_the_rules(entries, threshold, &moves).0;
        prop_assert_eq!(admissions(&play(entries, threshold, &moves)), admissions(&expected));
    }

    /// S4.9: so the valid pointers pass the threshold by less than one entry, N <= t - 1 + M.
    #[test]
    fn valid_pointers_pass_the_threshold_by_less_than_an_entry(
        entries in 1..20_usize, threshold in 1..60_usize, pointers in LEAST..=MOST,
    ) {
        let moves = vec![Move { keeps: true, begins: true, pointers }; 4 * entries];
        let seen = play(entries, threshold, &moves);
        let held = seen[..entries].iter().filter(|seen| seen.slot[0] != dummy()).count();
        prop_assert_eq!(held, threshold.div_ceil(pointers).min(entries));
        let most = seen.iter().filter_map(|seen| seen.admission).map(|(valid, _)| valid).max();
        prop_assert!(most.unwrap() < threshold + pointers);
    }
}

/// States that lie in the slots are dropped with the set, once each, and belong to one set.
#[test]
fn states_in_the_slots_belong_to_one_set() {
    use std::rc::Rc;
    let slots = Slots::<Place>::of_pairs::<Rc<()>>(3, Guard::None);
    let counted = Rc::new(());
    let mut set = WorkAheadSet::new(&slots, usize::MAX, Deduplicate::Nothing);
    let mut posts = 0;
    set.take_turns(|mut turn| {
        posts += 1;
        if posts > 9 {
            return TurnEnd::Nothing;
        }
        turn.finish();
        turn.post(Rc::clone(&counted), Place::of(&LINES[posts]))
    });
    assert_eq!(Rc::strong_count(&counted), 1 + 4, "three in slots, one at hand");
    let panics = |slots: &Slots<Place>| {
        let set = || drop(WorkAheadSet::<_, Rc<()>>::new(slots, 1, Deduplicate::Nothing));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(set)).is_err()
    };
    assert!(panics(&slots), "two sets on the same states");
    drop(set);
    assert_eq!(Rc::strong_count(&counted), 1);
    assert!(panics(&slots), "nor one after the other");
    assert!(panics(&Slots::of_pairs::<[u64; 7]>(3, Guard::None)), "of another size");
    let three = Slots::<Place>::of_pairs::<[u64; 3]>(3, Guard::None);
    let aligned = || drop(WorkAheadSet::<_, u128>::new(&three, 1, Deduplicate::Nothing));
    let aligned = std::panic::catch_unwind(std::panic::AssertUnwindSafe(aligned));
    assert!(aligned.is_err(), "of another alignment");
}

/// A walk behind row ids over records of four lines, which looks at the slots when it starts.
struct FourLines<'s> {
    slots: &'s Slots<Lines<4>>,
    records: &'s [[u64; 32]],
    /// All pointers, when the first row started.
    seen: Vec<usize>,
}

impl Walk for FourLines<'_> {
    type Cursor = ();
    type Hit = ();
    type Asks = Lines<4>;

    fn input(&self, row: Row) -> Option<Place> {
        Some(Place::of(&self.records[row as usize]))
    }

    fn start<M: Memory>(&mut self, row: Row, _: &mut M) -> ((), Lines<4>) {
        if self.seen.is_empty() {
            let (shared, entries) = (self.slots.shared(), self.slots.entries());
            self.seen = (0..entries * 4).map(|at| shared.pointer(at / 4, at % 4)).collect();
        }
        ((), Place::of(&self.records[row as usize]).into())
    }

    fn step<M: Memory, S: Sink<()>>(
        &mut self,
        (): &mut (),
        _: &mut M,
        _: &mut S,
    ) -> Option<Self::Asks> {
        None
    }
}

/// A helper loads one line a reference: the record behind a row id has one for each line, too.
#[test]
fn an_input_of_several_lines_has_a_reference_for_each() {
    const ENTRIES: usize = 7;
    let records = [[0_u64; 32]; 20];
    let slots = Slots::<Lines<4>>::of_size(ENTRIES, Guard::None);
    let set = WorkAheadSet::new(&slots, 4 * ENTRIES, Deduplicate::Nothing);
    let mut walk = FourLines { slots: &slots, records: &records, seen: Vec::new() };
    drive(&mut walk, &mut Rows::range(0..20), set, &mut Direct, &mut Vec::new());
    let line = |at: usize| (&raw const records[at / 4]).addr() + at % 4 * 64;
    // The first row came to hand when its slot was posted to again: by dummies, the set being full.
    let expected = (0..4 * ENTRIES).map(|at| if at < 4 { dummy() } else { line(at) });
    assert!(walk.seen.into_iter().eq(expected));
}
