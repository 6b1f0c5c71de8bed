//! Interleavings that know whose step it is, and that are harder on a walk than any schedule.

use std::fmt;

use super::{Law, STEPS_MOST, Violation};
use crate::random::Random;
use crate::walk::{Row, Rows, Walk};

/// Which of the rows in flight takes the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// One after the other.
    LockStep,
    /// The one that was started last: those started first wait until no row is left to start, and
    /// whatever they remember is as old as it can be.
    NewestFirst,
    /// Any, drawn from a seed.
    Drawn,
}

/// An order of the steps of many rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    turn: Turn,
    /// Rows in flight.
    pub(super) width: usize,
}

impl Order {
    /// Every order with a given number of rows in flight.
    pub(super) fn all_of(width: usize) -> impl Iterator<Item = Self> {
        // Of one row at a time there is one order.
        let turns = if width == 1 { 1 } else { 3 };
        let all = [Turn::LockStep, Turn::NewestFirst, Turn::Drawn];
        all.into_iter().take(turns).map(move |turn| Self { turn, width })
    }
}

impl fmt::Display for Order {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.width, self.turn) {
            (1, _) => write!(out, "row by row"),
            (width, Turn::LockStep) => write!(out, "{width} rows in lock step"),
            (width, Turn::NewestFirst) => write!(out, "{width} rows, the newest first"),
            (width, Turn::Drawn) => write!(out, "{width} rows in drawn order"),
        }
    }
}

/// Takes the steps of a walk and sees what they do.
pub(super) trait Watch<W: Walk> {
    /// Starts a row.
    fn start(&mut self, walk: &mut W, row: Row) -> Result<W::Cursor, Fault>;
    /// Takes a step of a row; whether it is to take another.
    fn step(&mut self, walk: &mut W, row: Row, cursor: &mut W::Cursor) -> Result<bool, Fault>;
}

/// A law that was seen to be broken, by whatever order.
pub(super) struct Fault {
    pub(super) law: Law,
    pub(super) what: String,
}

/// A row in flight.
struct Live<C> {
    row: Row,
    cursor: C,
    steps: u32,
}

/// Drives all rows of a walk in an order.
pub(super) fn interleave<W: Walk>(
    walk: &mut W,
    mut rows: Rows,
    order: Order,
    watch: &mut impl Watch<W>,
) -> Result<(), Violation> {
    let broken = |fault: Fault| {
        let Fault { law, what } = fault;
        Violation { law, drive: order.to_string(), what }
    };
    let mut live = Vec::<Live<W::Cursor>>::with_capacity(order.width);
    let mut random = Random::of(order.width as u64);
    let mut turn = 0;
    loop {
        while live.len() < order.width {
            let Some(row) = rows.next() else { break };
            let cursor = watch.start(walk, row).map_err(broken)?;
            live.push(Live { row, cursor, steps: 0 });
        }
        if live.is_empty() {
            return Ok(());
        }
        let at = match order.turn {
            Turn::LockStep => turn % live.len(),
            Turn::NewestFirst => live.len() - 1,
            Turn::Drawn => random.below(live.len() as u32) as usize,
        };
        turn = at + 1;
        let Live { row, cursor, steps } = &mut live[at];
        *steps += 1;
        if *steps > STEPS_MOST {
            let what = format!("row {row} was not finished after {STEPS_MOST} steps");
            return Err(broken(Fault { law: Law::RunToCompletion, what }));
        }
        if !watch.step(walk, *row, cursor).map_err(broken)? {
            live.remove(at);
            turn = at;
        }
    }
}
