//! Asynchronous memory access chaining (AMAC): one step of each lane in turn.
//!
//! ```text
//! lanes   0  1  2  3  …          a lane whose row is finished starts the next row at once,
//!         ▲  ───────►  round     so that the number of outstanding misses stays at the width
//! ```
//!
//! Kocberber, Falsafi, Grot: *Asynchronous Memory Access Chaining*, VLDB 2015. With a memory that
//! ignores announcements this is the paper's "staged" operator without its helper.

use alloc::vec::Vec;

use super::{Pause, Schedule, WIDTH_MAX, announce_first_inputs, announce_input};
use crate::memory::Memory;
use crate::walk::{Rows, Sink, Walk};

/// Rows in flight, one a lane.
#[derive(Debug, Clone)]
pub struct Lanes<C> {
    live: Vec<C>,
    width: usize,
    started: bool,
}

impl<C> Lanes<C> {
    /// No row in flight yet.
    ///
    /// # Panics
    /// Unless `1 <= width <= WIDTH_MAX`.
    #[must_use]
    pub fn new(width: usize) -> Self {
        assert!((1..=WIDTH_MAX).contains(&width), "width {width} is outside 1..={WIDTH_MAX}");
        Self { live: Vec::with_capacity(width), width, started: false }
    }
}

impl<W: Walk> Schedule<W> for Lanes<W::Cursor> {
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
        while self.live.len() < self.width {
            let Some(row) = rows.next() else { break };
            announce_input(walk, rows, distance, memory);
            let (cursor, asks) = walk.start(row, memory);
            memory.fetch_all(&asks, W::INTENT);
            self.live.push(cursor);
        }
        while !self.live.is_empty() {
            if sink.is_full() {
                return Pause::Full;
            }
            let mut lane = 0;
            while let Some(cursor) = self.live.get_mut(lane) {
                if let Some(asks) = walk.step(cursor, memory, sink) {
                    memory.fetch_all(&asks, W::INTENT);
                } else if let Some(row) = rows.next() {
                    announce_input(walk, rows, distance, memory);
                    let (next, asks) = walk.start(row, memory);
                    memory.fetch_all(&asks, W::INTENT);
                    *cursor = next;
                } else {
                    self.live.swap_remove(lane);
                    continue;
                }
                lane += 1;
            }
        }
        self.started = false;
        Pause::Drained
    }
}
