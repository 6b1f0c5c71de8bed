//! The paper's "direct" helper (appendix): it reads the input itself instead of a set.
//!
//! It saves copying the references and pays for finding out where the main thread is: every
//! [`ROWS_A_CHECK`] rows the main thread says how far it has come, and the helper compares. The
//! paper found it slightly worse than the set, and hard to tune. Bounded at both ends it is what
//! Ghost Threading (MICRO 2025) adds to helpers, with a throttle for the thread that waits.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering};

use workahead_machine::Error;

use super::helper::HelperReport;
use super::run::{HelperRun, Placement, Preloadable, beside};
use super::throttle::Throttle;
use super::touch::touch;
use crate::isa::Isa;
use crate::memory::Direct;
use crate::place::References;
use crate::walk::{Row, Rows, Sink};

/// Rows between two looks of a direct helper and its main thread at each other.
pub const ROWS_A_CHECK: Row = 16;

/// How far the main thread has come, on a line of its own.
#[repr(align(128))]
struct Progress(AtomicU32);

impl Progress {
    fn none() -> Self {
        Self(AtomicU32::new(0))
    }
}

/// Says that there is nothing left to run ahead of.
const FINISHED: Row = Row::MAX;

/// Ends the helper when the main thread leaves, by whatever way.
struct Finish<'p>(&'p Progress);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.0.store(FINISHED, Ordering::Release);
    }
}

/// Runs all `rows` of a walk in turn, while a helper starts them too, up to `size` rows ahead, and
/// loads what each asks for first.
///
/// # Errors
/// When the helper's CPU is not allowed; then nothing has run.
pub fn run_direct<W: Preloadable + Clone + Send, S: Sink<W::Hit>>(
    isa: impl Isa,
    walk: &mut W,
    rows: &mut Rows,
    (size, throttle): (usize, Throttle),
    placement: Placement<'_>,
    sink: &mut S,
) -> Result<Option<HelperRun>, Error> {
    let progress = &Progress::none();
    let (ahead, all) = (walk.clone(), *rows);
    beside(
        placement,
        move || {
            isa.run(
                #[inline(always)]
                || run_ahead(ahead, all, (size as Row, throttle), progress),
            )
        },
        || {
            let _finish = Finish(progress);
            isa.run(
                #[inline(always)]
                || in_turn(walk, rows, progress, sink),
            );
        },
    )
}

/// [`run_direct`] over the threads of the model checker, which know no scope and no CPU.
#[cfg(loom)]
pub fn run_direct_modelled<W: Preloadable + Clone + Send + 'static, S: Sink<W::Hit>>(
    mut walk: W,
    mut rows: Rows,
    size: usize,
    sink: &mut S,
) -> HelperReport {
    let progress = loom::sync::Arc::new(Progress::none());
    let (ahead, all, theirs) = (walk.clone(), rows, loom::sync::Arc::clone(&progress));
    let serving =
        loom::thread::spawn(move || run_ahead(ahead, all, (size as Row, Throttle::Pause), &theirs));
    {
        let _finish = Finish(&progress);
        in_turn(&mut walk, &mut rows, &progress, sink);
    }
    serving.join().unwrap()
}

/// The main thread: one row to its end, saying now and then how many are done.
#[inline(always)]
fn in_turn<W: Preloadable, S: Sink<W::Hit>>(
    walk: &mut W,
    rows: &mut Rows,
    progress: &Progress,
    sink: &mut S,
) {
    let mut done: Row = 0;
    for row in rows {
        let (mut cursor, _) = walk.start(row, &mut Direct);
        while walk.step(&mut cursor, &mut Direct, sink).is_some() {}
        done += 1;
        if done.is_multiple_of(ROWS_A_CHECK) {
            progress.0.store(done, Ordering::Relaxed);
        }
    }
}

/// The helper: starts each row to learn its places, and loads them.
#[inline(always)]
fn run_ahead<W: Preloadable>(
    mut walk: W,
    mut rows: Rows,
    (size, throttle): (Row, Throttle),
    progress: &Progress,
) -> HelperReport {
    let mut report = HelperReport::default();
    let mut at: Row = 0;
    loop {
        let done = progress.0.load(Ordering::Acquire);
        if done == FINISHED {
            return report;
        }
        if at < done {
            // Passed: what lies behind the main thread is of no use any more.
            rows.skip_rows(done - at);
            at = done;
        }
        if at - done >= size {
            report.waits += 1;
            throttle.wait((&raw const progress.0).cast());
            continue;
        }
        for row in rows.by_ref().take(ROWS_A_CHECK as usize) {
            let (_, asks) = walk.start(row, &mut Direct);
            // SAFETY: `Preloadable` keeps every place mapped while the walk exists; the main
            // thread's copy is borrowed for longer than this thread lives.
            asks.each(|place| unsafe { touch(place.address()) });
            report.entries_loaded += 1;
        }
        at += ROWS_A_CHECK;
    }
}
