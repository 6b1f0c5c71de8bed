//! Statements that may take long, cancelled when the run is stopped.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use workahead_study::engine::Stop;

use crate::connector::Connection;
use crate::server::Error;

/// How often a stop is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The pause between two requests to cancel grows up to this.
const CANCEL_EVERY_MAX: Duration = Duration::from_secs(1);

/// Runs statements, cancelled when the run is stopped; none where it is already.
///
/// # Errors
/// [`Error::Stopped`], whatever became of them.
pub(crate) fn until_stopped<T>(
    connection: &mut dyn Connection,
    stop: &Stop,
    statements: impl FnOnce(&mut dyn Connection) -> T,
) -> Result<T, Error> {
    if stop.is_requested() {
        return Err(Error::Stopped);
    }
    let (cancel, over) = (connection.cancel(), AtomicBool::new(false));
    let found = std::thread::scope(|scope| {
        let stopping = scope.spawn(|| {
            let mut pause = LOOK_EVERY;
            while !over.load(Ordering::Relaxed) {
                if stop.is_requested() {
                    // Each is a connection of its own.
                    cancel();
                    pause = (2 * pause).min(CANCEL_EVERY_MAX);
                }
                std::thread::park_timeout(pause);
            }
        });
        let found = statements(connection);
        over.store(true, Ordering::Relaxed);
        stopping.thread().unpark();
        found
    });
    if stop.is_requested() { Err(Error::Stopped) } else { Ok(found) }
}
