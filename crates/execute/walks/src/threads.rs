//! Several threads on one walk: who gets which rows, and how they start together.
//!
//! * *independent parallel*: each thread its own input and output (Zhou et al., §6.2, "Two
//!   Threads"): [`together`] with a walk of its own per thread;
//! * *bi-threaded* (§3): n threads share the table, split the rows and write outputs of their own;
//!   [`Split`] says how;
//! * *main + helper* (§4): [`work_ahead::run`](crate::work_ahead::run()).

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread;

use workahead_machine::clock::{ElapsedTime, Moment};
use workahead_machine::cpus::CpuSet;
use workahead_machine::{Error, pin};

use crate::walk::{Row, Rows};

/// How the rows of a bi-threaded operator are dealt out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// Thread `i` of `n` takes rows `i, i + n, …`: the paper's even and odd tuples.
    Strided,
    /// Threads take the next `rows` consecutive rows whenever they are free, so that a slow
    /// thread does not hold back the others.
    Morsels {
        /// Rows a morsel.
        rows: Row,
    },
}

/// Rows being dealt out to `threads` threads.
pub struct Shares {
    split: Split,
    end: Row,
    threads: u32,
    next: AtomicU32,
}

impl Shares {
    /// Deals out rows `0..end`.
    ///
    /// # Panics
    /// If there is no thread, or morsels of no rows.
    #[must_use]
    pub fn new(split: Split, end: Row, threads: u32) -> Self {
        assert!(threads > 0 && split != Split::Morsels { rows: 0 });
        Self { split, end, threads, next: AtomicU32::new(0) }
    }

    /// The runs of rows of thread `thread`, one after the other.
    pub fn of(&self, thread: u32) -> impl Iterator<Item = Rows> + '_ {
        let mut first_call = true;
        std::iter::from_fn(move || match self.split {
            Split::Strided => std::mem::take(&mut first_call)
                .then(|| Rows::strided(thread, self.end, self.threads)),
            Split::Morsels { rows } => {
                let take = |next: Row| (next < self.end).then(|| next.saturating_add(rows));
                let order = Ordering::Relaxed;
                let first = self.next.fetch_update(order, order, take).ok()?;
                Some(Rows::range(first..first.saturating_add(rows).min(self.end)))
            }
        })
    }
}

/// The result of one thread.
#[derive(Debug)]
pub struct ThreadResult<R> {
    /// Its result.
    pub result: R,
    /// Its own time, from the common start.
    pub elapsed: ElapsedTime,
}

/// Runs `task(i)` on a thread pinned to `cpus[i]`, all starting together.
///
/// # Errors
/// When a CPU is not allowed or the system has no more threads; then no task has run.
pub fn together<R: Send>(
    cpus: &[usize],
    allowed: &CpuSet,
    task: impl Fn(usize) -> R + Sync,
) -> Result<Vec<ThreadResult<R>>, Error> {
    start_together(cpus, allowed, &task)
}

/// Compiled once for a type of results, and not for every task.
fn start_together<R: Send>(
    cpus: &[usize],
    allowed: &CpuSet,
    task: &(dyn Fn(usize) -> R + Sync),
) -> Result<Vec<ThreadResult<R>>, Error> {
    // None where the system has no more threads: those that there are end.
    let start: OnceLock<Option<Barrier>> = OnceLock::new();
    let run = |thread: usize| {
        let pinned = pin::to(cpus[thread], allowed);
        // Everyone waits for everyone's pin: a refused CPU stops all tasks before they begin.
        start.wait().as_ref()?.wait();
        let begun = pinned.map(|pinned| (pinned, Moment::now()));
        Some(begun.map(|(_pinned, moment)| {
            let result = task(thread);
            ThreadResult { result, elapsed: moment.elapsed() }
        }))
    };
    if let Some(&refused) = cpus.iter().find(|cpu| !allowed.contains(**cpu)) {
        let _ = pin::to(refused, allowed)?;
    }
    thread::scope(|scope| {
        let spawn = |thread| thread::Builder::new().spawn_scoped(scope, move || run(thread));
        let others = (1..cpus.len()).map(spawn).collect::<Result<Vec<_>, _>>();
        start.get_or_init(|| others.is_ok().then(|| Barrier::new(cpus.len())));
        let others = others.map_err(Error::Thread)?;
        let own = run(0);
        let others = others.into_iter().map(|other| other.join().unwrap_or_else(resume));
        std::iter::once(own).chain(others).flatten().collect()
    })
}

/// A panic in a task is the caller's panic, not an error to be handled.
fn resume<R>(panic: Box<dyn std::any::Any + Send>) -> R {
    std::panic::resume_unwind(panic)
}
