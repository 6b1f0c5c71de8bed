//! Output formats of rows, for people and for other programs.

use std::io::{self, Write};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json;
use datafusion::arrow::util::pretty::pretty_format_batches_with_schema;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

/// The most rows in a printed table.
const TABLE_ROWS_MAX: usize = 1000;

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table with borders; the first thousand rows.
    Table,
    /// With a header line.
    Csv,
    /// One object per line.
    Json,
    /// Compressed with Snappy.
    Parquet,
}

/// Rows could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The writer failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A type that the format does not support.
    #[error(transparent)]
    Arrow(ArrowError),
    /// Parquet could not be written.
    #[error(transparent)]
    Parquet(ParquetError),
}

impl From<ArrowError> for OutputError {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, source) => Self::Io(source),
            other => Self::Arrow(other),
        }
    }
}

impl From<ParquetError> for OutputError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(source) => Self::Io(*source),
                Err(other) => Self::Parquet(ParquetError::External(other)),
            },
            other => Self::Parquet(other),
        }
    }
}

/// Writes batches in a format.
pub struct RowWriter<W: Write + Send> {
    encoder: Encoder<W>,
    rows: u64,
}

enum Encoder<W: Write + Send> {
    Table { to: W, schema: SchemaRef, batches: Vec<RecordBatch>, rows_left: usize },
    Csv(Box<csv::Writer<W>>),
    Json(json::LineDelimitedWriter<W>),
    Parquet(Box<ArrowWriter<W>>),
}

impl<W: Write + Send> RowWriter<W> {
    /// A writer of rows of this schema.
    ///
    /// # Errors
    /// When the schema has a type that the format does not support.
    pub fn new(format: Format, schema: SchemaRef, to: W) -> Result<Self, OutputError> {
        let encoder = match format {
            Format::Table => {
                Encoder::Table { to, schema, batches: Vec::new(), rows_left: TABLE_ROWS_MAX }
            }
            Format::Csv => {
                let mut writer = csv::WriterBuilder::new().with_header(true).build(to);
                // The header, also without rows.
                writer.write(&RecordBatch::new_empty(schema))?;
                Encoder::Csv(Box::new(writer))
            }
            Format::Json => Encoder::Json(json::LineDelimitedWriter::new(to)),
            Format::Parquet => {
                let properties =
                    WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                Encoder::Parquet(Box::new(ArrowWriter::try_new(to, schema, Some(properties))?))
            }
        };
        Ok(Self { encoder, rows: 0 })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When they can't be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), OutputError> {
        self.rows += batch.num_rows() as u64;
        match &mut self.encoder {
            Encoder::Table { batches, rows_left, .. } => {
                let rows = batch.num_rows().min(*rows_left);
                if rows > 0 {
                    batches.push(batch.slice(0, rows));
                    *rows_left -= rows;
                }
            }
            Encoder::Csv(writer) => writer.write(batch)?,
            Encoder::Json(writer) => writer.write(batch)?,
            Encoder::Parquet(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    /// Rows added so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn finish(self) -> Result<(), OutputError> {
        match self.encoder {
            Encoder::Table { mut to, schema, batches, .. } => {
                let table = pretty_format_batches_with_schema(schema, &batches)?;
                writeln!(to, "{table}")?;
                if self.rows > TABLE_ROWS_MAX as u64 {
                    let more = self.rows - TABLE_ROWS_MAX as u64;
                    writeln!(to, "and {more} more rows: --format csv or --out has them all")?;
                }
                to.flush()?;
            }
            Encoder::Csv(writer) => writer.into_inner().flush()?,
            Encoder::Json(mut writer) => {
                writer.finish()?;
                writer.into_inner().flush()?;
            }
            Encoder::Parquet(writer) => writer.into_inner()?.flush()?,
        }
        Ok(())
    }
}

impl<W: Write + Send> std::fmt::Debug for RowWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowWriter").field("rows", &self.rows).finish_non_exhaustive()
    }
}
