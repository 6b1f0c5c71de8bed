//! The model checker on the set: every interleaving of the main thread's `drive` and the helper's
//! `run`, with every value that relaxed loads may see.
//!
//! `cargo xtask test` runs these with `--cfg loom`, which replaces the atomics and the mutexes of
//! the set by loom's. Each model asserts that
//! * the hits are those of the walk alone: the helper changes nothing;
//! * the helper loads nothing but the dummy line and places that the walk asked for, also when it
//!   sees half of an entry with several pointers;
//! * both threads come to their end, whatever the helper was doing when the main thread finished
//!   (a shutdown that is lost, or a thread that waits for the other, has no end, which loom says).

#![cfg(loom)]

use std::sync::atomic::{AtomicUsize, Ordering};

use loom::sync::Arc;
use workahead_walks::schedule::InTurn;
use workahead_walks::work_ahead::{
    Deduplicate, Direction, Guard, Helper, Preloadable, Skip, Slots, TurnEnd, Wait, WorkAheadSet,
    drive, dummy, run_direct_modelled,
};
use workahead_walks::{Direct, Memory, Place, Row, Rows, Schedule, Several, Sink, Walk};

/// Data of the walks. Every row has cells of its own, so that pointers of different rows differ.
static TABLE: [u64; 24] = [7; 24];

/// Row `i` asks for its first cell, then for its second, then emits.
#[derive(Clone, Copy)]
struct TwoSteps;

impl Walk for TwoSteps {
    type Cursor = (Row, usize);
    type Hit = u64;
    type Asks = Place;

    fn start<M: Memory>(&mut self, row: Row, _: &mut M) -> (Self::Cursor, Place) {
        let cell = row as usize * 2;
        ((row, cell), Place::of(&TABLE[cell]))
    }

    fn step<M: Memory, S: Sink<u64>>(
        &mut self,
        (row, cell): &mut Self::Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Place> {
        let value = *memory.read(&TABLE[*cell]);
        if *cell % 2 == 0 {
            *cell += 1;
            return Some(Place::of(&TABLE[*cell]));
        }
        sink.emit(*row, value);
        None
    }
}

/// Row `i` asks for three cells, or for two if it is odd, and emits their sum.
#[derive(Clone, Copy)]
struct SeveralCells;

impl Walk for SeveralCells {
    type Cursor = Row;
    type Hit = u64;
    type Asks = Several<2, 3>;

    fn start<M: Memory>(&mut self, row: Row, _: &mut M) -> (Row, Self::Asks) {
        let cell = row as usize * 3;
        let [a, b, c] = [0, 1, 2].map(|k| Place::of(&TABLE[cell + k]));
        (row, Several::first(3 - row as usize % 2, [a, b, c]))
    }

    fn step<M: Memory, S: Sink<u64>>(
        &mut self,
        row: &mut Row,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Self::Asks> {
        let cells = &TABLE[*row as usize * 3..][..3 - *row as usize % 2];
        sink.emit(*row, cells.iter().map(|cell| *memory.read(cell)).sum());
        None
    }
}

/// Every row asks for the same cell and emits it: many rows of little state.
#[derive(Clone, Copy)]
struct OneCell;

impl Walk for OneCell {
    type Cursor = Row;
    type Hit = u64;
    type Asks = Place;

    fn start<M: Memory>(&mut self, row: Row, _: &mut M) -> (Row, Place) {
        (row, Place::of(&TABLE[0]))
    }

    fn step<M: Memory, S: Sink<u64>>(
        &mut self,
        row: &mut Row,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Place> {
        sink.emit(*row, *memory.read(&TABLE[0]));
        None
    }
}

// SAFETY: the table is static.
unsafe impl Preloadable for OneCell {}

/// Models one run of `rows` rows through a set of `size` pointers beside a helper. Returns how many
/// entries helpers loaded over all interleavings.
fn model<W>(walk: W, rows: Row, size: usize, guard: Guard, helper: Helper) -> usize
where
    W: Walk<Hit = u64> + Copy + Send + Sync + 'static,
    W::Asks: 'static,
{
    // A plain count, outside of the model: it goes on from one interleaving to the next.
    let loaded = std::sync::Arc::new(AtomicUsize::new(0));
    let total = std::sync::Arc::clone(&loaded);
    loom::model(move || {
        let slots = Arc::new(Slots::<W::Asks>::of_size(size, guard));
        let serving = loom::thread::spawn({
            let slots = Arc::clone(&slots);
            move || helper.run(&slots, |address| assert!(is_asked_for(address)))
        });
        let mut hits = Vec::new();
        let set = WorkAheadSet::new(&slots, size, Deduplicate::Nothing);
        drive(&mut { walk }, &mut Rows::range(0..rows), set, &mut Direct, &mut hits);
        slots.finish();
        let report = serving.join().unwrap();
        loaded.fetch_add(report.entries_loaded as usize, Ordering::Relaxed);
        hits.sort_unstable();
        assert_eq!(hits, alone(walk, rows));
    });
    total.load(Ordering::Relaxed)
}

/// Whether an address is the dummy's or one of the walk's.
fn is_asked_for(address: usize) -> bool {
    let cells = TABLE.as_ptr_range();
    address == dummy() || (cells.start.addr()..cells.end.addr()).contains(&address)
}

/// The hits of a walk that nobody helps.
fn alone<W: Walk<Hit = u64>>(mut walk: W, rows: Row) -> Vec<(Row, u64)> {
    let mut hits = Vec::new();
    InTurn::new().drive(&mut walk, &mut Rows::range(0..rows), &mut Direct, &mut hits);
    hits
}

const fn helper(direction: Direction, wait: Wait) -> Helper {
    Helper { direction, wait, skip: Skip::Nothing }
}

const SPIN: Wait = Wait::Spin { pauses: 1 };

#[test]
fn one_place_a_step_backward_and_forward_spinning() {
    for direction in [Direction::Backward, Direction::Forward] {
        assert!(model(TwoSteps, 2, 2, Guard::None, helper(direction, SPIN)) > 0);
    }
}

#[test]
fn one_place_a_step_without_spinning() {
    for direction in [Direction::Backward, Direction::Forward] {
        assert!(model(TwoSteps, 2, 2, Guard::None, helper(direction, Wait::None)) > 0);
    }
}

#[test]
fn several_places_a_step_may_be_torn_and_are_still_places() {
    for wait in [SPIN, Wait::None] {
        let helper = helper(Direction::Backward, wait);
        assert!(model(SeveralCells, 2, 2, Guard::None, helper) > 0);
    }
}

#[test]
fn locked_slots_end_too() {
    let helper = helper(Direction::Forward, SPIN);
    assert!(model(TwoSteps, 2, 1, Guard::Mutex, helper) > 0);
    assert!(model(SeveralCells, 2, 2, Guard::Mutex, helper) > 0);
}

#[test]
fn a_run_without_rows_ends() {
    model(TwoSteps, 0, 2, Guard::None, helper(Direction::Backward, SPIN));
    model(SeveralCells, 0, 2, Guard::Mutex, helper(Direction::Forward, Wait::None));
}

/// A main thread whose walk panics leaves slots that hold places for ever, at which a waiting
/// helper must not wait for ever.
#[test]
fn a_main_thread_that_leaves_work_behind_is_not_waited_for() {
    for wait in [SPIN, Wait::None] {
        loom::model(move || {
            let slots = Arc::new(Slots::<Place>::of_size(2, Guard::None));
            let serving = loom::thread::spawn({
                let slots = Arc::clone(&slots);
                let helper = helper(Direction::Backward, wait);
                move || helper.run(&slots, |address| assert!(is_asked_for(address)))
            });
            let mut cells = TABLE.iter().take(3);
            let mut set = WorkAheadSet::new(&slots, 2, Deduplicate::Nothing);
            set.take_turns(|mut turn| {
                turn.finish();
                match cells.next() {
                    Some(cell) => turn.post((), Place::of(cell)),
                    None => TurnEnd::Nothing,
                }
            });
            slots.finish();
            serving.join().unwrap();
        });
    }
}

#[test]
fn a_helper_that_skips_recent_lines_ends() {
    let helper = Helper { skip: Skip::RecentLines, ..helper(Direction::Backward, SPIN) };
    model(TwoSteps, 2, 2, Guard::None, helper);
}

/// More rows than the main thread runs between two notes of its progress (sixteen).
#[test]
fn a_helper_that_reads_the_input_ends() {
    const ROWS: Row = 18;
    for size in [1, 2 * ROWS as usize] {
        loom::model(move || {
            let mut hits = Vec::new();
            run_direct_modelled(OneCell, Rows::range(0..ROWS), size, &mut hits);
            assert_eq!(hits, alone(OneCell, ROWS));
        });
    }
}
