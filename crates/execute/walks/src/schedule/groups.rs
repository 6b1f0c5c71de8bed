//! Group prefetching: a group of rows takes every step together.
//!
//! Chen, Ailamaki, Gibbons, Mowry: *Improving Hash Join Performance through Prefetching*, ICDE
//! 2004. A row that finishes early leaves its place in the group idle until the group ends, which
//! is what AMAC and [`Rounds`](super::Rounds) each mend in their way.

use alloc::vec::Vec;

use super::{Pause, Schedule, WIDTH_MAX, announce_first_inputs, announce_input};
use crate::memory::Memory;
use crate::walk::{Rows, Sink, Walk};

/// A group of rows, each live or finished.
#[derive(Debug, Clone)]
pub struct Groups<C> {
    group: Vec<Option<C>>,
    width: usize,
    live: usize,
    started: bool,
}

impl<C> Groups<C> {
    /// An empty group.
    ///
    /// # Panics
    /// Unless `1 <= width <= WIDTH_MAX`.
    #[must_use]
    pub fn new(width: usize) -> Self {
        assert!((1..=WIDTH_MAX).contains(&width), "width {width} is outside 1..={WIDTH_MAX}");
        Self { group: Vec::with_capacity(width), width, live: 0, started: false }
    }
}

impl<W: Walk> Schedule<W> for Groups<W::Cursor> {
    #[inline(always)]
    fn drive<M: Memory, S: Sink<W::Hit>>(
        &mut self,
        walk: &mut W,
        rows: &mut Rows,
        memory: &mut M,
        sink: &mut S,
    ) -> Pause {
        let distance = self.width as u32;
        if !self.started {
            announce_first_inputs(walk, rows, distance, memory);
            self.started = true;
        }
        loop {
            while self.live > 0 {
                if sink.is_full() {
                    return Pause::Full;
                }
                for member in &mut self.group {
                    let Some(cursor) = member else { continue };
                    if let Some(asks) = walk.step(cursor, memory, sink) {
                        memory.fetch_all(&asks, W::INTENT);
                    } else {
                        *member = None;
                        self.live -= 1;
                    }
                }
            }
            self.group.clear();
            while self.group.len() < self.width {
                let Some(row) = rows.next() else { break };
                announce_input(walk, rows, distance, memory);
                let (cursor, asks) = walk.start(row, memory);
                memory.fetch_all(&asks, W::INTENT);
                self.group.push(Some(cursor));
            }
            self.live = self.group.len();
            if self.live == 0 {
                self.started = false;
                return Pause::Drained;
            }
        }
    }
}
