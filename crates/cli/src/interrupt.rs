//! Ctrl-C, SIGTERM and SIGHUP: the first asks the command to stop, the second stops it.
//!
//! Long commands look at the flag between pieces of work, remove what they have not finished, and
//! return [`Interrupted`]. Nothing is ever under its final name before it is complete, so even the
//! second one, which leaves at once, loses only files with a temporary name; settings of the
//! machine are put back before it leaves.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use crate::settings;

static ASKED: AtomicBool = AtomicBool::new(false);

/// A stop was requested.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Starts listening. Returns the flag to look at between pieces of work.
pub(crate) fn listen() -> anyhow::Result<&'static AtomicBool> {
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            settings::restore_before_exit();
            std::process::exit(1);
        }
    })
    .context("can't listen for Ctrl-C")?;
    Ok(&ASKED)
}
