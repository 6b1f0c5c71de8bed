//! Interleaving by coroutine: each lane is a future that yields after every announcement.
//!
//! ```text
//! async lane   while a row is left: start, announce, yield; while it asks: step, announce, yield
//! drive        polls lane 0, 1, 2, … in rounds
//! ```
//!
//! Psaropoulos, Legler, May, Ailamaki: *Interleaving with Coroutines*, VLDB 2017; He, Lu, Wang:
//! *CoroBase*, VLDB 2020. The schedule is that of [`Lanes`](super::Lanes), and so are its misses:
//! what differs is who keeps the state. There a step is a function of a cursor; here the compiler
//! makes a state machine of straight code, as it would of an operator written without any thought
//! of steps. So this measures what the language's `async` costs, no more: a suspension writes the
//! live variables back to the lane's future, a resumption jumps by its state, and the drive's
//! shared parts are behind a [`RefCell`], since a future cannot be lent them anew at every poll.
//!
//! No executor, no waker, no allocation for a row: one boxed future a lane for a whole drive. A
//! full sink ends the futures, which leave their cursors behind for the next drive.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use super::{Pause, Schedule, WIDTH_MAX, announce_first_inputs, announce_input};
use crate::memory::Memory;
use crate::walk::{Rows, Sink, Walk};

/// Rows in flight, one a future.
#[derive(Debug, Clone)]
pub struct Coroutines<C> {
    /// Rows in flight when the last drive was paused.
    paused: Vec<C>,
    width: usize,
    started: bool,
}

impl<C> Coroutines<C> {
    /// No row in flight yet.
    ///
    /// # Panics
    /// Unless `1 <= width <= WIDTH_MAX`.
    #[must_use]
    pub fn new(width: usize) -> Self {
        assert!((1..=WIDTH_MAX).contains(&width), "width {width} is outside 1..={WIDTH_MAX}");
        Self { paused: Vec::with_capacity(width), width, started: false }
    }
}

/// The state that the lanes of a drive share.
struct DriveState<'d, W: Walk, M, S> {
    walk: &'d mut W,
    rows: &'d mut Rows,
    memory: &'d mut M,
    sink: &'d mut S,
    /// Rows to be resumed, then rows that were paused.
    paused: &'d mut Vec<W::Cursor>,
    /// Whether lanes are to leave their rows there and end.
    pausing: bool,
    distance: u32,
}

impl<W: Walk, M: Memory, S: Sink<W::Hit>> DriveState<'_, W, M, S> {
    #[inline(always)]
    fn start(&mut self) -> Option<W::Cursor> {
        let row = self.rows.next()?;
        announce_input(self.walk, self.rows, self.distance, self.memory);
        let (cursor, asks) = self.walk.start(row, self.memory);
        self.memory.fetch_all(&asks, W::INTENT);
        Some(cursor)
    }

    /// Whether the row goes on.
    #[inline(always)]
    fn step(&mut self, cursor: &mut W::Cursor) -> bool {
        let asks = self.walk.step(cursor, self.memory, self.sink);
        if let Some(asks) = &asks {
            self.memory.fetch_all(asks, W::INTENT);
        }
        asks.is_some()
    }
}

/// Ready at the second poll.
struct Yield {
    yielded: bool,
}

impl Future for Yield {
    type Output = ();
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if core::mem::replace(&mut self.yielded, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// One lane: row after row, until there are none or the drive pauses.
async fn lane<W: Walk, M: Memory, S: Sink<W::Hit>>(shared: &RefCell<DriveState<'_, W, M, S>>) {
    let mut resumed = shared.borrow_mut().paused.pop();
    loop {
        let next = resumed.take().or_else(
            #[inline(always)]
            || shared.borrow_mut().start(),
        );
        let Some(mut cursor) = next else { return };
        loop {
            Yield { yielded: false }.await;
            let shared = &mut *shared.borrow_mut();
            if shared.pausing {
                shared.paused.push(cursor);
                return;
            }
            if !shared.step(&mut cursor) {
                break;
            }
        }
    }
}

impl<W: Walk> Schedule<W> for Coroutines<W::Cursor> {
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
        let paused = &mut self.paused;
        let shared = DriveState { walk, rows, memory, sink, paused, pausing: false, distance };
        let shared = RefCell::new(shared);
        let mut lanes: Vec<_> = (0..self.width).map(|_| Box::pin(lane(&shared))).collect();
        let context = &mut Context::from_waker(Waker::noop());
        // The first round resumes or starts a row in each lane; none is stepped yet. (One place
        // that polls, so that the futures are compiled into this drive and its instruction set.)
        let mut begun = false;
        while !lanes.is_empty() {
            let full = begun && shared.borrow().sink.is_full();
            shared.borrow_mut().pausing = full;
            begun = true;
            let mut at = 0;
            while let Some(lane) = lanes.get_mut(at) {
                if lane.as_mut().poll(context).is_pending() {
                    at += 1;
                } else {
                    drop(lanes.swap_remove(at));
                }
            }
            if full {
                return Pause::Full;
            }
        }
        Pause::Drained
    }
}
