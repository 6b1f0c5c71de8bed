//! Gathers rows of both sides into arrays.

use std::ops::Range;

use arrow_array::builder::BooleanBuilder;
use arrow_array::{Array, new_null_array};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::ArrowError;
use arrow_select::filter::filter;
use arrow_select::take::take;
use workahead_walks::walk::Row;

use crate::filter::Filter;
use crate::in_memory_build_side::InMemoryBuildSide;
use crate::match_generation::{MatchGenerator, Matches};
use crate::output_columns::ColumnSource;
use crate::output_size::OutputBound;
use crate::{JoinError, JoinSpec};

/// Rows of the probe batch to gather.
enum ProbeRows {
    /// A run of rows, each once, as if every row has one match: no copy.
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

/// Takes generated matches, as many as fit, and gathers their output batch.
pub(crate) fn output(
    table: &InMemoryBuildSide,
    generator: &mut MatchGenerator,
) -> Result<RecordBatch, JoinError> {
    let spec = &table.spec;
    let bound =
        OutputBound { table, batch: generator.batch.as_ref(), columns: &table.match_sources };
    let rows = bound.rows_that_fit(&generator.out);
    let Matches { run, probe, build, values } = generator.out.take_first(rows);
    let payload = table.data.payload.as_ref().map(|payload| payload.array(values)).transpose()?;
    let batch = generator.batch.as_ref().expect("rows are of a batch");
    let marks = spec.join_type.is_mark().then(|| {
        let marked = |at: usize| generator.matched.get(probe[at] as usize);
        BooleanArray::new(BooleanBuffer::collect_bool(rows, marked), None)
    });
    let probe_rows = ProbeRows::of(run, probe);
    let build_rows = if spec.join_type.null_extends(spec.build_side) {
        table.data.chunks.rows_or_nulls(build)
    } else {
        table.data.chunks.rows(build)
    };
    let arrays = table.match_sources.iter().map(|source| match (*source, &marks) {
        (ColumnSource::Mark, Some(marks)) => Ok(std::sync::Arc::new(marks.clone()) as ArrayRef),
        (ColumnSource::Column(side, column), _) if side == spec.build_side => match &payload {
            Some(values) => Ok(values.clone()),
            None => table.data.chunks.gather(column, &build_rows),
        },
        (ColumnSource::Column(_, column), _) => probe_rows.gather(batch.column(column)),
        (ColumnSource::Mark, None) => unreachable!("only mark joins have marks"),
    });
    let arrays = arrays.collect::<Result<_, _>>()?;
    generator.metrics.output_rows += rows as u64;
    batch_of(table, arrays, rows)
}

/// Build rows without matching probe rows, or semi-join and mark results of the build side.
pub(crate) fn unmatched_build(
    table: &InMemoryBuildSide,
    rows: Vec<Row>,
    mark: impl Fn(Row) -> bool,
) -> Result<RecordBatch, JoinError> {
    let spec = &table.spec;
    let count = rows.len();
    let marks = spec
        .join_type
        .is_mark()
        .then(|| BooleanArray::new(BooleanBuffer::collect_bool(count, |at| mark(rows[at])), None));
    let rows = table.data.chunks.rows(rows);
    let arrays = spec.output_columns.sources.iter().map(|source| match (*source, &marks) {
        (ColumnSource::Mark, Some(marks)) => Ok(std::sync::Arc::new(marks.clone()) as ArrayRef),
        (ColumnSource::Column(side, column), _) if side == spec.build_side => {
            table.data.chunks.gather(column, &rows)
        }
        (ColumnSource::Column(side, column), _) => {
            Ok(new_null_array(spec.schema_of(side).field(column).data_type(), count))
        }
        (ColumnSource::Mark, None) => unreachable!("only mark joins have marks"),
    });
    let arrays = arrays.collect::<Result<_, ArrowError>>()?;
    batch_of(table, arrays, count)
}

/// The same for the rows of a probe batch that are selected by `wanted`.
pub(crate) fn unmatched_probe(
    spec: &JoinSpec,
    batch: &RecordBatch,
    selected: &BooleanArray,
    marks: &BooleanArray,
) -> Result<RecordBatch, JoinError> {
    let count = selected.true_count();
    let arrays = spec.output_columns.sources.iter().map(|source| match *source {
        ColumnSource::Mark => filter(marks, selected),
        ColumnSource::Column(side, column) if side == spec.build_side => {
            Ok(new_null_array(spec.schema_of(side).field(column).data_type(), count))
        }
        ColumnSource::Column(_, column) => filter(batch.column(column), selected),
    });
    let arrays = arrays.collect::<Result<_, ArrowError>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    Ok(RecordBatch::try_new_with_options(spec.schema(), arrays, &options)?)
}

fn batch_of(
    table: &InMemoryBuildSide,
    arrays: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, JoinError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(table.spec.schema(), arrays, &options)?)
}

/// Evaluates the filter on candidate matches, on as many at a time as fit.
pub(crate) fn evaluate_filter(
    table: &InMemoryBuildSide,
    condition: &Filter,
    batch: &RecordBatch,
    candidates: &Matches,
) -> Result<BooleanArray, JoinError> {
    let columns =
        condition.columns.iter().map(|&(side, column)| ColumnSource::Column(side, column));
    let columns: Vec<_> = columns.collect();
    let bound = OutputBound { table, batch: Some(batch), columns: &columns };
    let all = candidates.len();
    let rows = bound.rows_that_fit(candidates);
    if rows == all {
        return evaluate(table, condition, batch, candidates);
    }
    let (probe, build) = (candidates.probe.clone(), candidates.build.clone());
    let mut left = Matches { probe, build, ..Matches::default() };
    let mut accepted = BooleanBuilder::with_capacity(all);
    while left.len() > 0 {
        table.spec.stop.check()?;
        let part = left.take_first(bound.rows_that_fit(&left));
        accepted.append_array(&evaluate(table, condition, batch, &part)?);
    }
    Ok(accepted.finish())
}

fn evaluate(
    table: &InMemoryBuildSide,
    condition: &Filter,
    batch: &RecordBatch,
    candidates: &Matches,
) -> Result<BooleanArray, JoinError> {
    let probe_rows = ProbeRows::of(0..0, candidates.probe.clone());
    let build_rows = table.data.chunks.rows(candidates.build.clone());
    let arrays = condition.columns.iter().map(|&(side, column)| {
        if side == table.build_side() {
            table.data.chunks.gather(column, &build_rows)
        } else {
            probe_rows.gather(batch.column(column))
        }
    });
    let options = RecordBatchOptions::new().with_row_count(Some(candidates.len()));
    let arrays = arrays.collect::<Result<_, _>>()?;
    let chunk = RecordBatch::try_new_with_options(condition.schema.clone(), arrays, &options)?;
    let accepted = condition.filter.evaluate(&chunk)?;
    if accepted.len() != candidates.len() {
        let (results, rows) = (accepted.len(), candidates.len());
        return Err(JoinError::FilterLength { results, rows });
    }
    Ok(accepted)
}
