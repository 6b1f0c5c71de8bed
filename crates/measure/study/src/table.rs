//! All observations of a result as one Parquet file: one row per sample or failure.
//!
//! Columns: `study, run_plan_fingerprint, engine, machine, tier, seed, cell, block, repetition,
//! slot, unix_ms`; `setting.NAME` as words (a setting may be a number in one cell and a word in
//! another); `protocol`; `wall_s, cpu_s, tuples, mtuples_per_s, answer_rows, answer_checksum`;
//! `measure.NAME`; `query_plan_fingerprint` of the cell, `query_plan` where the sample has it (once
//! per cell); `failure`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use workahead_machine::atomic_file::AtomicFile;

use crate::cell::Cell;
use crate::engine::Sample;
use crate::error::StudyError;
use crate::observation::{Observation, Outcome};
use crate::plans::PlanText;
use crate::results::Results;

/// Name of the file in the result directory.
pub const FILE: &str = "observations.parquet";

/// Rows that are columns in memory at once.
const BATCH_ROWS: usize = 4096;

/// Writes the file, whole or not at all. Returns its path.
pub fn write(dir: &Path, results: &Results) -> Result<PathBuf, StudyError> {
    let path = dir.join(FILE);
    let unwritten = |source| StudyError::Write { path: path.clone(), source };
    let wrong = |source: ParquetError| StudyError::Parquet { path: path.clone(), source };
    let file = AtomicFile::create_in(dir, FILE).map_err(unwritten)?;
    write_rows(&file, results).map_err(wrong)?;
    file.publish().map_err(unwritten)?;
    Ok(path)
}

/// Writes a batch of rows after the other: a word of the record in each of a million rows would be
/// more than a column of Arrow's may hold.
fn write_rows(file: &AtomicFile, results: &Results) -> Result<(), ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let columns = Columns::of(results);
    let rows: &[Observation] = &results.observations;
    let (first, rest) = rows.split_at(rows.len().min(BATCH_ROWS));
    // A result without samples has columns too.
    let batch = columns.batch(first)?;
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    for rows in rest.chunks(BATCH_ROWS) {
        writer.write(&columns.batch(rows)?)?;
    }
    writer.close().map(drop)
}

/// What all batches have.
struct Columns<'a> {
    results: &'a Results,
    /// Names of settings.
    settings: BTreeSet<&'a String>,
    /// Names of measures.
    measures: Vec<String>,
    /// The query plan's fingerprint of each cell.
    plans: Vec<Option<String>>,
}

type Column = (String, ArrayRef);

impl<'a> Columns<'a> {
    fn of(results: &'a Results) -> Self {
        let cells = &results.run_plan.cells;
        let fingerprint = |cell: &Cell| results.plan_of(cell.index).map(PlanText::fingerprint);
        Self {
            results,
            settings: cells.iter().flat_map(|cell| cell.settings.keys()).collect(),
            measures: results.measures(),
            plans: cells.iter().map(fingerprint).collect(),
        }
    }

    /// Rows as columns.
    fn batch(&self, rows: &[Observation]) -> Result<RecordBatch, ArrowError> {
        let mut columns = self.origin(rows);
        columns.extend(self.settings(rows));
        columns.extend(self.figures(rows));
        let columns = columns.into_iter().map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(columns)
    }

    /// Where a row comes from.
    fn origin(&self, rows: &[Observation]) -> Vec<Column> {
        let results = self.results;
        let record = &results.record;
        let same = |text: &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.iter().map(|_| text)))
        };
        let number = |of: &dyn Fn(&Observation) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(of)))
        };
        let small = |of: &dyn Fn(&Observation) -> usize| -> ArrayRef {
            let narrow = |row| u32::try_from(of(row)).unwrap_or(u32::MAX);
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(narrow)))
        };
        [
            ("study", same(&record.study)),
            ("run_plan_fingerprint", same(&record.run_plan_fingerprint)),
            ("engine", same(&format!("{} {}", record.engine, record.engine_version))),
            ("machine", same(&record.host.name)),
            ("tier", same(&record.host.tier)),
            ("seed", number(&|_| record.seed)),
            ("cell", small(&|row| row.cell)),
            ("block", small(&|row| results.run_plan.cells[row.cell].block)),
            ("repetition", small(&|row| row.repetition as usize)),
            ("slot", small(&|row| row.slot)),
            ("unix_ms", number(&|row| row.unix_ms)),
            ("protocol", protocols(results, rows)),
        ]
        .map(|(name, column)| (name.to_owned(), column))
        .into()
    }

    /// The settings.
    fn settings(&self, rows: &[Observation]) -> Vec<Column> {
        let column = |name: &&String| {
            let value = |row: &Observation| row.settings.get(*name).map(ToString::to_string);
            let column: ArrayRef = Arc::new(rows.iter().map(value).collect::<StringArray>());
            (format!("setting.{name}"), column)
        };
        self.settings.iter().map(column).collect()
    }

    /// The figures.
    fn figures(&self, rows: &[Observation]) -> Vec<Column> {
        let results = self.results;
        let float = |of: &dyn Fn(&Sample) -> Option<f64>| -> ArrayRef {
            let values = rows.iter().map(|row| row.sample().and_then(of));
            Arc::new(values.collect::<Float64Array>())
        };
        let whole = |of: &dyn Fn(&Sample) -> u64| -> ArrayRef {
            Arc::new(rows.iter().map(|row| row.sample().map(of)).collect::<UInt64Array>())
        };
        let failure = |row: &Observation| match &row.outcome {
            Outcome::Failed { failure } => Some(failure.clone()),
            Outcome::Sample(_) => None,
        };
        let mut columns: Vec<Column> = vec![
            ("wall_s".to_owned(), float(&|sample| Some(sample.wall_s))),
            ("cpu_s".to_owned(), float(&|sample| sample.cpu_s)),
            ("tuples".to_owned(), whole(&|sample| sample.tuples)),
            (
                "mtuples_per_s".to_owned(),
                float(&|sample| results.is_timed().then(|| sample.mtuples_per_s())),
            ),
            ("answer_rows".to_owned(), whole(&|sample| sample.answer.rows)),
            ("answer_checksum".to_owned(), whole(&|sample| sample.answer.checksum)),
        ];
        for name in &self.measures {
            let column = float(&|sample| sample.measures.get(name).copied());
            columns.push((format!("measure.{name}"), column));
        }
        let planned = |row: &Observation| self.plans[row.cell].clone();
        let own = |row: &Observation| Some(row.sample()?.plan.as_ref()?.text.clone());
        let words = |of: &dyn Fn(&Observation) -> Option<String>| -> ArrayRef {
            Arc::new(rows.iter().map(of).collect::<StringArray>())
        };
        columns.push(("query_plan_fingerprint".to_owned(), words(&planned)));
        columns.push(("query_plan".to_owned(), words(&own)));
        let failures: ArrayRef = Arc::new(rows.iter().map(failure).collect::<StringArray>());
        columns.push(("failure".to_owned(), failures));
        columns
    }
}

/// Warm or cold, by name.
fn protocols(results: &Results, rows: &[Observation]) -> ArrayRef {
    let name = |row: &Observation| results.run_plan.cells[row.cell].protocol.start.name();
    Arc::new(StringArray::from_iter_values(rows.iter().map(name)))
}

#[cfg(test)]
mod tests;
