//! Pairs of rows, by their numbers.

use std::ops::Range;

use workahead_walks::answers::Answers;
use workahead_walks::walk::Row;

/// Rows of both sides, side by side.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// Probe rows that come once each, one after the other: then `probe` is empty.
    pub(crate) run: Range<Row>,
    pub(crate) probe: Vec<Row>,
    /// [`NO_ROW`](crate::chunks::NO_ROW) where there is none. Empty if the join emits no pairs.
    pub(crate) build: Vec<Row>,
    /// Of a table whose entries hold values, these and no rows.
    pub(crate) values: Vec<u64>,
}

impl Matches {
    pub(crate) fn len(&self) -> usize {
        self.run.len() + self.probe.len()
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

    /// Adds a probe row and what it found, where it found: written always, kept if so.
    pub(super) fn extend<T: Copy + Default>(
        (probe, build): (&mut Vec<Row>, &mut Vec<T>),
        rows: Range<Row>,
        answers: &Answers,
        of: impl Fn(u64) -> T,
    ) {
        let mut kept = probe.len();
        probe.resize(kept + rows.len(), 0);
        build.resize(kept + rows.len(), T::default());
        for (row, (found, value)) in rows.zip(answers.each()) {
            (probe[kept], build[kept]) = (row, of(value));
            kept += usize::from(found);
        }
        probe.truncate(kept);
        build.truncate(kept);
    }

    /// Moves all pairs of another to the end.
    pub(super) fn append(&mut self, other: &mut Self) {
        self.probe.append(&mut other.probe);
        self.build.append(&mut other.build);
        self.values.append(&mut other.values);
    }

    /// Keeps the pairs for which something holds.
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
