//! A request to stop, from anywhere in the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop, set from anywhere (Ctrl-C), checked between and within long runs.
#[derive(Debug, Clone)]
pub struct Stop(Flag);

#[derive(Debug, Clone)]
enum Flag {
    Own(Arc<AtomicBool>),
    /// A signal handler can only reach a static one.
    Static(&'static AtomicBool),
}

impl Stop {
    /// A stop that is not requested yet.
    pub fn new() -> Stop {
        Stop(Flag::Own(Arc::default()))
    }

    /// Requests the stop.
    pub fn request(&self) {
        self.flag().store(true, Ordering::Relaxed);
    }

    /// Whether it was requested.
    pub fn is_requested(&self) -> bool {
        self.flag().load(Ordering::Relaxed)
    }

    /// The flag itself, for code that knows no studies.
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
