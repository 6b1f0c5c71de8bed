//! When to stop: the time is up, or the user requested it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::Error;

/// A moment by which a phase should have ended, and the flag that ends everything.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline<'a> {
    pub(super) at: Instant,
    pub(super) stop: &'a AtomicBool,
}

impl Deadline<'_> {
    /// The same flag, and so much time from now.
    pub(super) fn within(self, time: Duration) -> Self {
        Self { at: Instant::now() + time, ..self }
    }

    /// Whether the time is up.
    pub(super) fn passed(self) -> bool {
        Instant::now() >= self.at
    }

    /// An error once the user requested a stop.
    pub(super) fn check(self) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
    }
}
