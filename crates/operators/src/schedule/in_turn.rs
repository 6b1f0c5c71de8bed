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
        loop {
            if sink.is_full() {
                return Pause::Full;
            }
            let mut cursor = match self.paused.take() {
                Some(cursor) => cursor,
                None => match rows.next() {
                    Some(row) => walk.start(row, memory).0,
                    None => return Pause::Drained,
                },
            };
            while walk.step(&mut cursor, memory, sink).is_some() {
                if sink.is_full() {
                    self.paused = Some(cursor);
                    return Pause::Full;
                }
            }
        }
    }
}
