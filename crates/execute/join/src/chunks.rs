//! The build side's columns, kept for gathering by row.
//!
//! Batches are concatenated to few long chunks, column by column, so that an output array is one
//! `take` from one array. A chunk ends before 32-bit offsets of strings could overflow, and where a
//! batch has another dictionary than the one before, as a concatenated dictionary may have more
//! values than its keys can number; rows are then located chunk by chunk and gathered by
//! `interleave`, which merges dictionaries anew for each output. Columns that are never gathered
//! are dropped.

mod huge;
mod views;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{ArrowError, DataType, Schema};
use arrow_select::interleave::interleave;
use arrow_select::take::take;
use workahead_machine::pages::Supply;
use workahead_walks::walk::Row;

use crate::memory::ChargedBuffers;
use crate::row_bytes::{add_row_bytes, null_bytes, run_bytes, widest_row};
use crate::{JoinError, StopCheck};

/// Most bytes of one column in a chunk: half the range of 32-bit offsets.
const COLUMN_BYTES_MAX: usize = 1 << 30;

/// Stands for the build row of a probe row without a match: nulls.
pub(crate) const NO_ROW: Row = Row::MAX;

/// Columns in chunks of rows.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    types: Vec<DataType>,
    /// By column, then by chunk; with several chunks, the last one is a single null row. Empty for
    /// a column that is not kept.
    columns: Vec<Vec<ArrayRef>>,
    /// First row of each chunk.
    starts: Vec<usize>,
    /// Bytes of each column's widest value, or of a null; zero for a column that is not kept.
    widest: Vec<usize>,
}

/// Rows to gather.
pub(crate) enum Rows {
    /// A run of rows of the only chunk.
    Run {
        start: usize,
        rows: usize,
    },
    /// Of the only chunk.
    One(UInt32Array),
    Several(Vec<(usize, usize)>),
    /// A number of null rows.
    Nulls(usize),
}

impl Chunks {
    /// Concatenates the kept columns of some batches.
    pub(crate) fn new(
        batches: Vec<RecordBatch>,
        schema: &Schema,
        kept: &[bool],
        pages: &Supply,
        stop: &StopCheck,
    ) -> Result<Self, JoinError> {
        let types: Vec<_> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
        let mut starts = Vec::new();
        let mut columns = vec![Vec::new(); types.len()];
        let mut start = 0;
        for run in runs(batches, kept) {
            let rows = run.iter().map(RecordBatch::num_rows).sum::<usize>();
            starts.push(start);
            start += rows;
            join_columns(run, kept, (pages, stop), &mut columns)?;
        }
        if starts.len() > 1 {
            for ((chunks, data_type), _) in
                columns.iter_mut().zip(&types).zip(kept).filter(|(_, kept)| **kept)
            {
                chunks.push(new_null_array(data_type, 1));
            }
        }
        let widest = columns.iter().zip(&types).zip(kept).map(|((chunks, data_type), kept)| {
            let null = if *kept { null_bytes(data_type) } else { 0 };
            chunks.iter().map(|chunk: &ArrayRef| widest_row(chunk)).fold(null, usize::max)
        });
        let widest = widest.collect();
        Ok(Self { types, columns, starts, widest })
    }

    /// Bytes of a column's widest value.
    pub(crate) fn widest(&self, column: usize) -> usize {
        self.widest[column]
    }

    /// Bytes of the widest row, at most.
    pub(crate) fn widest_row(&self) -> usize {
        self.widest.iter().sum()
    }

    /// Adds the bytes of a kept column's values, row by row; of [`NO_ROW`] those of a null.
    pub(crate) fn add_row_bytes(&self, column: usize, rows: &[Row], to: &mut [usize]) {
        let (chunks, null) = (&self.columns[column], null_bytes(&self.types[column]));
        if null > 0 {
            let missing = rows.iter().zip(&mut *to).filter(|(row, _)| **row == NO_ROW);
            missing.for_each(|(_, to)| *to += null);
        }
        if let [only] = &chunks[..] {
            return add_row_bytes(only, rows, to);
        }
        for (row, to) in rows.iter().zip(to).filter(|(row, _)| **row != NO_ROW) {
            let (chunk, row) = self.locate(*row as usize);
            *to += run_bytes(&chunks[chunk], row..row + 1);
        }
    }

    fn locate(&self, row: usize) -> (usize, usize) {
        let chunk = self.starts.partition_point(|start| *start <= row) - 1;
        (chunk, row - self.starts[chunk])
    }

    /// Rows by number, prepared for [`gather`](Self::gather). [`NO_ROW`] is a row of nulls.
    pub(crate) fn rows_or_nulls(&self, rows: Vec<Row>) -> Rows {
        let missing = rows.iter().map(|row| u32::from(*row == NO_ROW)).sum::<u32>() as usize;
        match missing {
            0 => self.rows(rows),
            _ if missing == rows.len() => Rows::Nulls(missing),
            _ => match self.starts[..] {
                [_] => one_or_nulls(rows),
                _ => self.located(rows),
            },
        }
    }

    /// The same for rows without [`NO_ROW`].
    pub(crate) fn rows(&self, rows: Vec<Row>) -> Rows {
        match (rows.first(), &self.starts[..]) {
            (None, _) => Rows::Nulls(0),
            (Some(first), [_]) if rows.iter().zip(*first..).all(|(row, next)| *row == next) => {
                Rows::Run { start: *first as usize, rows: rows.len() }
            }
            (Some(_), [_]) => Rows::One(UInt32Array::from(rows)),
            (Some(_), _) => self.located(rows),
        }
    }

    /// Rows of several chunks.
    fn located(&self, rows: Vec<Row>) -> Rows {
        let located = rows.into_iter().map(|row| {
            if row == NO_ROW {
                return (self.starts.len(), 0);
            }
            self.locate(row as usize)
        });
        Rows::Several(located.collect())
    }

    /// A kept column, if it has one chunk.
    pub(crate) fn only(&self, column: usize) -> Option<&ArrayRef> {
        match &self.columns[column][..] {
            [array] => Some(array),
            _ => None,
        }
    }

    /// Frees a column that is not gathered from here.
    pub(crate) fn forget(&mut self, column: usize) {
        self.columns[column].clear();
    }

    /// The values of a kept column in some rows.
    pub(crate) fn gather(&self, column: usize, rows: &Rows) -> Result<ArrayRef, ArrowError> {
        let chunks = &self.columns[column];
        match rows {
            Rows::Run { start, rows } => Ok(chunks[0].slice(*start, *rows)),
            Rows::One(rows) => take(&chunks[0], rows, None),
            Rows::Several(rows) => {
                let chunks: Vec<&dyn Array> = chunks.iter().map(AsRef::as_ref).collect();
                interleave(&chunks, rows)
            }
            Rows::Nulls(rows) => Ok(new_null_array(&self.types[column], *rows)),
        }
    }

    /// Bytes of the arrays; shared buffers count once.
    pub(crate) fn bytes(&self) -> usize {
        let mut charged = ChargedBuffers::default();
        self.columns.iter().flatten().map(|array| charged.add_array(array)).sum()
    }
}

/// Rows of one chunk, with nulls for missing rows.
fn one_or_nulls(mut rows: Vec<Row>) -> Rows {
    let valid = BooleanBuffer::collect_bool(rows.len(), |at| rows[at] != NO_ROW);
    rows.iter_mut().filter(|row| **row == NO_ROW).for_each(|row| *row = 0);
    Rows::One(UInt32Array::new(rows.into(), Some(NullBuffer::new(valid))))
}

/// Cuts the batches into runs whose columns can be concatenated.
fn runs(batches: Vec<RecordBatch>, kept: &[bool]) -> Vec<Vec<RecordBatch>> {
    let mut runs = Vec::new();
    let mut run = Vec::new();
    let mut bytes = 0;
    for batch in batches.into_iter().filter(|batch| batch.num_rows() > 0) {
        let columns = || batch.columns().iter().zip(kept).filter(|(_, kept)| **kept);
        let largest = columns().map(|(column, _)| joined_bytes(column)).max();
        let largest = largest.unwrap_or(0);
        let fits = |last: &RecordBatch| {
            let last = last.columns().iter().zip(kept).filter(|(_, kept)| **kept);
            let mut pairs = columns().zip(last);
            bytes + largest <= COLUMN_BYTES_MAX
                && pairs.all(|((column, _), (last, _))| shares_dictionary(column, last))
        };
        if run.last().is_some_and(|last| !fits(last)) {
            runs.push(std::mem::take(&mut run));
            bytes = 0;
        }
        bytes += largest;
        run.push(batch);
    }
    if !run.is_empty() {
        runs.push(run);
    }
    runs
}

/// Whether two arrays of a type have the same dictionary, in the same memory; or none.
fn shares_dictionary(one: &ArrayRef, other: &ArrayRef) -> bool {
    match (one.as_any_dictionary_opt(), other.as_any_dictionary_opt()) {
        (Some(one), Some(other)) => one.values().to_data().ptr_eq(&other.values().to_data()),
        _ => !holds_dictionary(one.data_type()),
    }
}

/// Bytes that count against 32-bit offsets. Views count only themselves: their offsets are per
/// buffer.
fn joined_bytes(column: &ArrayRef) -> usize {
    match column.data_type() {
        DataType::Utf8View | DataType::BinaryView => column.len() * size_of::<u128>(),
        _ => run_bytes(column, 0..column.len()),
    }
}

/// Concatenates a run to one chunk, one column after the other, each freed as soon as it is copied.
fn join_columns(
    run: Vec<RecordBatch>,
    kept: &[bool],
    (pages, stop): (&Supply, &StopCheck),
    to: &mut [Vec<ArrayRef>],
) -> Result<(), JoinError> {
    let mut pieces: Vec<Vec<ArrayRef>> = vec![Vec::with_capacity(run.len()); to.len()];
    for batch in run {
        for (column, pieces) in batch.columns().iter().zip(&mut pieces) {
            pieces.push(column.clone());
        }
    }
    for ((pieces, chunks), kept) in pieces.into_iter().zip(to).zip(kept) {
        if *kept {
            stop.check()?;
            let arrays: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
            chunks.push(views::in_few_buffers(huge::joined(&arrays, pages)?));
        }
    }
    Ok(())
}

pub(crate) fn holds_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::Map(field, _) => holds_dictionary(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_dictionary(field.data_type())),
        DataType::Union(fields, _) => {
            fields.iter().any(|(_, field)| holds_dictionary(field.data_type()))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, Int8Array, StringArray};
    use arrow_schema::Field;
    use workahead_machine::pages::Pages;

    use super::*;

    /// Batches of a column with a dictionary of a hundred values: of 8-bit keys, no two would fit
    /// into one.
    fn batch(values: &ArrayRef) -> RecordBatch {
        let keys = Int8Array::from_iter_values(0..100);
        let column = DictionaryArray::<Int8Type>::new(keys, values.clone());
        RecordBatch::try_from_iter([("text", Arc::new(column) as ArrayRef)]).unwrap()
    }

    #[test]
    fn a_null_is_as_wide_as_its_type_makes_it() {
        let text = Field::new("text", DataType::Utf8, true);
        let binary = Field::new("binary", DataType::FixedSizeBinary(1_000), true);
        let wide = DataType::Struct(vec![text.clone(), binary].into());
        let schema = Schema::new(vec![text, Field::new("wide", wide, true)]);
        let (pages, stop) = (Pages::Small.into(), StopCheck::default());
        let chunks = Chunks::new(Vec::new(), &schema, &[true; 2], &pages, &stop).unwrap();
        for (column, expected) in [0, 1_000].into_iter().enumerate() {
            assert_eq!(chunks.widest(column), expected);
            let mut bytes = [1; 2];
            chunks.add_row_bytes(column, &[NO_ROW; 2], &mut bytes);
            assert_eq!(bytes, [1 + expected; 2]);
        }
    }

    #[test]
    fn batches_with_one_dictionary_are_one_chunk() {
        let values = || -> ArrayRef {
            Arc::new(StringArray::from_iter_values((0..100).map(|at| format!("text {at}"))))
        };
        let (one, other) = (batch(&values()), batch(&values()));
        let halves = [one.slice(0, 50), one.slice(50, 50)];
        let chunks = |batches: Vec<RecordBatch>| {
            let (pages, stop) = (Pages::Small.into(), StopCheck::default());
            Chunks::new(batches, &one.schema(), &[true], &pages, &stop).unwrap()
        };
        let shared = chunks([&halves[..], std::slice::from_ref(&one)].concat());
        assert_eq!(shared.starts, [0]);
        let gathered = shared.gather(0, &shared.rows(vec![7, 60, 107])).unwrap();
        let rows = UInt32Array::from(vec![7, 60, 7]);
        assert_eq!(&gathered, &take(one.column(0), &rows, None).unwrap());
        assert_eq!(chunks([&halves[..], &[other]].concat()).starts, [0, 100]);
    }
}
