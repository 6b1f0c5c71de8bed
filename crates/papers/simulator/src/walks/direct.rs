//! A helper that reads the input itself (Zhou et al. 2005, appendix; S4.25).
//!
//! Its operations for each row are recorded, as the main thread's are; whether it executes them is
//! decided in the machine's time: every few rows it reads the main thread's progress, skips the
//! rows that are done, and waits where it is too far ahead.

use std::cell::Cell;
use std::rc::Rc;

use workahead_walks::work_ahead::ROWS_A_CHECK;

use super::helper::Slots;
use super::recorder::{self, Said};
use super::{Shared, Tape, Told};
use crate::op::{After, Op, Script};
use crate::ticks::Ticks;

/// Options of a direct helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// Most rows that it may be ahead.
    pub rows: u32,
    /// Cycles of a pause when it is too far ahead.
    pub pause: u32,
}

/// Micro-operations of a poll: compare, decide.
const LOOK_UOPS: u32 = 6;

/// State of the helper.
#[derive(Debug, Clone, Copy)]
enum At {
    /// Reads the main thread's progress.
    Look,
    /// Compares the progress that it read.
    Seen,
    /// Executes this many rows before the next poll.
    Rows(u32),
}

/// Script of a direct helper.
pub(super) struct DirectScript {
    orders: Ahead,
    tape: Tape,
    /// Rows that the main thread reports as done, and the address of its report.
    passed: Rc<Cell<u32>>,
    progress: u64,
    shared: Shared,
    at: At,
    /// Rows executed or skipped.
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

    /// Skips rows that the main thread has done; false at the end of the input.
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
