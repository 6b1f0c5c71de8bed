//! The join, on any number of threads.
//!
//! ```text
//! each thread  takes morsels of both sides, counts them, scatters them into buffers of its own
//!              ── all have done so ──
//! each thread  takes a partition, or a piece of one, largest first:
//!                 fills its window from the build rows of all threads' buffers, looks up the
//!                 probe rows of them, emits into a sink of its own
//! ```
//!
//! No thread writes where another does: each counts and scatters what it took, and a partition is
//! as many runs of rows as there are threads. A slow thread takes fewer morsels, and fewer
//! partitions.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use workahead_machine::pages::{AllocationError, Supply};

use super::Cut;
use super::scatter::{Histogram, Scatter, Scattered, Value};
use crate::bucket::{TableError, Window};
use crate::isa::Detected;
use crate::walk::{Row, Sink};
use crate::with_isa;

/// Rows a thread takes at a time while scattering.
const MORSEL_ROWS: usize = 1 << 16;

/// A piece of a partition has at least a given number of probe rows, and as many as the partition
/// has build rows, whose window is filled for each piece.
const PIECE_ROWS: usize = 1 << 18;

/// A join by partitions did not come about.
#[derive(Debug, thiserror::Error)]
pub enum RadixError {
    /// No memory for the rows on their way.
    #[error(transparent)]
    Memory(#[from] AllocationError),
    /// A partition's table could not be made.
    #[error(transparent)]
    Table(#[from] TableError),
    /// No thread.
    #[error("no thread can be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// A join of two columns of keys.
#[derive(Debug, Clone)]
pub struct Join<'a> {
    cut: Cut,
    pages: &'a Supply,
    pub(super) morsel_rows: usize,
    pub(super) piece_rows: usize,
}

/// Both sides, scattered by one thread.
struct Own<V> {
    build: Scattered<V>,
    probe: Scattered<Row>,
}

/// Something to be joined: a coarse partition, and which of its probe rows.
#[derive(Debug, Clone)]
struct Piece {
    partition: usize,
    probes: Range<usize>,
    /// Rows of both sides.
    rows: usize,
}

impl<'a> Join<'a> {
    /// With both sides cut in a way, on such pages.
    #[must_use]
    pub fn new(cut: Cut, pages: &'a Supply) -> Self {
        Self { cut, pages, morsel_rows: MORSEL_ROWS, piece_rows: PIECE_ROWS }
    }

    /// Joins build rows, of which each has a value, with probe rows, which are called by their
    /// place: every pair is emitted once, into the sinks, one a thread, in no order.
    ///
    /// # Errors
    /// When memory or threads are unavailable, or the keys crowd in a partition.
    ///
    /// # Panics
    /// If there is no sink, or a side has 2³² rows or more.
    pub fn run<V: Value, S: Sink<u64> + Send>(
        &self,
        build: &[u64],
        value: impl Fn(usize) -> V + Sync,
        probe: &[u64],
        sinks: Vec<S>,
    ) -> Result<Vec<S>, RadixError> {
        assert!(!sinks.is_empty(), "somebody must take what is found");
        let [of_build, of_probe] =
            [build, probe].map(|keys| Morsels::of(keys.len(), self.morsel_rows));
        let own = on_threads(sinks.iter().map(|_| ()).collect(), |()| {
            let build = self.scatter(build, &of_build, &value)?;
            let probe = self.scatter(probe, &of_probe, &|row| row as Row)?;
            Ok(Own { build, probe })
        })?;
        let (pieces, next) = (self.pieces(&own), AtomicUsize::new(0));
        on_threads(sinks, |mut sink| {
            let mut window = Window::of(self.cut.parts, self.pages)?;
            while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.join(piece, &own, &mut window, &mut sink)?;
            }
            Ok(sink)
        })
    }

    /// Counts and scatters the morsels that this thread gets.
    fn scatter<V: Value>(
        &self,
        keys: &[u64],
        morsels: &Morsels,
        value: &(impl Fn(usize) -> V + Sync),
    ) -> Result<Scattered<V>, RadixError> {
        let (cut, mut own) = (self.cut, Vec::new());
        let mut histogram = Histogram::of(cut.coarse());
        while let Some(rows) = morsels.next() {
            with_isa!(Detected::best(), isa => {
                let _inside = isa;
                histogram.add(&keys[rows.clone()], #[inline(always)] |key| cut.coarse_of(key));
            });
            own.push(rows);
        }
        let mut scatter = Scatter::of(histogram, self.pages)?;
        for rows in own {
            let first = rows.start;
            with_isa!(Detected::best(), isa => {
                let _inside = isa;
                scatter.add(
                    &keys[rows],
                    #[inline(always)] |key| cut.coarse_of(key),
                    #[inline(always)] |at| value(first + at),
                );
            });
        }
        Ok(scatter.finish())
    }

    /// Scatters the rows of a coarse partition by its fine ones.
    fn refine<'r, V: Value>(
        &self,
        runs: impl Iterator<Item = (&'r [u64], &'r [V])> + Clone,
    ) -> Result<Scattered<V>, RadixError> {
        let cut = self.cut;
        with_isa!(Detected::best(), isa => {
            let _inside = isa;
            let mut histogram = Histogram::of(1 << cut.fine_bits);
            for (keys, _) in runs.clone() {
                histogram.add(keys, #[inline(always)] |key| cut.fine_of(key));
            }
            let mut scatter = Scatter::of(histogram, self.pages)?;
            for (keys, values) in runs {
                scatter.add(
                    keys,
                    #[inline(always)] |key| cut.fine_of(key),
                    #[inline(always)] |at| values[at],
                );
            }
            Ok(scatter.finish())
        })
    }

    /// All there is to be joined, the largest first.
    fn pieces<V: Value>(&self, own: &[Own<V>]) -> Vec<Piece> {
        let mut pieces = Vec::with_capacity(self.cut.coarse());
        for partition in 0..self.cut.coarse() {
            let builds: usize = own.iter().map(|own| own.build.partition(partition).0.len()).sum();
            let probes: usize = own.iter().map(|own| own.probe.partition(partition).0.len()).sum();
            if builds == 0 || probes == 0 {
                continue;
            }
            let each = probes.div_ceil((probes / self.piece_rows.max(builds)).max(1));
            for start in (0..probes).step_by(each) {
                let probes = start..probes.min(start + each);
                let rows = builds + probes.len();
                pieces.push(Piece { partition, probes, rows });
            }
        }
        pieces.sort_by_key(|piece| std::cmp::Reverse(piece.rows));
        pieces
    }

    /// Joins a piece.
    fn join<V: Value, S: Sink<u64>>(
        &self,
        Piece { partition, probes, .. }: &Piece,
        own: &[Own<V>],
        window: &mut Window,
        sink: &mut S,
    ) -> Result<(), RadixError> {
        let builds = own.iter().map(|own| own.build.partition(*partition));
        let runs = own.iter().map(|own| own.probe.partition(*partition));
        let probes = within(probes.clone(), runs);
        if self.cut.passes() == 1 {
            window.fill(*partition, builds)?;
            probes.for_each(|(keys, rows)| window.probe(keys, rows, sink));
            return Ok(());
        }
        let (builds, probes) = (self.refine(builds)?, self.refine(probes)?);
        let first = partition << self.cut.fine_bits;
        for fine in 0..1 << self.cut.fine_bits {
            let (keys, rows) = probes.partition(fine);
            if keys.is_empty() || builds.partition(fine).0.is_empty() {
                continue;
            }
            window.fill(first + fine, std::iter::once(builds.partition(fine)))?;
            window.probe(keys, rows, sink);
        }
        Ok(())
    }
}

/// Some of the rows of several runs, counted through.
fn within<'r>(
    wanted: Range<usize>,
    runs: impl Iterator<Item = (&'r [u64], &'r [Row])> + Clone,
) -> impl Iterator<Item = (&'r [u64], &'r [Row])> + Clone {
    let mut start = 0;
    runs.map(move |(keys, rows)| {
        let own = start..start + keys.len();
        start = own.end;
        let from = wanted.start.clamp(own.start, own.end) - own.start;
        let to = wanted.end.clamp(own.start, own.end) - own.start;
        (&keys[from..to], &rows[from..to])
    })
}

/// Rows being dealt out.
struct Morsels {
    rows: usize,
    each: usize,
    next: AtomicUsize,
}

impl Morsels {
    fn of(rows: usize, each: usize) -> Self {
        assert!(u32::try_from(rows).is_ok(), "rows are counted in 32 bits");
        Self { rows, each, next: AtomicUsize::new(0) }
    }

    fn next(&self) -> Option<Range<usize>> {
        let start = self.next.fetch_add(self.each, Ordering::Relaxed);
        (start < self.rows).then(|| start..self.rows.min(start + self.each))
    }
}

/// Runs a task for each input on a thread of its own, the last on this one.
fn on_threads<I: Send, O: Send>(
    mut inputs: Vec<I>,
    task: impl Fn(I) -> Result<O, RadixError> + Sync,
) -> Result<Vec<O>, RadixError> {
    let task = &task;
    thread::scope(|scope| {
        let own = inputs.pop();
        let spawn = |input| thread::Builder::new().spawn_scoped(scope, move || task(input));
        let others: Vec<_> = inputs.into_iter().map(spawn).collect();
        let own = own.map(task);
        let others = others.into_iter().map(|thread| match thread?.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        others.chain(own).collect()
    })
}
