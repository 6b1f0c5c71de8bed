//! Answers are the same with a helper and without, and the race believes nothing but times.

use workahead_machine::topology::{Core, CoreKind};

use super::*;
use crate::memory::{Direct, Memory};
use crate::place::Place;
use crate::random::Random;
use crate::schedule::{InTurn, Schedule};
use crate::walk::Walk;

/// Every row reads a cell at random, then the one that this names.
#[derive(Clone, Copy)]
struct TwoCells<'a>(&'a [u32], &'a [u32]);

impl Walk for TwoCells<'_> {
    type Cursor = (Row, u32, bool);
    type Hit = u32;
    type Asks = Place;

    fn start<M: Memory>(&mut self, row: Row, _: &mut M) -> (Self::Cursor, Place) {
        let cell = self.0[row as usize];
        ((row, cell, false), Place::of(&self.1[cell as usize]))
    }

    fn step<M: Memory, S: Sink<u32>>(
        &mut self,
        (row, cell, is_second): &mut Self::Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Place> {
        let next = *memory.read(&self.1[*cell as usize]);
        if *is_second {
            sink.emit(*row, next);
            return None;
        }
        (*cell, *is_second) = (next, true);
        Some(Place::of(&self.1[next as usize]))
    }
}

// SAFETY: the cells are borrowed for as long as the walk exists.
unsafe impl Preloadable for TwoCells<'_> {}

/// Runs `rows` rows by an executor twice; each time the answers are those of one thread.
fn run_twice(executor: &Executor, rows: usize) -> usize {
    const CELLS: u32 = 1 << 16;
    let mut random = Random::of(3);
    let cells = random.permutation(CELLS);
    let keys: Vec<u32> = (0..rows).map(|_| random.below(CELLS)).collect();
    let expected = keys.iter().map(|key| cells[cells[*key as usize] as usize]);
    for _ in 0..2 {
        let mut hits: Vec<(Row, u32)> = Vec::new();
        let walk = &mut TwoCells(&keys, &cells);
        let bytes = size_of_val(&cells[..]);
        executor.drive((walk, 0..rows as Row), bytes, &mut hits, |walk, rows, hits| {
            InTurn::new().drive(walk, &mut Rows::range(rows), &mut Direct, hits);
        });
        hits.sort_unstable();
        assert!(hits.into_iter().map(|(_, hit)| hit).eq(expected.clone()));
    }
    size_of_val(&cells[..])
}

fn every_executor() -> Vec<Executor> {
    let allowed = pin::affinity().unwrap();
    // A machine whose CPUs all share a core.
    let mut machine = Machine::here();
    let kind = CoreKind::Uniform;
    machine.cores = vec![Core { cpus: allowed.clone(), kind, package: None, node: None }];
    let mut all = vec![Executor::with_helper(), Executor::of(&machine)];
    all.extend(allowed.iter().map(|cpu| Executor::with_helper_on(cpu).unwrap()));
    all
}

#[test]
fn answers_are_the_same_with_a_helper_and_without() {
    for rows in [0, 1, 1000, 400_000] {
        for executor in every_executor() {
            let bytes = run_twice(&executor, rows);
            let is_decided = executor.is_helped(bytes).is_some();
            assert!(rows > 1000 || is_decided != executor.has_siblings(), "too few rows to race");
        }
        for always in [true, false] {
            for executor in every_executor() {
                let executor = executor.always(always);
                let bytes = run_twice(&executor, rows);
                assert_eq!(executor.is_helped(bytes), Some(always && executor.has_siblings()));
            }
        }
    }
}

#[test]
fn without_siblings_there_is_no_helper() {
    let mut machine = Machine::here();
    machine.cores.clear();
    let executor = Executor::of(&machine);
    assert!(!executor.has_siblings());
    assert_eq!(executor.is_helped(1 << 40), Some(false));
}

#[test]
fn a_cpu_that_is_not_allowed_is_refused() {
    let error = Executor::with_helper_on(1 << 14).unwrap_err();
    assert!(error.to_string().contains("16384"), "{error}");
}

/// A race in which a row takes `ns` nanoseconds, and one of each part `parts` times that.
fn raced(rows: Row, ns: f64, parts: [f64; 4]) -> (Option<bool>, u32) {
    let mut slowed = parts.into_iter();
    let mut runs = Vec::new();
    let won = race(&mut (0..rows), &mut |part, is_helped| {
        let by = if runs.is_empty() { 1.0 } else { slowed.next().unwrap() };
        runs.push(part.len() as u32);
        (is_helped, part.len() as f64 * ns * 1e-9 * by)
    });
    (won, runs.iter().sum())
}

#[test]
fn a_helper_wins_by_a_twentieth_in_the_best_of_two_parts() {
    let won = |parts| raced(10_000_000, 20.0, parts).0.unwrap();
    assert!(won([1.0, 0.9, 0.9, 1.0]));
    assert!(won([1.0, 3.0, 0.9, 1.0]), "disturbed once");
    assert!(won([1.0, 0.9, 2.0, 1.5]));
    assert!(!won([1.0, 0.97, 0.97, 1.0]), "too little for a hardware thread");
    assert!(!won([9.0, 0.97, 9.0, 1.0]), "alone was disturbed");
    assert!(!won([1.0, 1.5, 1.4, 1.0]));
}

#[test]
fn a_race_takes_five_milliseconds_and_no_more_rows_than_there_are() {
    let (won, rows) = raced(10_000_000, 20.0, [1.0; 4]);
    assert!(won.is_some() && f64::from(rows) * 20.0 < 5e6, "{rows} rows of 20 ns");
    assert_eq!(raced(100_000, 20.0, [1.0; 4]), (None, FIRST_ROWS));
    assert_eq!(raced(500, 20.0, [1.0; 4]), (None, 500));
    assert_eq!(raced(0, 20.0, [1.0; 4]), (None, 0));
}
