//! Law 4: a step allocates nothing.

use super::Law;
use super::interleave::{Fault, Watch};
use crate::memory::Direct;
use crate::walk::{Row, Sink, Walk};

/// A watch over the allocations of the calling thread.
pub(super) struct AllocationWatch {
    allocations: fn() -> u64,
}

impl AllocationWatch {
    /// By a count of the allocations so far.
    pub(super) fn by(allocations: fn() -> u64) -> Self {
        Self { allocations }
    }

    fn none_in<R>(&self, row: Row, part: &str, run: impl FnOnce() -> R) -> Result<R, Fault> {
        let before = (self.allocations)();
        let result = run();
        let made = (self.allocations)() - before;
        if made > 0 {
            let what = format!("{part} of row {row} makes {made} allocations");
            return Err(Fault { law: Law::RunToCompletion, what });
        }
        Ok(result)
    }
}

/// Takes hits and keeps none: a growing list would allocate in the walk's name.
struct Forget;

impl<H> Sink<H> for Forget {
    fn emit(&mut self, _: Row, _: H) {}
}

impl<W: Walk> Watch<W> for AllocationWatch {
    fn start(&mut self, walk: &mut W, row: Row) -> Result<W::Cursor, Fault> {
        let (cursor, _) = self.none_in(row, "the start", || walk.start(row, &mut Direct))?;
        Ok(cursor)
    }

    fn step(&mut self, walk: &mut W, row: Row, cursor: &mut W::Cursor) -> Result<bool, Fault> {
        let step = || walk.step(cursor, &mut Direct, &mut Forget).is_some();
        self.none_in(row, "a step", step)
    }
}
