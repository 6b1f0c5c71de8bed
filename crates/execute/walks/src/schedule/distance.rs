//! Distance prefetching: row `i` runs to its end while row `i + distance` is announced.
//!
//! ```text
//! ring   …  i  i+1  i+2  …  i+distance-1
//!           ▲ run to its end, then start row i+distance in its place
//! ```
//!
//! The simplest schedule that hides the first miss of every row, and as fast as AMAC on tables of
//! one hop; later hops of a chain are not hidden. Keeps row order.

use alloc::vec::Vec;

use super::{Pause, Schedule, WIDTH_MAX, announce_first_inputs, announce_input};
use crate::memory::Memory;
use crate::walk::{Rows, Sink, Walk};

/// A ring of started rows.
#[derive(Debug, Clone)]
pub struct Distance<C> {
    ring: Vec<C>,
    oldest: usize,
    /// Rows in the ring, from `oldest`; below the ring's length only while the rows run out.
    live: usize,
    distance: usize,
    started: bool,
}

impl<C> Distance<C> {
    /// An empty ring.
    ///
    /// # Panics
    /// Unless `1 <= distance <= WIDTH_MAX`.
    #[must_use]
    pub fn new(distance: usize) -> Self {
        assert!((1..=WIDTH_MAX).contains(&distance), "{distance} is outside 1..={WIDTH_MAX}");
        let ring = Vec::with_capacity(distance);
        Self { ring, oldest: 0, live: 0, distance, started: false }
    }
}

impl<W: Walk> Schedule<W> for Distance<W::Cursor> {
    #[inline(always)]
    fn drive<M: Memory, S: Sink<W::Hit>>(
        &mut self,
        walk: &mut W,
        rows: &mut Rows,
        memory: &mut M,
        sink: &mut S,
    ) -> Pause {
        let distance = self.distance as u32;
        if !self.started {
            announce_first_inputs(walk, rows, distance, memory);
            for row in rows.by_ref().take(self.distance) {
                let (cursor, asks) = walk.start(row, memory);
                memory.fetch_all(&asks, W::INTENT);
                self.ring.push(cursor);
            }
            self.live = self.ring.len();
            self.started = true;
        }
        while self.live > 0 {
            // The oldest row stays in the ring until its end, so a pause needs no place of its own.
            let cursor = &mut self.ring[self.oldest];
            loop {
                if sink.is_full() {
                    return Pause::Full;
                }
                if walk.step(cursor, memory, sink).is_none() {
                    break;
                }
            }
            if let Some(row) = rows.next() {
                announce_input(walk, rows, distance, memory);
                let (next, asks) = walk.start(row, memory);
                memory.fetch_all(&asks, W::INTENT);
                *cursor = next;
            } else {
                self.live -= 1;
            }
            self.oldest += 1;
            if self.oldest == self.ring.len() {
                self.oldest = 0;
            }
        }
        // Ready for the rows of another drive.
        self.ring.clear();
        self.oldest = 0;
        self.started = false;
        Pause::Drained
    }
}
