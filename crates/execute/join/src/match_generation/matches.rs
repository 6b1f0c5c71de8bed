//! Matching rows, by number.

use std::ops::Range;

use workahead_walks::selection::{BLOCK, SelectionVector};
use workahead_walks::walk::Row;

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

    /// Appends the probe rows that hit, the first of which is `first`, and their values.
    pub(super) fn extend<T: Copy + Default>(
        (probe, build): (&mut Vec<Row>, &mut Vec<T>),
        first: Row,
        selection: &SelectionVector,
        of: impl Fn(u64) -> T,
    ) {
        let (kept, hits) = (probe.len(), selection.hits());
        probe.resize(kept + hits, 0);
        build.resize(kept + hits, T::default());
        let (mut probe, mut build) = (&mut probe[kept..], &mut build[kept..]);
        for ((mut found, values), first) in selection.blocks().zip((first..).step_by(BLOCK)) {
            let hits = found.count_ones() as usize;
            let (rows, rest_of_rows) = probe.split_at_mut(hits);
            let (taken, rest_of_taken) = build.split_at_mut(hits);
            (probe, build) = (rest_of_rows, rest_of_taken);
            if hits == BLOCK {
                rows.iter_mut().zip(first..).for_each(|(row, number)| *row = number);
                taken.iter_mut().zip(values).for_each(|(to, value)| *to = of(*value));
                continue;
            }
            // As many turns as hits, which is known ahead: no branch on a single key.
            for (row, to) in rows.iter_mut().zip(taken) {
                let at = found.trailing_zeros();
                found &= found - 1;
                (*row, *to) = (first + at, of(values[at as usize]));
            }
        }
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
