//! The scan of the in-memory build rows after all probes: unmatched ones, by the type of the join.

use std::sync::Arc;

use arrow_array::RecordBatch;
use workahead_walks::walk::Row;

use crate::JoinError;
use crate::context::InputState;
use crate::duplicates::duplicate_list;
use crate::gather;
use crate::in_memory_build_side::InMemoryBuildSide;
use crate::join_type::SideOutput;
use crate::match_bitmap::MatchBitmap;
use crate::match_generation::Matches;
use crate::output_size::OutputBound;
use crate::stop::ROWS_BETWEEN;

/// Outputs unmatched, matched or all build rows, by the type of the join.
pub(crate) struct UnmatchedBuildScan {
    table: Arc<InMemoryBuildSide>,
    matched: MatchBitmap,
    /// The next build row, and the end.
    next: usize,
    rows: usize,
}

impl UnmatchedBuildScan {
    /// Starts once every prober has ended.
    pub(crate) fn new(table: Arc<InMemoryBuildSide>) -> Result<Self, JoinError> {
        let mut matched = MatchBitmap::default();
        matched.reset(table.rows.all());
        expand_bitmap(&table, &mut matched)?;
        let rows = output_candidates(&table);
        Ok(Self { table, matched, next: 0, rows })
    }

    /// The next output batch.
    pub(crate) fn next_output(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        let mut rows = Vec::new();
        while self.next < self.rows && rows.len() < self.table.spec.batch_rows {
            if self.is_output(self.next) {
                rows.push(self.next as Row);
            }
            self.next += 1;
            if self.next.is_multiple_of(ROWS_BETWEEN) {
                self.table.spec.stop.check()?;
            }
        }
        if rows.is_empty() {
            return Ok(None);
        }
        let columns = &self.table.spec.output_columns.sources;
        let bound = OutputBound { table: &self.table, batch: None, columns };
        let mut matches = Matches { build: rows, ..Matches::default() };
        let count = bound.rows_that_fit(&matches);
        if let Some(next) = matches.build.get(count) {
            self.next = *next as usize;
            matches.build.truncate(count);
        }
        let rows = matches.build;
        gather::unmatched_build(&self.table, rows, |row| self.matched.get(row as usize)).map(Some)
    }

    /// The number of rows left.
    pub(crate) fn count(self) -> Result<u64, JoinError> {
        let mut count = 0;
        self.table.spec.stop.parts(self.next..self.rows, |rows| {
            count += rows.filter(|row| self.is_output(*row)).count() as u64;
            Ok(())
        })?;
        Ok(count)
    }

    fn is_output(&self, row: usize) -> bool {
        match self.table.output_rules.build {
            SideOutput::Never | SideOutput::Tracked => false,
            SideOutput::Matched => self.matched.get(row),
            SideOutput::Unmatched => !self.matched.get(row),
            SideOutput::Marked => true,
        }
    }
}

/// Expands the match bitmap to rows: a bit for a key counts for all rows of the key.
fn expand_bitmap(table: &InMemoryBuildSide, matched: &mut MatchBitmap) -> Result<(), JoinError> {
    let Some(bitmap) = &table.match_bitmap else { return Ok(()) };
    if table.has_residual_predicate() {
        return table.spec.stop.parts(0..table.rows.keyed, |rows| {
            rows.filter(|row| bitmap.get(*row)).for_each(|row| matched.set(row));
            Ok(())
        });
    }
    for (at, value) in table.data.hash_table.values().enumerate() {
        if at.is_multiple_of(ROWS_BETWEEN) {
            table.spec.stop.check()?;
        }
        if !bitmap.get(table.bit(value)) {
            continue;
        }
        match duplicate_list(value) {
            (_, None) => matched.set(value as Row as usize),
            (rows, Some(start)) => {
                let rows = &table.data.duplicate_lists[start..start + rows as usize];
                rows.iter().for_each(|row| matched.set(*row as usize));
            }
        }
    }
    Ok(())
}

/// How many of the build rows may be output: in a null-aware join, none if a probe key was null,
/// and rows with a null key, which are last, only if there was no probe row.
fn output_candidates(table: &InMemoryBuildSide) -> usize {
    let rows = table.rows;
    if !table.spec.null_aware {
        return rows.all();
    }
    match table.null_aware_state.probe() {
        InputState { has_null: true, .. } => 0,
        InputState { has_rows: true, .. } => rows.keyed + rows.unmatchable,
        InputState { has_rows: false, .. } => rows.all(),
    }
}
