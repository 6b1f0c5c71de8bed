//! Outputs unmatched probe rows: between matches, or once all matches are known.

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use workahead_walks::walk::Row;

use super::MatchGenerator;
use crate::chunks::NO_ROW;
use crate::in_memory_build_side::InMemoryBuildSide;
use crate::join_type::SideOutput;

impl MatchGenerator {
    /// Outputs matches with the unmatched rows between them.
    pub(super) fn merge(&mut self, room: usize) {
        while self.merged < self.pending.len() && self.out.len() < room {
            let row = self.pending.probe[self.merged];
            if self.next_row < row as usize {
                self.out.push(self.next_row as Row, NO_ROW);
                self.next_row += 1;
                continue;
            }
            self.out.push(row, self.pending.build[self.merged]);
            self.next_row = row as usize + 1;
            self.merged += 1;
        }
    }

    /// Outputs rows on their own, once all matches are known.
    pub(super) fn output_unmatched(&mut self, table: &InMemoryBuildSide, room: usize) {
        let (output_rules, rows) =
            (table.output_rules, self.batch.as_ref().map_or(0, RecordBatch::num_rows));
        if !self.matches_complete {
            self.matches_complete = true;
            self.complete_matches(table, rows);
        }
        let interleaves_unmatched = Self::interleaves_unmatched(table);
        while self.next_row < rows && self.out.len() < room {
            let row = self.next_row;
            let is_output = match output_rules.probe {
                SideOutput::Never | SideOutput::Tracked => break,
                SideOutput::Matched => self.matched.get(row),
                SideOutput::Unmatched => interleaves_unmatched || !self.matched.get(row),
                SideOutput::Marked => true,
            };
            if is_output {
                self.out.probe.push(row as Row);
                if output_rules.matches {
                    self.out.build.push(NO_ROW);
                }
            }
            self.next_row += 1;
        }
        self.done = self.next_row == rows
            || matches!(output_rules.probe, SideOutput::Never | SideOutput::Tracked);
    }

    /// Consequences of knowing all matches.
    fn complete_matches(&mut self, table: &InMemoryBuildSide, rows: usize) {
        if table.has_residual_predicate() {
            self.metrics.matched_rows += self.matched.count() as u64;
        }
        if !table.spec.null_aware || table.output_rules.probe != SideOutput::Unmatched {
            return;
        }
        let build = table.null_aware_state.build();
        if build.has_null {
            // Every row might equal that null: all are unknown.
            self.next_row = rows;
        } else if build.has_rows
            && let Some(batch) = &self.batch
        {
            let nulls = table.spec.keys(table.build_side().other()).nulls(batch);
            let unknown = nulls.map(|nulls| !nulls.inner());
            let unknown = unknown.iter().flat_map(BooleanBuffer::set_indices);
            unknown.for_each(|row| self.matched.set(row));
        }
    }
}
