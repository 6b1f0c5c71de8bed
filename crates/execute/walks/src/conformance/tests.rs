//! The kit finds a walk that sins against each law, and lets the same walk pass without the sin.

use std::cell::Cell;

use super::*;
use crate::memory::Memory;
use crate::place::{Intent, Place};
use crate::walk::Sink;

/// The law that a walk breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sin {
    None,
    ReadsTheNeighbour,
    ReadsAtTheStart,
    WritesItsInput,
    EmitsTwice,
    EmitsForAnother,
    CarriesTheCount,
    Allocates,
    NeverEnds,
    CountsItsSteps,
}

/// Counts keys: a step reads a key's count, the next writes it and emits the key.
struct Histogram {
    keys: Vec<u64>,
    counts: Vec<u64>,
    steps: u64,
    sin: Sin,
}

#[derive(Clone, Copy)]
struct Cursor {
    row: Row,
    /// The count that was read: not to be trusted a step later.
    count: Option<u64>,
}

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn allocations() -> u64 {
    ALLOCATIONS.get()
}

const KEYS: usize = 5;
const ROWS: Row = 60;

fn histogram(sin: Sin) -> Histogram {
    let keys = (0..u64::from(ROWS)).map(|row| row * row % KEYS as u64).collect();
    Histogram { keys, counts: vec![0; KEYS + 1], steps: 0, sin }
}

impl Walk for Histogram {
    const INTENT: Intent = Intent::Write;
    type Cursor = Cursor;
    type Hit = u64;
    type Asks = Place;

    fn start<M: Memory>(&mut self, row: Row, memory: &mut M) -> (Cursor, Place) {
        let key = *memory.read_hot(&self.keys[row as usize]) as usize;
        if self.sin == Sin::ReadsAtTheStart {
            memory.read(&self.counts[key]);
        }
        (Cursor { row, count: None }, Place::of(&self.counts[key]))
    }

    fn step<M: Memory, S: Sink<u64>>(
        &mut self,
        cursor: &mut Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Place> {
        self.steps += 1;
        let row = cursor.row as usize;
        let key = *memory.read_hot(&self.keys[row]) as usize;
        let now = *memory.read(&self.counts[key]);
        let Some(before) = cursor.count else {
            cursor.count = Some(now);
            return Some(Place::of(&self.counts[key]));
        };
        let mut hit = key as u64;
        match self.sin {
            Sin::ReadsTheNeighbour => _ = memory.read(&self.counts[key + 1]),
            Sin::WritesItsInput => memory.write(&mut self.keys[row], hit),
            Sin::EmitsTwice => sink.emit(cursor.row, hit),
            Sin::Allocates => ALLOCATIONS.set(ALLOCATIONS.get() + 1),
            Sin::NeverEnds => return Some(Place::of(&self.counts[key])),
            Sin::CountsItsSteps => hit = self.steps,
            _ => {}
        }
        let count = if self.sin == Sin::CarriesTheCount { before } else { now };
        memory.write(&mut self.counts[key], count + 1);
        let other = u32::from(self.sin == Sin::EmitsForAnother);
        sink.emit(cursor.row + other, hit);
        None
    }
}

/// Every key once, and their counts in the end.
fn oracle(walk: Histogram, hits: Vec<(Row, u64)>) -> Result<(), String> {
    // The hits of a walk that counts its own steps, by row: right as long as nobody interleaves.
    let steps = (1..=u64::from(ROWS)).map(|row| row * 2);
    let keys: Vec<u64> = match walk.sin {
        Sin::CountsItsSteps => steps.collect(),
        _ => walk.keys.clone(),
    };
    let expected: Vec<(Row, u64)> = (0..).zip(keys).collect();
    hits_equal(&expected, hits)?;
    for key in 0..KEYS as u64 {
        let rows = walk.keys.iter().filter(|other| **other == key).count() as u64;
        let count = walk.counts[key as usize];
        if rows != count {
            return Err(format!("key {key} counts {count} of {rows} rows"));
        }
    }
    Ok(())
}

fn hits_equal(expected: &[(Row, u64)], found: Vec<(Row, u64)>) -> Result<(), String> {
    hits::<Histogram, u64>(expected, |hit| hit)(histogram(Sin::None), found)
}

fn verdict(sin: Sin) -> Result<(), Violation> {
    let kit = Kit::usual().counting(allocations).widths(&[1, 7, 64]);
    kit.check(|| histogram(sin), Rows::range(0..ROWS), oracle)
}

#[test]
fn a_walk_without_sin_passes() {
    assert_eq!(verdict(Sin::None), Ok(()));
}

#[test]
fn every_sin_is_found_under_its_law() {
    for (sin, law, says) in [
        (Sin::ReadsTheNeighbour, Law::OnlyTheRequested, "reads 8 bytes"),
        (Sin::ReadsAtTheStart, Law::OnlyTheRequested, "when it starts"),
        (Sin::WritesItsInput, Law::OnlyTheRequested, "writes 8 bytes"),
        (Sin::EmitsTwice, Law::OneHitAStep, "emits 2 hits"),
        (Sin::EmitsForAnother, Law::OneHitAStep, "emits a hit of row 1"),
        (Sin::CarriesTheCount, Law::PlacesNotFacts, "counts"),
        (Sin::Allocates, Law::RunToCompletion, "makes 1 allocations"),
        (Sin::NeverEnds, Law::RunToCompletion, "was not finished"),
        (Sin::CountsItsSteps, Law::PlacesNotFacts, "the first that differs"),
    ] {
        let broken = verdict(sin).expect_err("a sin");
        assert_eq!(broken.law, law, "{sin:?}: {broken}");
        assert!(broken.what.contains(says), "{sin:?}: {broken}");
    }
}

#[test]
fn a_message_names_the_law_by_number_and_the_drive() {
    let broken = verdict(Sin::EmitsTwice).unwrap_err().to_string();
    assert_eq!(broken, "law 2, one hit a step: a step of row 0 emits 2 hits (driven row by row)");
}

#[test]
fn missing_hits_more_hits_and_other_hits_are_reported() {
    let expected = [(0, 3_u64), (1, 4)];
    let error = |found: &[(Row, u64)]| hits_equal(&expected, found.to_vec()).unwrap_err();
    assert_eq!(error(&[(0, 3)]), "1 hits, expected 2; the first that differs is none, not (1, 4)");
    assert_eq!(
        error(&[(0, 3), (1, 4), (1, 4)]),
        "3 hits, expected 2; the first that differs is (1, 4), not none"
    );
    assert!(error(&[(0, 3), (1, 5)]).contains("is (1, 5), not (1, 4)"));
    assert_eq!(hits_equal(&expected, vec![(1, 4), (0, 3)]), Ok(()));
}
