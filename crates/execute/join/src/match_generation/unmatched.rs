//! Outputs unmatched probe rows: between matches, or once all matches are known.

use arrow_array::RecordBatch;
use arrow_buffer::BooleanBuffer;
use workahead_walks::walk::Row;

use super::MatchGenerator;
use crate::chunks::NO_ROW;
use crate::in_memory_build_side::InMemoryBuildSide;
use crate::join_type::SideOutput;

/// Rows of a word of the match bitmap.
const WORD: usize = u64::BITS as usize;

/// The rows to be output on their own.
#[derive(Debug, Clone, Copy)]
enum OutputRows {
    Matched,
    Unmatched,
    All,
}

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
        let wanted = match output_rules.probe {
            SideOutput::Never | SideOutput::Tracked => {
                self.done = true;
                return;
            }
            SideOutput::Matched => OutputRows::Matched,
            SideOutput::Unmatched if !Self::interleaves_unmatched(table) => OutputRows::Unmatched,
            SideOutput::Unmatched | SideOutput::Marked => OutputRows::All,
        };
        while self.next_row < rows && self.out.len() < room {
            self.output_word(wanted, rows, room);
        }
        if output_rules.matches {
            self.out.build.resize(self.out.probe.len(), NO_ROW);
        }
        self.done = self.next_row == rows;
    }

    /// Outputs the wanted rows from the next one to the end of its word of the bitmap.
    fn output_word(&mut self, wanted: OutputRows, rows: usize, room: usize) {
        let (word, bit) = (self.next_row / WORD, self.next_row % WORD);
        let bits = match wanted {
            OutputRows::Matched => self.matched.word(word),
            OutputRows::Unmatched => !self.matched.word(word),
            OutputRows::All => u64::MAX,
        };
        let end = rows.min((word + 1) * WORD);
        let beyond = WORD - (end - word * WORD);
        let mut rest = (bits >> bit << bit) << beyond >> beyond;
        self.next_row = end;
        for _ in 0..rest.count_ones().min((room - self.out.len()) as u32) {
            self.out.probe.push((word * WORD) as Row + rest.trailing_zeros());
            rest &= rest - 1;
        }
        if rest != 0 {
            self.next_row = word * WORD + rest.trailing_zeros() as usize;
        }
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
