//! Rows of both sides made into arrays.

use std::ops::Range;

use arrow_array::{Array, new_null_array};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::ArrowError;
use arrow_select::filter::filter;
use arrow_select::take::take;
use workahead_walks::walk::Row;

use crate::filter::Filter;
use crate::layout::Source;
use crate::pairing::{Pairing, Pairs};
use crate::resident::Resident;
use crate::{JoinError, JoinSpec};

/// Rows of the probe batch to gather.
enum ProbeRows {
    /// Each of a run once, as where every row has one match: no copy.
    Run {
        start: usize,
        rows: usize,
    },
    Picked(UInt32Array),
}

impl ProbeRows {
    fn of(run: Range<Row>, rows: Vec<Row>) -> Self {
        let Some(&start) = rows.first() else {
            return Self::Run { start: run.start as usize, rows: run.len() };
        };
        if rows.iter().zip(start..).all(|(row, next)| *row == next) {
            return Self::Run { start: start as usize, rows: rows.len() };
        }
        Self::Picked(UInt32Array::from(rows))
    }

    fn gather(&self, array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
        match self {
            Self::Run { start, rows } => Ok(array.slice(*start, *rows)),
            Self::Picked(rows) => take(array, rows, None),
        }
    }
}

/// The output batch of a pairing's rows, which are taken from it.
pub(crate) fn output(table: &Resident, pairing: &mut Pairing) -> Result<RecordBatch, JoinError> {
    let spec = &table.spec;
    let rows = pairing.out.len();
    let Pairs { run, probe, build, values } = std::mem::take(&mut pairing.out);
    let inline = table.inside.inline.as_ref().map(|inline| inline.array(values)).transpose()?;
    let batch = pairing.batch.as_ref().expect("rows are of a batch");
    let marks = spec.join_type.marks().then(|| {
        let marked = |at: usize| pairing.matched.get(probe[at] as usize);
        BooleanArray::new(BooleanBuffer::collect_bool(rows, marked), None)
    });
    let probe_rows = ProbeRows::of(run, probe);
    let build_rows = if spec.join_type.nulls(spec.build_side) {
        table.inside.chunks.rows_or_nulls(build)
    } else {
        table.inside.chunks.rows(build)
    };
    let arrays = table.pair_sources.iter().map(|source| match (*source, &marks) {
        (Source::Mark, Some(marks)) => Ok(std::sync::Arc::new(marks.clone()) as ArrayRef),
        (Source::Column(side, column), _) if side == spec.build_side => match &inline {
            Some(values) => Ok(values.clone()),
            None => table.inside.chunks.gather(column, &build_rows),
        },
        (Source::Column(_, column), _) => probe_rows.gather(batch.column(column)),
        (Source::Mark, None) => unreachable!("only mark joins have marks"),
    });
    let arrays = arrays.collect::<Result<_, _>>()?;
    pairing.metrics.output_rows += rows as u64;
    batch_of(table, arrays, rows)
}

/// Build rows as they come out alone.
pub(crate) fn alone(
    table: &Resident,
    rows: Vec<Row>,
    mark: impl Fn(Row) -> bool,
) -> Result<RecordBatch, JoinError> {
    let spec = &table.spec;
    let count = rows.len();
    let marks = spec
        .join_type
        .marks()
        .then(|| BooleanArray::new(BooleanBuffer::collect_bool(count, |at| mark(rows[at])), None));
    let rows = table.inside.chunks.rows(rows);
    let arrays = spec.layout.sources.iter().map(|source| match (*source, &marks) {
        (Source::Mark, Some(marks)) => Ok(std::sync::Arc::new(marks.clone()) as ArrayRef),
        (Source::Column(side, column), _) if side == spec.build_side => {
            table.inside.chunks.gather(column, &rows)
        }
        (Source::Column(side, column), _) => {
            Ok(new_null_array(spec.schema_of(side).field(column).data_type(), count))
        }
        (Source::Mark, None) => unreachable!("only mark joins have marks"),
    });
    let arrays = arrays.collect::<Result<_, ArrowError>>()?;
    batch_of(table, arrays, count)
}

/// Probe rows as they come out alone, by row of a batch, and whether each has a match.
pub(crate) fn probe_alone(
    spec: &JoinSpec,
    batch: &RecordBatch,
    wanted: &BooleanArray,
    marks: &BooleanArray,
) -> Result<RecordBatch, JoinError> {
    let count = wanted.true_count();
    let arrays = spec.layout.sources.iter().map(|source| match *source {
        Source::Mark => filter(marks, wanted),
        Source::Column(side, column) if side == spec.build_side => {
            Ok(new_null_array(spec.schema_of(side).field(column).data_type(), count))
        }
        Source::Column(_, column) => filter(batch.column(column), wanted),
    });
    let arrays = arrays.collect::<Result<_, ArrowError>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    Ok(RecordBatch::try_new_with_options(spec.schema(), arrays, &options)?)
}

fn batch_of(
    table: &Resident,
    arrays: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, JoinError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(table.spec.schema(), arrays, &options)?)
}

/// What a filter says of pairs.
pub(crate) fn wanted(
    table: &Resident,
    condition: &Filter,
    batch: &RecordBatch,
    pairs: &Pairs,
) -> Result<BooleanArray, JoinError> {
    let probe_rows = ProbeRows::of(0..0, pairs.probe.clone());
    let build_rows = table.inside.chunks.rows(pairs.build.clone());
    let arrays = condition.columns.iter().map(|&(side, column)| {
        if side == table.build_side() {
            table.inside.chunks.gather(column, &build_rows)
        } else {
            probe_rows.gather(batch.column(column))
        }
    });
    let options = RecordBatchOptions::new().with_row_count(Some(pairs.len()));
    let arrays = arrays.collect::<Result<_, _>>()?;
    let chunk = RecordBatch::try_new_with_options(condition.schema.clone(), arrays, &options)?;
    let wanted = condition.filter.evaluate(&chunk)?;
    if wanted.len() != pairs.len() {
        let (given, pairs) = (wanted.len(), pairs.len());
        return Err(JoinError::FilterAnswers { given, pairs });
    }
    Ok(wanted)
}
