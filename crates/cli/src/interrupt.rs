//! Ctrl-C, SIGTERM and SIGHUP: the first signal requests the command to stop, the second stops it.
//!
//! Long commands check the flag between pieces of work, remove unfinished files, and return
//! [`Interrupted`]. A file gets its final name only when it is complete, so even the second signal,
//! which exits at once, leaves only files with temporary names; it restores the machine's settings
//! first.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use nix::sys::signal::{SigSet, Signal};
use workahead_machine::pipe;

use crate::{password, settings};

static STOP_REQUESTED: AtomicBool = AtomicBool::new(false);
/// Whether what was to stop has stopped, and the command goes on with what it has.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// A stop was requested.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Whether a stop was requested.
pub(crate) fn is_requested() -> bool {
    STOP_REQUESTED.load(Ordering::Relaxed)
}

/// The error of a command: whatever it was doing when it was interrupted, that is why it failed.
pub(crate) fn named(error: anyhow::Error) -> anyhow::Error {
    if is_requested() { Interrupted.into() } else { error }
}

/// Has a command whose first signal, if there was one, only ended what it counted write that down:
/// who reads a pipe is waited for until the next one.
pub(crate) fn go_on() {
    STOPPED.store(is_requested(), Ordering::Relaxed);
}

fn ends_waits() -> bool {
    is_requested() && !STOPPED.load(Ordering::Relaxed)
}

/// Starts listening. Returns the flag to check between pieces of work.
pub(crate) fn listen() -> anyhow::Result<&'static AtomicBool> {
    ctrlc::set_handler(|| {
        if STOP_REQUESTED.swap(true, Ordering::Relaxed) {
            password::restore_terminal();
            settings::restore_before_exit();
            std::process::exit(1);
        }
    })
    .context("can't listen for Ctrl-C")?;
    workahead_engines::wait_until(is_requested);
    pipe::wait_until(ends_waits);
    Ok(&STOP_REQUESTED)
}

/// Signals that wait for somebody who listens, until this is dropped.
#[must_use]
pub(crate) struct HeldSignals(SigSet);

/// Lets signals to this thread wait, where a command can't listen yet: listening takes a thread.
/// Nothing long may happen meanwhile.
pub(crate) fn hold() -> anyhow::Result<HeldSignals> {
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
    let before = SigSet::thread_get_mask();
    before
        .and_then(|before| signals.thread_block().map(|()| HeldSignals(before)))
        .context("can't let signals wait")
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // It is a mask that this thread had.
        let _ = self.0.thread_set_mask();
    }
}
