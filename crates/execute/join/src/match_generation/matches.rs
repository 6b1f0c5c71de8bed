//! Matching rows, by number.

use std::ops::Range;

use workahead_walks::selection::SelectionVector;
use workahead_walks::walk::Row;

/// If fewer than one key in this many hits, a branch on each is guessed well.
const SPARSE: usize = 8;

/// Matching rows of both sides, side by side.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// A run of probe rows with one match each; `probe` is empty then.
    pub(crate) run: Range<Row>,
    pub(crate) probe: Vec<Row>,
    /// [`NO_ROW`](crate::chunks::NO_ROW) for an unmatched probe row. Empty if the join outputs no
    /// matches.
    pub(crate) build: Vec<Row>,
    /// The values of entries that hold payload instead of rows.
    pub(crate) values: Vec<u64>,
}

impl Matches {
    pub(crate) fn len(&self) -> usize {
        if self.run.is_empty() { self.probe.len().max(self.build.len()) } else { self.run.len() }
    }

    /// Takes the first `rows` matches.
    pub(crate) fn take_first(&mut self, rows: usize) -> Self {
        if rows == self.len() {
            return std::mem::take(self);
        }
        let mut first = Self::default();
        if self.run.is_empty() {
            first.probe = take_first(&mut self.probe, rows);
        } else {
            let end = self.run.start + rows as Row;
            (first.run, self.run.start) = (self.run.start..end, end);
        }
        first.build = take_first(&mut self.build, rows);
        first.values = take_first(&mut self.values, rows);
        first
    }

    pub(super) fn clear(&mut self) {
        self.run = 0..0;
        self.probe.clear();
        self.build.clear();
        self.values.clear();
    }

    pub(super) fn push(&mut self, probe: Row, build: Row) {
        self.probe.push(probe);
        self.build.push(build);
    }

    /// Appends the probe rows that hit, and their values. If more than a few hit, they are written
    /// unconditionally and kept on a hit.
    pub(super) fn extend<T: Copy + Default>(
        (probe, build): (&mut Vec<Row>, &mut Vec<T>),
        rows: Range<Row>,
        selection: &SelectionVector,
        of: impl Fn(u64) -> T,
    ) {
        let hits = selection.hits();
        if hits * SPARSE < rows.len() {
            probe.reserve(hits);
            build.reserve(hits);
            for (at, value) in selection.hits_each() {
                probe.push(rows.start + at as Row);
                build.push(of(value));
            }
            return;
        }
        let mut kept = probe.len();
        probe.resize(kept + rows.len(), 0);
        build.resize(kept + rows.len(), T::default());
        for (row, (found, value)) in rows.zip(selection.each()) {
            (probe[kept], build[kept]) = (row, of(value));
            kept += usize::from(found);
        }
        probe.truncate(kept);
        build.truncate(kept);
    }

    /// Moves another's matches to the end.
    pub(super) fn append(&mut self, other: &mut Self) {
        self.probe.append(&mut other.probe);
        self.build.append(&mut other.build);
        self.values.append(&mut other.values);
    }

    /// Keeps the matches for which `holds` is true.
    pub(super) fn retain(&mut self, mut holds: impl FnMut(usize) -> bool) {
        let mut kept = 0;
        for at in 0..self.len() {
            if holds(at) {
                self.probe[kept] = self.probe[at];
                self.build[kept] = self.build[at];
                kept += 1;
            }
        }
        self.probe.truncate(kept);
        self.build.truncate(kept);
    }
}

/// Takes the first values, if there are any.
fn take_first<T>(values: &mut Vec<T>, count: usize) -> Vec<T> {
    let rest = values.split_off(count.min(values.len()));
    std::mem::replace(values, rest)
}
