//! The threads of a session.

use std::convert::Infallible;
use std::io;
use std::num::NonZero;
use std::ops::Deref;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::{STACK_BYTES, SessionError};
use crate::LockedFolder;

/// How long operators may take to notice, at the end, that nobody waits for them.
const GRACE: Duration = Duration::from_millis(300);
const CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// Threads that end soon after the session does, also those of an operator that computes for
/// minutes without giving way.
#[derive(Debug)]
pub(super) struct Workers {
    /// Until it is dropped.
    runtime: Option<Runtime>,
    /// Gone after them.
    _spill_folder: Option<LockedFolder>,
}

impl Workers {
    pub(super) fn start(
        threads: NonZero<usize>,
        spill_folder: Option<LockedFolder>,
    ) -> Result<Self, SessionError> {
        let threads = threads.get();
        // Tokio panics where the system refuses one, and waits for those that it has.
        probe(threads + 1).map_err(|source| SessionError::Threads { threads, source })?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            // One more: the clock is looked after by a thread that waits.
            .worker_threads(threads + 1)
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|source| SessionError::Threads { threads, source })?;
        Ok(Self { runtime: Some(runtime), _spill_folder: spill_folder })
    }

    /// Runs work on one of the threads, whose stacks are deep enough for any statement, to its end.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let Ok(done) = self.run_until(work, std::future::pending::<Infallible>());
        done
    }

    /// The same, until `end` says why it has to end before.
    pub(super) fn run_until<T: Send + 'static, E>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        end: impl Future<Output = E>,
    ) -> Result<T, E> {
        let mut task = self.spawn(work);
        let ended = self.block_on(async {
            tokio::select! {
                biased;
                why = end => Err(why),
                done = &mut task => Ok(done),
            }
        });
        match ended {
            Ok(done) => Ok(done.unwrap_or_else(|why| std::panic::resume_unwind(why.into_panic()))),
            Err(why) => {
                task.abort();
                Err(why)
            }
        }
    }
}

/// Whether the system has this many threads; not looked at where each CPU has one.
fn probe(threads: usize) -> io::Result<()> {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    if threads <= cpus + 1 {
        return Ok(());
    }
    let end = OnceLock::new();
    thread::scope(|scope| {
        let wait = || _ = end.wait();
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, wait);
        let all = (0..threads).map(spawn).collect::<io::Result<Vec<_>>>();
        end.get_or_init(|| ());
        all.map(drop)
    })
}

impl Deref for Workers {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken when this is dropped")
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let end = Instant::now() + GRACE;
        // One that is cancelled while another waits for it makes that one panic.
        while runtime.metrics().num_alive_tasks() > 0 && Instant::now() < end {
            thread::sleep(CHECK_INTERVAL);
        }
        runtime.shutdown_timeout(end.saturating_duration_since(Instant::now()));
    }
}
