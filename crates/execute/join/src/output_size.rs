//! How many of the generated matches make an output batch: all that there is room for, or fewer if
//! their values are wide.
//!
//! Rows are counted on, and their bytes looked at one by one only if they are few of a batch, or if
//! the widest of each column could make the output too large.

use arrow_array::RecordBatch;
use workahead_walks::walk::Row;

use crate::Side;
use crate::in_memory_build_side::InMemoryBuildSide;
use crate::match_generation::Matches;
use crate::output_columns::ColumnSource;
use crate::row_bytes::{add_row_bytes, first_rows, fixed_bytes, null_bytes, run_bytes, widest_row};

/// Less than this part of a batch's rows are looked at rather than all of them.
const FEW: usize = 4;

/// Rows that are to be gathered, and columns of them.
pub(crate) struct OutputBound<'a> {
    pub(crate) table: &'a InMemoryBuildSide,
    /// None if only build rows are gathered.
    pub(crate) batch: Option<&'a RecordBatch>,
    pub(crate) columns: &'a [ColumnSource],
}

impl OutputBound<'_> {
    /// The number of first matches to gather at once: at least one.
    pub(crate) fn rows_that_fit(&self, matches: &Matches) -> usize {
        let (rows, most) = (matches.len(), self.table.batch_bytes_max);
        let (fixed, variable) = self.split();
        let widest = variable.iter().map(|column| self.widest(*column, matches));
        let bound = widest.fold(rows.saturating_mul(fixed), usize::saturating_add);
        if bound <= most {
            return rows;
        }
        if variable.is_empty() {
            return (most / fixed).clamp(1, rows);
        }
        let mut bytes = vec![fixed; rows];
        for column in variable {
            self.add(column, matches, &mut bytes);
        }
        first_rows(&bytes, most)
    }

    /// The bytes of all columns of fixed width, and the other columns.
    fn split(&self) -> (usize, Vec<ColumnSource>) {
        let (mut fixed, mut variable) = (0, Vec::new());
        for source in self.columns {
            let ColumnSource::Column(side, column) = *source else {
                fixed += 1;
                continue;
            };
            match fixed_bytes(self.table.spec.schema_of(side).field(column).data_type()) {
                Some(bytes) => fixed = bytes.saturating_add(fixed),
                None => variable.push(*source),
            }
        }
        (fixed, variable)
    }

    /// Most bytes of a column in all rows.
    fn widest(&self, source: ColumnSource, matches: &Matches) -> usize {
        let rows = matches.len();
        match source {
            ColumnSource::Column(side, column) if side == self.table.build_side() => {
                rows.saturating_mul(self.table.data.chunks.widest(column))
            }
            ColumnSource::Column(side, column) => {
                let Some(batch) = self.batch else {
                    return rows.saturating_mul(self.null_bytes(side, column));
                };
                let array = batch.column(column);
                if rows < array.len() / FEW {
                    let mut bytes = vec![0; rows];
                    self.add(source, matches, &mut bytes);
                    return bytes.into_iter().fold(0, usize::saturating_add);
                }
                // Without duplicates each probe row is output once.
                let once = self.table.data.duplicate_lists.is_empty();
                let all = if once { run_bytes(array, 0..array.len()) } else { usize::MAX };
                if all <= self.table.batch_bytes_max {
                    return all;
                }
                rows.saturating_mul(widest_row(array))
            }
            ColumnSource::Mark => rows,
        }
    }

    /// Bytes of a null of a column.
    fn null_bytes(&self, side: Side, column: usize) -> usize {
        null_bytes(self.table.spec.schema_of(side).field(column).data_type())
    }

    fn add(&self, source: ColumnSource, matches: &Matches, to: &mut [usize]) {
        match source {
            ColumnSource::Column(side, column) if side == self.table.build_side() => {
                self.table.data.chunks.add_row_bytes(column, &matches.build, to);
            }
            ColumnSource::Column(side, column) => {
                let Some(batch) = self.batch else {
                    let nulls = self.null_bytes(side, column);
                    return to.iter_mut().for_each(|bytes| *bytes += nulls);
                };
                let run: Vec<Row> = matches.run.clone().collect();
                let rows = if run.is_empty() { &matches.probe } else { &run };
                add_row_bytes(batch.column(column), rows, to);
            }
            ColumnSource::Mark => {}
        }
    }
}
