//! How many messages of Arrow are in memory at once: several threads have rows of them, each of
//! which keeps the whole message there.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::interruptible::check;

/// Waited for another thread before the next look whether the user has interrupted.
const WAIT: Duration = Duration::from_millis(50);

/// Those that are left.
pub(super) struct Permits {
    left: Mutex<usize>,
    returned: Condvar,
}

/// The permit to have one, until the last of its rows are done with.
pub(crate) struct Permit(Arc<Permits>);

impl Permits {
    pub(super) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self { left: Mutex::new(count), returned: Condvar::new() })
    }

    /// Waits for one. A thread that waits must have none, so that the others can go on.
    pub(super) fn take(self: &Arc<Self>, interrupted: &AtomicBool) -> io::Result<Arc<Permit>> {
        let mut left = self.left();
        while *left == 0 {
            check(interrupted)?;
            left = self.returned.wait_timeout(left, WAIT).unwrap_or_else(PoisonError::into_inner).0;
        }
        *left -= 1;
        Ok(Arc::new(Permit(self.clone())))
    }

    fn left(&self) -> MutexGuard<'_, usize> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *self.0.left() += 1;
        self.0.returned.notify_one();
    }
}
