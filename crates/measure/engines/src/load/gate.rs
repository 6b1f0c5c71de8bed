//! Where clients wait for each other and for the end.
//!
//! ```text
//! Connecting ─► Warming ─► Measuring ─► Over
//!      └────────────┴──────────┴─ stop, error, server gone: over at once
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{End, LoadError};

/// The phase of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// They connect.
    Connecting,
    /// They run uncounted until this moment.
    Warming(Instant),
    /// They run, since this moment.
    Measuring(Instant),
    /// They leave.
    Over,
}

type Cancel = Arc<dyn Fn() + Send + Sync>;

pub(super) struct Gate {
    state: Mutex<State>,
    /// Clients wait for the next phase, and through their pauses.
    opened: Condvar,
    /// The conductor waits for clients.
    came: Condvar,
    /// Looked at between transactions, without the lock.
    over: AtomicBool,
}

struct State {
    phase: Phase,
    arrived: usize,
    left: usize,
    /// The first reason to end early.
    end: Option<Result<End, LoadError>>,
    cancels: Vec<Option<Cancel>>,
}

impl Gate {
    pub(super) fn new(clients: u32) -> Gate {
        let cancels = (0..clients).map(|_| None).collect();
        let state = State { phase: Phase::Connecting, arrived: 0, left: 0, end: None, cancels };
        Gate {
            state: Mutex::new(state),
            opened: Condvar::new(),
            came: Condvar::new(),
            over: AtomicBool::new(false),
        }
    }

    /// Every change is one assignment, so a panic leaves the state consistent.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // The conductor's side.

    /// Waits until `clients` have arrived; false when it is over before.
    pub(super) fn gather(
        &self,
        clients: usize,
        look_every: Duration,
        stop: impl Fn() -> bool,
    ) -> bool {
        let mut state = self.state();
        loop {
            if state.end.is_some() {
                return false;
            }
            if stop() {
                drop(state);
                self.finish(Ok(End::Stopped));
                return false;
            }
            if state.arrived == clients {
                state.arrived = 0;
                return true;
            }
            let waited = self.came.wait_timeout(state, look_every);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lets the clients into a phase.
    pub(super) fn open(&self, phase: Phase) {
        let mut state = self.state();
        state.phase = phase;
        if phase == Phase::Over {
            self.over.store(true, Ordering::Relaxed);
        }
        self.opened.notify_all();
    }

    /// Waits a while for the clients to leave; whether all have.
    pub(super) fn all_left(&self, clients: usize, at_most: Duration) -> bool {
        let state = self.state();
        let waiting = |state: &mut State| state.left < clients;
        let waited = self.came.wait_timeout_while(state, at_most, waiting);
        waited.unwrap_or_else(PoisonError::into_inner).0.left == clients
    }

    /// Cancels the statements of clients that have not left.
    pub(super) fn cancel(&self) {
        let clients = self.state().cancels.len();
        for client in 0..clients {
            // Looked at anew: each is a connection of its own, and many clients leave meanwhile.
            let cancel = self.state().cancels[client].clone();
            // Without the lock.
            if let Some(cancel) = cancel {
                cancel();
            }
        }
    }

    /// How it ended.
    pub(super) fn end(self) -> Result<End, LoadError> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.end.unwrap_or(Ok(End::Done))
    }

    // The clients' side.

    /// Whether to leave.
    pub(super) fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Stores the function that cancels a client's statements.
    pub(super) fn entered(&self, client: u32, cancel: Cancel) {
        if let Some(slot) = self.state().cancels.get_mut(client as usize) {
            *slot = Some(cancel);
        }
    }

    /// Reports that a client has finished a phase, and waits for the next.
    pub(super) fn next_phase(&self) -> Phase {
        let mut state = self.state();
        let before = state.phase;
        state.arrived += 1;
        self.came.notify_one();
        while state.phase == before && state.end.is_none() {
            state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.end.is_some() { Phase::Over } else { state.phase }
    }

    /// Waits until a moment, or the end.
    pub(super) fn pause_until(&self, moment: Instant) {
        let mut state = self.state();
        while state.end.is_none() {
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.opened.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends it for all with an error.
    pub(super) fn fail(&self, error: LoadError) {
        self.finish(Err(error));
    }

    /// Ends it for all; the first reason counts.
    pub(super) fn finish(&self, end: Result<End, LoadError>) {
        let mut state = self.state();
        state.end.get_or_insert(end);
        self.over.store(true, Ordering::Relaxed);
        self.opened.notify_all();
        self.came.notify_one();
    }

    /// A client leaves.
    pub(super) fn leave(&self, client: u32) {
        let mut state = self.state();
        state.left += 1;
        if let Some(slot) = state.cancels.get_mut(client as usize) {
            *slot = None;
        }
        self.came.notify_one();
    }
}
