//! The five laws of a walk, as a kit that any walk can be checked with.
//!
//! The laws are stated at [`Walk`]. A walk that keeps them runs under every schedule, beside every
//! helper and over every memory, today's and those to come; so a new walk is checked here once,
//! against an oracle, and never again for each technique.
//!
//! ```text
//!                 interleavings of our own            the schedules that there are
//!                 (who steps is known)                (paused and resumed, every width)
//! in turn         1  2        5                        2  5
//! lock step       1  2  3     5                        2  5
//! newest first    1  2  3     5    old rows starve
//! drawn           1  2  3     5    seeded
//! counted         4                allocations a step
//! ```
//!
//! No kit can see reads that a walk does not send through its [`Memory`](crate::Memory), nor
//! a lock that is free when it is taken. A step that waits for another row never ends here, because
//! that row takes no step meanwhile.

mod allocations;
mod interleave;
mod requests;
pub(crate) mod schedules;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::walk::{Row, Rows, Walk};

use allocations::AllocationWatch;
use interleave::{Order, interleave};
use requests::Requests;

/// One of the laws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// A step touches what was requested, the row's own input, or what is declared hot.
    OnlyTheRequested = 1,
    /// A step emits at most one hit.
    OneHitAStep = 2,
    /// Data that another row may write is read again.
    PlacesNotFacts = 3,
    /// A step neither allocates, locks nor waits, and the steps of a row come to an end.
    RunToCompletion = 4,
    /// The hits are the same, and the oracle's, under any schedule.
    AnySchedule = 5,
}

impl fmt::Display for Law {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Law::OnlyTheRequested => "only the requested place",
            Law::OneHitAStep => "one hit a step",
            Law::PlacesNotFacts => "carry places, not facts",
            Law::RunToCompletion => "run to completion",
            Law::AnySchedule => "any schedule, the same hits",
        };
        write!(out, "law {}, {words}", *self as u8)
    }
}

/// A law that a walk did not keep.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{law}: {what} (driven {drive})")]
pub struct Violation {
    /// Which.
    pub law: Law,
    /// By which interleaving or schedule.
    pub drive: String,
    /// The event.
    pub what: String,
}

/// The hits of a walk, by row; those of one row in the order they came.
pub type RowHits<W> = Vec<(Row, <W as Walk>::Hit)>;

/// Checks a walk against all laws: [`Kit::usual`] without a count of allocations.
///
/// `make` gives a fresh walk; `oracle` judges a walk that was driven to its end and its hits, in
/// the order of their rows ([`hits`] is the usual one).
///
/// ```
/// use workahead_machine::pages::Pages;
/// use workahead_walks::bucket::{Every, Load, Probe, Table};
/// use workahead_walks::isa::Portable;
/// use workahead_walks::{Rows, conformance};
///
/// let table = Table::of(&[7, 0, 7], &[70, 1, 71], Load::HALF, Pages::Small)?;
/// let probe = || Probe::<_, Every>::new(&table, Portable, &[7, 8, 0]);
/// let oracle = conformance::hits(&[(0, 70), (0, 71), (2, 1)], |value| value);
/// conformance::check(probe, Rows::range(0..3), oracle)?;
///
/// let wrong = conformance::hits(&[(0, 70), (2, 1)], |value| value);
/// let broken = conformance::check(probe, Rows::range(0..3), wrong).unwrap_err();
/// assert_eq!(broken.law, conformance::Law::AnySchedule);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first law that was not kept.
pub fn check<W: Walk>(
    make: impl Fn() -> W,
    rows: Rows,
    oracle: impl Fn(W, RowHits<W>) -> Result<(), String>,
) -> Result<(), Violation> {
    Kit::usual().check(make, rows, oracle)
}

/// An oracle that knows the hits of every row, in any order within a row. `value` makes what a walk
/// finds comparable: a hit is often a reference.
pub fn hits<W: Walk, T: Ord + Clone + fmt::Debug>(
    expected: &[(Row, T)],
    value: impl Fn(W::Hit) -> T,
) -> impl Fn(W, RowHits<W>) -> Result<(), String> {
    let mut expected = expected.to_vec();
    expected.sort();
    move |_, found| {
        let mut found: Vec<(Row, T)> =
            found.into_iter().map(|(row, hit)| (row, value(hit))).collect();
        found.sort();
        let same = found.iter().zip(&expected).take_while(|(found, hit)| found == hit).count();
        if same == found.len() && same == expected.len() {
            return Ok(());
        }
        let or_none = |hit: Option<&(Row, T)>| hit.map_or("none".into(), |hit| format!("{hit:?}"));
        let (here, there) = (or_none(found.get(same)), or_none(expected.get(same)));
        let (count, of) = (found.len(), expected.len());
        Err(format!("{count} hits, expected {of}; the first that differs is {here}, not {there}"))
    }
}

/// Steps a row may take before it is said never to end: far beyond the longest chain of any test.
const STEPS_MOST: u32 = 1_000_000;

/// How thoroughly a walk is checked.
#[derive(Debug, Clone)]
pub struct Kit {
    widths: Vec<usize>,
    rooms: Vec<usize>,
    allocations: Option<fn() -> u64>,
}

impl Kit {
    /// One row, two, an odd number, a usual number, and more than most tests have; sinks that are
    /// full after every hit, after a few, and never.
    #[must_use]
    pub fn usual() -> Self {
        let (widths, rooms) = (vec![1, 2, 7, 64, 1024], vec![1, 5, usize::MAX]);
        Self { widths, rooms, allocations: None }
    }

    /// Other numbers of rows in flight.
    #[must_use]
    pub fn widths(self, widths: &[usize]) -> Self {
        Self { widths: widths.to_vec(), ..self }
    }

    /// Other numbers of hits between two pauses.
    #[must_use]
    pub fn rooms(self, rooms: &[usize]) -> Self {
        Self { rooms: rooms.to_vec(), ..self }
    }

    /// Checks that steps do not allocate, by a count of the calling thread's allocations so far: a
    /// library has no allocator of its own, so the program that tests installs one that counts.
    #[must_use]
    pub fn counting(self, allocations: fn() -> u64) -> Self {
        Self { allocations: Some(allocations), ..self }
    }

    /// Checks a walk, as [`check()`].
    ///
    /// # Errors
    /// The first law that was not kept.
    pub fn check<W: Walk>(
        &self,
        make: impl Fn() -> W,
        rows: Rows,
        oracle: impl Fn(W, RowHits<W>) -> Result<(), String>,
    ) -> Result<(), Violation> {
        for &width in &self.widths {
            for order in Order::all_of(width) {
                let (mut walk, mut watch) = (make(), Requests::default());
                interleave(&mut walk, rows, order, &mut watch)?;
                // Rows that come one by one cannot meet another's writes.
                let law = if order.width == 1 { Law::AnySchedule } else { Law::PlacesNotFacts };
                let drive = order.to_string();
                oracle(walk, watch.hits()).map_err(|what| Violation { law, drive, what })?;
            }
        }
        if let Some(allocations) = self.allocations {
            for order in Order::all_of(7) {
                interleave(&mut make(), rows, order, &mut AllocationWatch::by(allocations))?;
            }
        }
        for &room in &self.rooms {
            schedules::each(&make, rows, (&self.widths, room), |drive, walk, hits| {
                let law = Law::AnySchedule;
                oracle(walk, hits).map_err(|what| Violation { law, drive: drive.to_owned(), what })
            })?;
        }
        Ok(())
    }
}
