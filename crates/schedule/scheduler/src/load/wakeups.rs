//! Messengers and workers, as schbench (Mason 2016) has them: how late is a thread that was woken?
//!
//! ```text
//!   messenger  takes the workers that are done ─► notes the time, wakes each ─► parks
//!   worker     parks ─► woken: late by now − noted ─► spins ─► is done, wakes its messenger
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use super::{Clock, LoadResult, Phase, SPIN, spin};

const MESSENGERS: usize = 2;
/// A parked thread sees the end of the window within this.
const PARK: Duration = Duration::from_millis(50);

/// A worker that waits.
struct Worker {
    thread: Thread,
    /// When it was woken, nanoseconds since the start; 0 while it is to wait.
    woken_at: AtomicU64,
}

/// A messenger, and the workers that are done.
struct Team<'a> {
    messenger: Thread,
    done: Mutex<Vec<Arc<Worker>>>,
    clock: &'a Clock,
}

/// Runs messengers with all workers between them.
pub(super) fn run(workers: usize, clock: &Clock) -> std::io::Result<LoadResult> {
    let each = workers.div_ceil(MESSENGERS);
    let teams = thread::scope(|scope| {
        let teams: Vec<_> = (0..MESSENGERS)
            .map(|_| thread::Builder::new().spawn_scoped(scope, || Team::run(each, clock)))
            .collect();
        let ended = |team: std::io::Result<thread::ScopedJoinHandle<'_, _>>| {
            team?.join().unwrap_or_else(|_| Err(std::io::Error::other("a messenger panicked")))
        };
        teams.into_iter().map(ended).collect::<std::io::Result<Vec<LoadResult>>>()
    })?;
    let mut done = LoadResult::default();
    teams.into_iter().for_each(|team| done.add(team));
    Ok(done)
}

impl Team<'_> {
    fn run(workers: usize, clock: &Clock) -> std::io::Result<LoadResult> {
        let team = Team { messenger: thread::current(), done: Mutex::default(), clock };
        thread::scope(|scope| {
            let workers = (0..workers)
                .map(|_| thread::Builder::new().spawn_scoped(scope, || team.work()))
                .collect::<std::io::Result<Vec<_>>>()?;
            team.send();
            let mut done = LoadResult::default();
            workers.into_iter().flat_map(|worker| worker.join()).for_each(|one| done.add(one));
            Ok(done)
        })
    }

    fn ns(&self) -> u64 {
        u64::try_from(self.clock.start.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    fn done(&self) -> MutexGuard<'_, Vec<Arc<Worker>>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self) {
        while self.clock.now() != Phase::Over {
            let done = std::mem::take(&mut *self.done());
            if done.is_empty() {
                thread::park_timeout(PARK);
            }
            for worker in done {
                worker.woken_at.store(self.ns(), Ordering::Release);
                worker.thread.unpark();
            }
        }
    }

    fn work(&self) -> LoadResult {
        let mut counted = LoadResult::default();
        let me = Arc::new(Worker { thread: thread::current(), woken_at: AtomicU64::new(0) });
        loop {
            self.done().push(Arc::clone(&me));
            self.messenger.unpark();
            let woken_at = loop {
                match me.woken_at.swap(0, Ordering::Acquire) {
                    0 if self.clock.now() == Phase::Over => return counted,
                    0 => thread::park_timeout(PARK),
                    at => break at,
                }
            };
            let delay = Duration::from_nanos(self.ns().saturating_sub(woken_at));
            spin(SPIN);
            if self.clock.now() == Phase::Counted {
                counted.count(1, Some(delay));
            }
        }
    }
}
