//! The paper's hash join over columns (Zhou et al., VLDB 2005, §6.4).
//!
//! ```text
//! probe side   keys │ a │ b        heads ► cells        build side   keys │ a │ b
//!               k     ▲   ▲                  │                        ▲     ▲   ▲
//!               │     └───┴───────── probe row, build row ────────────┴─────┴───┘
//!               └ hash, as rows are    five arrays, five places, one step
//! ```
//!
//! Attribute `k` of every row lies in an array of its own; the chained table is that of
//! [`chained`](crate::chained), over the key column. The phases are the same too, but for the last:
//! to compare keys and assemble an output record of the key and two integers of each side, it needs
//! five places at once, where the others need one. Hence entries of `m = 1` to `M = 5` references.
//!
//! The probe's integers could be requested as soon as the row is known. They are requested with the
//! statement that uses them: references that wait for later ones are evicted before those arrive
//! (§4.1).

mod table;

#[cfg(test)]
mod tests;

use crate::chained::{Chains, Lists};
use crate::hash::hash_u32;
use crate::materialise::Materialise;
use crate::memory::{Branch, Memory};
use crate::place::{Place, Several};
use crate::walk::{Row, Sink, Walk};

pub use table::{Clustered, Columns, Stream, Table, Unclustered};

/// One place, or the five of an output record.
pub type Asks = Several<1, 5>;

#[inline(always)]
fn one<T>(at: &T) -> Asks {
    Several::first(1, [Place::of(at); 5])
}

/// A joined row: key, two integers of the probe side, two of the build side.
pub type JoinedRow = [u32; 5];

/// The probe side of a hash join over columns.
#[derive(Clone, Copy)]
pub struct ColumnarJoin<'a, P> {
    lists: Lists<'a>,
    build: Columns<'a>,
    probe: Columns<'a>,
    stream: P,
}

impl<'a, P: Stream> ColumnarJoin<'a, P> {
    /// Probes `chains`, built over the keys of `build`, with the rows of `probe` that `stream`
    /// names.
    #[must_use]
    pub fn new(chains: &'a Chains, build: Columns<'a>, probe: Columns<'a>, stream: P) -> Self {
        Self { lists: Lists::of(chains), build, probe, stream }
    }
}

/// Which phase the next step is, and what it visits.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Phase 2: the bucket of the hash.
    Bucket,
    /// Phase 3: a cell.
    Cell(u32),
    /// Phase 4: five columns, with the rest of the list still to come.
    Columns { build_row: u32, next: u32 },
}

/// A probe between two phases.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    row: Row,
    hash: u32,
    phase: Phase,
}

/// Two rows that join, and what the output record takes from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match {
    /// Row of the probe side.
    pub probe_row: u32,
    /// Row of the build side.
    pub build_row: u32,
    /// The output record.
    pub assembled: JoinedRow,
}

impl<P: Stream> ColumnarJoin<'_, P> {
    /// The places of phase 4.
    #[inline(always)]
    fn columns<M: Memory>(&self, row: Row, build_row: u32, memory: &mut M) -> Asks {
        let probe_row = self.stream.rid(row, memory) as usize;
        let build_row = build_row as usize;
        Several::all([
            Place::of(&self.build.keys[build_row]),
            Place::of(&self.build.integers[0][build_row]),
            Place::of(&self.build.integers[1][build_row]),
            Place::of(&self.probe.integers[0][probe_row]),
            Place::of(&self.probe.integers[1][probe_row]),
        ])
    }

    /// Phase 4: compares keys, assembles the output record.
    #[inline(always)]
    fn assemble<M: Memory>(&self, row: Row, build_row: u32, memory: &mut M) -> Option<Match> {
        let probe_key = self.stream.key(row, self.probe.keys, memory);
        let key = *memory.read(&self.build.keys[build_row as usize]);
        if !memory.decided(Branch::SameKey, key == probe_key) {
            return None;
        }
        let probe_row = self.stream.rid(row, memory);
        let mut of = |side: Columns<'_>, row: u32| {
            side.integers.map(|integers| *memory.read(&integers[row as usize]))
        };
        let [a, b] = of(self.probe, probe_row);
        let [c, d] = of(self.build, build_row);
        Some(Match { probe_row, build_row, assembled: [key, a, b, c, d] })
    }
}

impl<P: Stream> Walk for ColumnarJoin<'_, P> {
    type Cursor = Cursor;
    type Hit = Match;
    type Asks = Asks;

    #[inline(always)]
    fn input(&self, row: Row) -> Option<Place> {
        self.stream.input(row, self.probe.keys)
    }

    #[inline(always)]
    fn start<M: Memory>(&mut self, row: Row, memory: &mut M) -> (Cursor, Asks) {
        let hash = hash_u32(self.stream.key(row, self.probe.keys, memory));
        (Cursor { row, hash, phase: Phase::Bucket }, one(self.lists.head(hash)))
    }

    #[inline(always)]
    fn step<M: Memory, S: Sink<Match>>(
        &mut self,
        cursor: &mut Cursor,
        memory: &mut M,
        sink: &mut S,
    ) -> Option<Asks> {
        let next = match cursor.phase {
            Phase::Bucket => *memory.read(self.lists.head(cursor.hash)),
            Phase::Cell(handle) => {
                let cell = memory.read(self.lists.cell(handle)?);
                if memory.decided(Branch::SameHash, cell.hash == cursor.hash) {
                    cursor.phase = Phase::Columns { build_row: cell.row, next: cell.next };
                    return Some(self.columns(cursor.row, cell.row, memory));
                }
                cell.next
            }
            Phase::Columns { build_row, next } => {
                if let Some(found) = self.assemble(cursor.row, build_row, memory) {
                    sink.emit(cursor.row, found);
                }
                next
            }
        };
        let cell = self.lists.cell(next);
        memory.decided(Branch::GoesOn, cell.is_some());
        let cell = cell?;
        cursor.phase = Phase::Cell(next);
        Some(one(cell))
    }
}

// SAFETY: heads, cells and all columns are borrowed, and immutable, for the walk's lifetime; the
// streams of `table` name rows of a borrowed column only.
unsafe impl<P: Stream> crate::work_ahead::Preloadable for ColumnarJoin<'_, P> {}

impl Sink<Match> for Materialise<'_, JoinedRow> {
    #[inline(always)]
    fn emit(&mut self, _: Row, found: Match) {
        *self.next(found.probe_row, found.build_row) = found.assembled;
    }
}
