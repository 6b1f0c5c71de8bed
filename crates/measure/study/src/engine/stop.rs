//! A request to stop, from anywhere in the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop, set from anywhere (Ctrl-C), looked at between and inside long runs.
#[derive(Debug, Clone)]
pub struct Stop(Flag);

#[derive(Debug, Clone)]
enum Flag {
    Own(Arc<AtomicBool>),
    /// A signal handler can only reach a static one.
    Static(&'static AtomicBool),
}

impl Stop {
    /// Nothing asked for yet.
    pub fn new() -> Stop {
        Stop(Flag::Own(Arc::default()))
    }

    /// Asks everyone to stop.
    pub fn ask(&self) {
        self.flag().store(true, Ordering::Relaxed);
    }

    /// Whether someone asked.
    pub fn asked(&self) -> bool {
        self.flag().load(Ordering::Relaxed)
    }

    /// What is raised, for those who know nothing of studies.
    pub fn flag(&self) -> &AtomicBool {
        match &self.0 {
            Flag::Own(flag) => flag,
            Flag::Static(flag) => flag,
        }
    }
}

impl Default for Stop {
    fn default() -> Stop {
        Stop::new()
    }
}

impl From<&'static AtomicBool> for Stop {
    fn from(flag: &'static AtomicBool) -> Stop {
        Stop(Flag::Static(flag))
    }
}
