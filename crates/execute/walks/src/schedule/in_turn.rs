//! One row to its end, then the next: the baseline every technique is measured against.

use super::{Pause, Schedule};
use crate::memory::Memory;
use crate::walk::{Rows, Sink, Walk};

/// One row to its end, then the next. Keeps row order.
#[derive(Debug, Clone)]
pub struct InTurn<C> {
    paused: Option<C>,
}

impl<C> InTurn<C> {
    /// Ready for the first row.
    #[must_use]
    pub const fn new() -> Self {
        Self { paused: None }
    }
}

impl<C> Default for InTurn<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: Walk> Schedule<W> for InTurn<W::Cursor> {
    #[inline(always)]
    fn drive<M: Memory, S: Sink<W::Hit>>(
        &mut self,
        walk: &mut W,
        rows: &mut Rows,
        memory: &mut M,
        sink: &mut S,
    ) -> Pause {
        // A resumed row is finished in a loop of its own: in the other one every cursor then comes
        // from `start`, and the compiler turns its states into plain jumps.
        if let Some(mut cursor) = self.paused.take() {
            loop {
                if sink.is_full() {
                    self.paused = Some(cursor);
                    return Pause::Full;
                }
                if walk.step(&mut cursor, memory, sink).is_none() {
                    break;
                }
            }
        }
        while !sink.is_full() {
            let Some(row) = rows.next() else { return Pause::Drained };
            let (mut cursor, _) = walk.start(row, memory);
            // The first step stands before the loop, so that what only it does (a walk's first
            // state is never come back to) is not tested again in every round.
            let mut is_walking = walk.step(&mut cursor, memory, sink).is_some();
            while is_walking {
                if sink.is_full() {
                    self.paused = Some(cursor);
                    return Pause::Full;
                }
                is_walking = walk.step(&mut cursor, memory, sink).is_some();
            }
        }
        Pause::Full
    }
}
