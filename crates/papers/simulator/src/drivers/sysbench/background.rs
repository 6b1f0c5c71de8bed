//! An endless background loop over the same bytes.

use std::cell::Cell;
use std::rc::Rc;

use super::memory::{ELEMENT_UOPS, LINE};
use crate::op::{Dependence, Op, Script};

/// Elements of a line: `int`s.
const ELEMENTS: u32 = LINE as u32 / 4;

/// Number of lines that a loop has touched.
pub type Lines = Rc<Cell<u64>>;

/// A loop that reads `bytes` bytes from `base` on, and its progress.
#[must_use]
pub fn background(base: u64, bytes: u64) -> (Box<dyn Script>, Lines) {
    let touched = Lines::default();
    let counts = Rc::clone(&touched);
    let lines = (base..base + bytes.max(LINE)).step_by(LINE as usize).cycle();
    let line = move |address| {
        counts.set(counts.get() + 1);
        let read = Op::Load { address, bytes: LINE as u16, after: Dependence::None };
        [Op::Compute { uops: ELEMENTS * ELEMENT_UOPS - 1 }, read]
    };
    (Box::new(lines.flat_map(line)), touched)
}
