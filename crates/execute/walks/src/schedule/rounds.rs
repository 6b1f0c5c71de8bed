//! Vectorised rounds: each round one tight loop over the rows still alive.
//!
//! The vector-at-a-time form of group prefetching (Boncz et al., CIDR 2005): the vector of cursors
//! is compacted while it is stepped, so a later round touches only rows that need it. Wide vectors
//! (about 1024) leave the out-of-order core to overlap the misses of a round by itself.

use alloc::vec::Vec;

use super::{Pause, Schedule, WIDTH_MAX};
use crate::memory::Memory;
use crate::walk::{Rows, Sink, Walk};

/// A vector of live rows.
#[derive(Debug, Clone)]
pub struct Rounds<C> {
    live: Vec<C>,
    width: usize,
}

impl<C> Rounds<C> {
    /// An empty vector.
    ///
    /// # Panics
    /// Unless `1 <= width <= WIDTH_MAX`.
    #[must_use]
    pub fn new(width: usize) -> Self {
        assert!((1..=WIDTH_MAX).contains(&width), "width {width} is outside 1..={WIDTH_MAX}");
        Self { live: Vec::with_capacity(width), width }
    }
}

impl<W: Walk> Schedule<W> for Rounds<W::Cursor> {
    #[inline(always)]
    fn drive<M: Memory, S: Sink<W::Hit>>(
        &mut self,
        walk: &mut W,
        rows: &mut Rows,
        memory: &mut M,
        sink: &mut S,
    ) -> Pause {
        loop {
            while !self.live.is_empty() {
                if sink.is_full() {
                    return Pause::Full;
                }
                let mut kept = 0;
                for member in 0..self.live.len() {
                    let mut cursor = self.live[member];
                    if let Some(asks) = walk.step(&mut cursor, memory, sink) {
                        memory.fetch_all(&asks, W::INTENT);
                        self.live[kept] = cursor;
                        kept += 1;
                    }
                }
                self.live.truncate(kept);
            }
            // The inputs of a whole vector are announced by a loop of their own: the first round.
            for ahead in 0..self.width as u32 {
                match rows.ahead(ahead).and_then(|row| walk.input(row)) {
                    Some(place) => memory.fetch(place, crate::place::Intent::Read),
                    None => break,
                }
            }
            for row in rows.by_ref().take(self.width) {
                let (cursor, asks) = walk.start(row, memory);
                memory.fetch_all(&asks, W::INTENT);
                self.live.push(cursor);
            }
            if self.live.is_empty() {
                return Pause::Drained;
            }
        }
    }
}
