//! How many of the generated matches make an output batch: all that there is room for, or fewer if
//! their values are wide.
//!
//! Rows are counted on, and their bytes looked at one by one only if they are few of a batch, or if
//! the widest of each column could make the output too large. Of lists that have to be looked at
//! item by item, only those of the output are.

use std::ops::Range;

use arrow_array::RecordBatch;
use workahead_walks::walk::Row;

use crate::Side;
use crate::in_memory_build_side::InMemoryBuildSide;
use crate::match_generation::Matches;
use crate::output_columns::ColumnSource;
use crate::row_bytes::{
    add_row_bytes, first_rows, fixed_bytes, is_quick, null_bytes, run_bytes, widest_row,
};

/// Less than this part of a batch's rows are looked at rather than all of them.
const FEW: usize = 4;

/// Matches whose bytes are looked at first; then as many more as before, while there is room.
const LOOKED_AT: usize = 64;

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
        let mut bytes = Vec::new();
        while bytes.len() < rows {
            let next = bytes.len()..rows.min(LOOKED_AT.max(2 * bytes.len()));
            bytes.resize(next.end, fixed);
            for column in &variable {
                self.add(*column, matches, next.clone(), &mut bytes[next.clone()]);
            }
            let fit = first_rows(&bytes, most);
            if fit < bytes.len() {
                return fit;
            }
        }
        rows
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
                if !is_quick(array.data_type(), false) {
                    return usize::MAX;
                }
                if rows < array.len() / FEW {
                    let mut bytes = vec![0; rows];
                    self.add(source, matches, 0..rows, &mut bytes);
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

    /// Adds the bytes of a column in some of the matches.
    fn add(&self, source: ColumnSource, matches: &Matches, of: Range<usize>, to: &mut [usize]) {
        match source {
            ColumnSource::Column(side, column) if side == self.table.build_side() => {
                let rows = matches.build.get(of).unwrap_or_default();
                self.table.data.chunks.add_row_bytes(column, rows, to);
            }
            ColumnSource::Column(side, column) => {
                let Some(batch) = self.batch else {
                    let nulls = self.null_bytes(side, column);
                    return to.iter_mut().for_each(|bytes| *bytes += nulls);
                };
                let run: Vec<Row> = matches.run.clone().skip(of.start).take(of.len()).collect();
                let probe = matches.probe.get(of).unwrap_or_default();
                let rows = if run.is_empty() { probe } else { &run };
                add_row_bytes(batch.column(column), rows, to);
            }
            ColumnSource::Mark => {}
        }
    }
}
