//! A helper that reads the input itself (Zhou et al. 2005, appendix; S4.25).
//!
//! Its operations for each row are recorded, as the main thread's are; whether it executes them is
//! decided in the machine's time: every few rows it reads the main thread's progress, skips the
//! rows that are done, and waits where it is too far ahead.

use std::cell::Cell;
use std::rc::Rc;

use workahead_walks::work_ahead::ROWS_A_CHECK;

use super::helper::Slots;
use super::recorder::{self, Event};
use super::{RecordingReceiver, Replay, SharedState};
use crate::op::{Dependence, Op, Script};
use crate::ticks::Ticks;

/// Options of a direct helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectHelperOptions {
    /// Most rows that it may be ahead.
    pub rows: u32,
    /// Cycles of a pause when it is too far ahead.
    pub pause: u32,
}

/// Micro-operations of a poll: compare, decide.
const LOOK_UOPS: u32 = 6;

/// State of the helper.
#[derive(Debug, Clone, Copy)]
enum State {
    /// Reads the main thread's progress.
    Look,
    /// Compares the progress that it read.
    Seen,
    /// Executes this many rows before the next poll.
    Rows(u32),
}

/// Script of a direct helper.
pub(super) struct DirectScript {
    options: DirectHelperOptions,
    replay: Replay,
    /// Rows that the main thread reports as done, and the address of its report.
    passed: Rc<Cell<u32>>,
    progress: u64,
    shared: SharedState,
    state: State,
    /// Rows executed or skipped.
    rows: u32,
}

impl DirectScript {
    pub(super) fn new(
        options: DirectHelperOptions,
        main: usize,
        recording: RecordingReceiver,
        passed: Rc<Cell<u32>>,
        shared: SharedState,
    ) -> Self {
        let (replay, progress) = (Replay::of(recording), recorder::progress(main));
        Self { options, replay, passed, progress, shared, state: State::Look, rows: 0 }
    }

    /// Skips rows that the main thread has done; false at the end of the input.
    fn catch_up(&mut self) -> bool {
        while self.rows < self.passed.get() {
            match self.replay.next() {
                None => return false,
                Some(Event::RowsDone { rows, .. }) => self.rows = rows,
                Some(_) => {}
            }
        }
        true
    }
}

impl Script for DirectScript {
    fn next(&mut self, _: Ticks) -> Option<Op> {
        loop {
            match self.state {
                State::Look => {
                    self.state = State::Seen;
                    let (address, bytes) = (self.progress, Slots::BYTES);
                    let load = Op::Load { address, bytes, after: Dependence::None };
                    return Some(self.shared.pages.borrow_mut().placed(load));
                }
                State::Seen => {
                    if !self.catch_up() {
                        return None;
                    }
                    if self.rows - self.passed.get() >= self.options.rows {
                        self.shared.helper_counts.borrow_mut().waits += 1;
                        self.state = State::Look;
                        return Some(Op::Pause { cycles: self.options.pause });
                    }
                    self.state = State::Rows(ROWS_A_CHECK);
                    return Some(Op::Compute { uops: LOOK_UOPS });
                }
                State::Rows(left) => match self.replay.next()? {
                    Event::Op(op) => return Some(self.shared.pages.borrow_mut().placed(op)),
                    Event::RowsDone { rows, .. } => {
                        self.rows = rows;
                        self.shared.helper_counts.borrow_mut().entries += 1;
                        self.state = if left > 1 { State::Rows(left - 1) } else { State::Look };
                    }
                    Event::Post { .. } => {}
                },
            }
        }
    }
}
