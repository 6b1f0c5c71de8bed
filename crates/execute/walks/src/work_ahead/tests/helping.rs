//! The rules of the helper's half, one property each (ledger row A30; Zhou et al., VLDB 2005, §4.1,
//! §4.3, §4.4).
//!
//! Where nothing needs two threads there is one: the helper's load is the test's, so it can play
//! the main thread between two loads, and knows exactly which comes next.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;

use proptest::prelude::*;

use super::super::slots::{Guard, Slots, dummy};
use super::super::{
    Deduplicate, Direction, Helper, HelperReport, Skip, TurnEnd, Wait, WorkAheadSet,
};
use crate::place::{Place, References, Several};

/// Lines to point to.
static LINES: [[u64; 8]; 256] = [[0; 8]; 256];

fn line(at: usize) -> Place {
    Place::of(&LINES[at])
}

fn address(at: usize) -> usize {
    line(at).address().addr()
}

/// Posts once: places, or the dummy. Whatever comes to hand is finished.
fn post<A: References>(set: &mut WorkAheadSet<'_, A, ()>, asks: Option<A>) {
    let mut asks = Some(asks);
    set.take_turns(|mut turn| {
        turn.finish();
        match asks.take() {
            Some(Some(asks)) => turn.post((), asks),
            Some(None) => turn.post_dummies(),
            None => TurnEnd::Nothing,
        }
    });
}

fn helper(direction: Direction, wait: Wait) -> Helper {
    Helper { direction, wait, skip: Skip::Nothing }
}

/// For one run: far beyond what any of them needs.
const PATIENCE: Duration = Duration::from_secs(5);

/// The number of cases; a helper that waits where it should not makes each slow to shrink.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, max_shrink_time: 15_000, ..ProptestConfig::default() }
}

/// Runs a helper on this thread; one that waits where it should not is stopped, and reports.
fn run<A: References>(helper: Helper, slots: &Slots<A>, load: impl FnMut(usize)) -> HelperReport {
    std::thread::scope(|scope| {
        let (ended, end) = channel::<()>();
        scope.spawn(move || match end.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Timeout) => slots.finish(),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {}
        });
        let report = helper.run(slots, load);
        drop(ended);
        report
    })
}

/// The entry after one, by the rule.
fn after(entry: usize, entries: usize, direction: Direction) -> usize {
    match direction {
        Direction::Forward => (entry + 1) % entries,
        Direction::Backward => (entry + entries - 1) % entries,
    }
}

fn directions() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Forward), Just(Direction::Backward)]
}

fn waits() -> impl Strategy<Value = Wait> {
    let sleep = Wait::Sleep(Duration::from_micros(1));
    prop_oneof![Just(Wait::Spin { pauses: 1 }), Just(Wait::Spin { pauses: 8 }), Just(sleep)]
}

proptest! {
    #![proptest_config(cases(128))]

    /// S4.8, S4.10: the helper goes with the main thread or against it, and loads all M references
    /// of each entry, the padding too.
    #[test]
    fn the_helper_goes_round_its_way_and_loads_all_of_an_entry(
        entries in 1..40_usize, counts in prop::collection::vec(2..=4_usize, 40),
        direction in directions(), loads in 1..500_usize,
    ) {
        type Asks = Several<2, 4>;
        let slots = Slots::<Asks>::of_size(2 * entries, Guard::None);
        let mut set = WorkAheadSet::new(&slots, usize::MAX, Deduplicate::Nothing);
        let lines = |entry: usize| [0, 1, 2, 3].map(|k| entry * 4 + k);
        for (entry, &count) in counts.iter().enumerate().take(entries) {
            post(&mut set, Some(Asks::first(count, lines(entry).map(line))));
        }
        let mut loaded = Vec::new();
        let report = run(helper(direction, Wait::None), &slots, |address| {
            assert!(loaded.len() < loads + 3, "it goes on");
            loaded.push(address);
            if loaded.len() == loads {
                slots.finish();
            }
        });
        // An entry whose load has begun is loaded to its end.
        prop_assert_eq!(report.entries_loaded as usize, loads.div_ceil(4));
        prop_assert_eq!(loaded.len(), loads.div_ceil(4) * 4);
        let (mut entry, mut laps) = (0, 0);
        for (turn, loaded) in loaded.chunks(4).enumerate() {
            let valid = lines(entry).map(address).into_iter().take(counts[entry]);
            prop_assert!(valid.chain([dummy(); 4]).take(4).eq(loaded.iter().copied()), "{turn}");
            entry = after(entry, entries, direction);
            laps += u64::from(match direction {
                Direction::Forward => entry == 0,
                Direction::Backward => entry + 1 == entries,
            });
        }
        prop_assert_eq!(report.laps, laps);
    }

    /// S4.11: the helper never waits at the dummy, even where other references of the entry are
    /// valid: only the first tells.
    #[test]
    fn the_helper_never_waits_at_the_dummy(
        entries in 1..40_usize, laps in 1..6_usize, direction in directions(), wait in waits(),
    ) {
        type Asks = Several<2, 2>;
        let slots = Slots::<Asks>::of_size(2 * entries, Guard::None);
        let mut set = WorkAheadSet::new(&slots, usize::MAX, Deduplicate::InPost);
        // A line that was just posted is left out: after the first post, first references are.
        for entry in 0..entries {
            post(&mut set, Some(Asks::all([line(0), line(1 + entry)])));
        }
        post(&mut set, None);
        let mut loaded = Vec::new();
        let report = run(helper(direction, wait), &slots, |address| {
            assert!(loaded.len() < laps * entries * 2, "it goes on");
            loaded.push(address);
            if loaded.len() == laps * entries * 2 {
                slots.finish();
            }
        });
        prop_assert_eq!((report.waits, loaded.len()), (0, laps * entries * 2));
        let mut entry = 0;
        for loaded in loaded.chunks(2) {
            let second = if entry == 0 { dummy() } else { address(1 + entry) };
            prop_assert_eq!(loaded, [dummy(), second]);
            entry = after(entry, entries, direction);
        }
    }

    /// S4.11: the helper knows what it loaded last at each slot, and not what it loaded last: a
    /// reference that moves to another slot is loaded there, a slot that changed is not waited at.
    #[test]
    fn the_helper_has_a_copy_of_its_own_for_every_slot(
        entries in 1..12_usize, direction in directions(), wait in waits(),
        // Few lines, so that the same are posted again and again; none is the dummy.
        posts in prop::collection::vec(prop::option::weighted(0.8, 0..3_usize), 1..300),
    ) {
        let slots = Slots::<Place>::of_size(entries, Guard::None);
        let mut set = WorkAheadSet::new(&slots, usize::MAX, Deduplicate::Nothing);
        let (mut held, mut copies) = (vec![dummy(); entries], vec![dummy(); entries]);
        let (mut entry, mut slot, mut posts) = (0, 0, posts.into_iter());
        let (mut wrong, mut has_finished) = (None, false);
        let report = run(helper(direction, wait), &slots, |loaded| {
            assert!(!has_finished, "it goes on");
            if loaded != held[entry] {
                wrong.get_or_insert((entry, loaded, held[entry]));
            }
            copies[entry] = loaded;
            entry = after(entry, entries, direction);
            // The main thread's turn: one post, and more until the helper need not wait.
            loop {
                let Some(next) = posts.next() else {
                    has_finished = true;
                    return slots.finish();
                };
                post(&mut set, next.map(line));
                held[slot] = next.map_or(dummy(), address);
                slot = (slot + 1) % entries;
                if held[entry] == dummy() || held[entry] != copies[entry] {
                    return;
                }
            }
        });
        prop_assert_eq!(wrong, None, "(entry, loaded, held)");
        prop_assert_eq!(report.waits, 0);
    }
}

/// A load that should come, if it takes its time.
fn next(loads: &Receiver<usize>) -> usize {
    loads.recv_timeout(PATIENCE).expect("the helper loads")
}

proptest! {
    #![proptest_config(cases(24))]

    /// S4.11: at a slot that is as it was, the helper waits until the main thread changes it, and
    /// ends there when it is stopped.
    #[test]
    fn the_helper_waits_at_an_unchanged_slot(
        entries in 1..12_usize, changes in 0..12_usize, direction in directions(), wait in waits(),
    ) {
        let slots = Slots::<Place>::of_size(entries, Guard::None);
        let mut set = WorkAheadSet::new(&slots, usize::MAX, Deduplicate::Nothing);
        (0..entries).for_each(|entry| post(&mut set, Some(line(entry))));
        let ((loaded, loads), (ended, end)) = (channel(), channel());
        let report = std::thread::scope(|scope| {
            let slots = &slots;
            scope.spawn(move || {
                let load = |address| loaded.send(address).unwrap_or_default();
                ended.send(helper(direction, wait).run(slots, load)).unwrap_or_default();
            });
            let finish = Finish(slots);
            let (mut entry, mut held) = (0, (0..entries).collect::<Vec<_>>());
            for _ in 0..entries {
                assert_eq!(next(&loads), address(entry));
                entry = after(entry, entries, direction);
            }
            for change in 0..changes {
                std::thread::sleep(Duration::from_millis(1));
                assert_eq!(loads.try_recv(), Err(TryRecvError::Empty), "it waits");
                // Slots are posted to in a circle: the others get what they have.
                held[entry] = 100 + change;
                held.iter().for_each(|&held| post(&mut set, Some(line(held))));
                assert_eq!(next(&loads), address(100 + change));
                entry = after(entry, entries, direction);
            }
            drop(finish);
            end.recv_timeout(PATIENCE).unwrap_or_else(|_| {
                // Away from where it waits, so that this thread can end.
                (0..entries).for_each(|entry| post(&mut set, Some(line(200 + entry))));
                panic!("it waits after the main thread has finished");
            })
        });
        prop_assert!(report.entries_loaded as usize >= entries + changes);
        prop_assert!(changes == 0 || report.waits > 0);
    }
}

/// Ends the helper by whatever way the test ends: a failed one must not hang.
struct Finish<'s>(&'s Slots<Place>);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}
