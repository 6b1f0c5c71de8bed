//! A helper that reads the input itself (Zhou et al. 2005, appendix; S4.25).
//!
//! What it does for a row is recorded, as the main thread's doing is; whether it does it is decided
//! in the machine's time: every few rows it reads how far the main thread has come, leaves out what
//! that has passed, and waits where it is too far ahead.

use std::cell::Cell;
use std::rc::Rc;

use workahead_walks::work_ahead::ROWS_A_CHECK;

use super::helper::Slots;
use super::recorder::{self, Said};
use super::{Shared, Tape, Told};
use crate::op::{After, Op, Script};
use crate::ticks::Ticks;

/// What a direct helper is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// Rows that it may be ahead.
    pub rows: u32,
    /// Cycles of a pause where it is.
    pub pause: u32,
}

/// Micro-operations of a look: compare, decide.
const LOOK_UOPS: u32 = 6;

/// Where the helper is.
#[derive(Debug, Clone, Copy)]
enum At {
    /// It reads how far the main thread has come.
    Look,
    /// It has read it, and compares.
    Seen,
    /// It does this many rows more before it looks again.
    Rows(u32),
}

/// The helper's script.
pub(super) struct DirectScript {
    orders: Ahead,
    tape: Tape,
    /// Rows that the main thread says it has passed, and where it says so.
    passed: Rc<Cell<u32>>,
    progress: u64,
    shared: Shared,
    at: At,
    /// Rows done or left out.
    rows: u32,
}

impl DirectScript {
    pub(super) fn new(
        (orders, main): (Ahead, usize),
        told: Told,
        passed: Rc<Cell<u32>>,
        shared: Shared,
    ) -> Self {
        let (tape, progress) = (Tape::of(told), recorder::progress(main));
        Self { orders, tape, passed, progress, shared, at: At::Look, rows: 0 }
    }

    /// Leaves out rows that the main thread has passed; false at the end of the input.
    fn catch_up(&mut self) -> bool {
        while self.rows < self.passed.get() {
            match self.tape.next() {
                None => return false,
                Some(Said::Passed { rows, .. }) => self.rows = rows,
                Some(_) => {}
            }
        }
        true
    }
}

impl Script for DirectScript {
    fn next(&mut self, _: Ticks) -> Option<Op> {
        loop {
            match self.at {
                At::Look => {
                    self.at = At::Seen;
                    let (address, bytes) = (self.progress, Slots::BYTES);
                    let load = Op::Load { address, bytes, after: After::Nothing };
                    return Some(self.shared.pages.borrow_mut().placed(load));
                }
                At::Seen => {
                    if !self.catch_up() {
                        return None;
                    }
                    if self.rows - self.passed.get() >= self.orders.rows {
                        self.shared.helped.borrow_mut().1 += 1;
                        self.at = At::Look;
                        return Some(Op::Pause { cycles: self.orders.pause });
                    }
                    self.at = At::Rows(ROWS_A_CHECK);
                    return Some(Op::Compute { uops: LOOK_UOPS });
                }
                At::Rows(left) => match self.tape.next()? {
                    Said::Op(op) => return Some(self.shared.pages.borrow_mut().placed(op)),
                    Said::Passed { rows, .. } => {
                        self.rows = rows;
                        self.shared.helped.borrow_mut().0 += 1;
                        self.at = if left > 1 { At::Rows(left - 1) } else { At::Look };
                    }
                    Said::Post { .. } => {}
                },
            }
        }
    }
}
