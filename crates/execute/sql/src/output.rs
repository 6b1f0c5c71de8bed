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

/// Rows that a table shows; what is longer is for programs.
const TABLE_ROWS: usize = 1000;

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// With lines around the cells; the first thousand rows.
    Table,
    /// With a line of column names.
    Csv,
    /// An object a line.
    Json,
    /// Columns, compressed with Snappy.
    Parquet,
}

/// Rows could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The writer failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A type that the form can't show.
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

/// Writes batches in a form.
pub struct RowWriter<W: Write + Send> {
    form: Form<W>,
    rows: u64,
}

enum Form<W: Write + Send> {
    Table { to: W, schema: SchemaRef, shown: Vec<RecordBatch>, left: usize },
    Csv(Box<csv::Writer<W>>),
    Json(json::LineDelimitedWriter<W>),
    Parquet(Box<ArrowWriter<W>>),
}

impl<W: Write + Send> RowWriter<W> {
    /// A writer of rows of this schema.
    ///
    /// # Errors
    /// When the schema has a type that the form can't take.
    pub fn new(format: Format, schema: SchemaRef, to: W) -> Result<Self, OutputError> {
        let form = match format {
            Format::Table => Form::Table { to, schema, shown: Vec::new(), left: TABLE_ROWS },
            Format::Csv => {
                let mut writer = csv::WriterBuilder::new().with_header(true).build(to);
                // The names, also when no row comes.
                writer.write(&RecordBatch::new_empty(schema))?;
                Form::Csv(Box::new(writer))
            }
            Format::Json => Form::Json(json::LineDelimitedWriter::new(to)),
            Format::Parquet => {
                let properties =
                    WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                Form::Parquet(Box::new(ArrowWriter::try_new(to, schema, Some(properties))?))
            }
        };
        Ok(Self { form, rows: 0 })
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When they can't be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), OutputError> {
        self.rows += batch.num_rows() as u64;
        match &mut self.form {
            Form::Table { shown, left, .. } => {
                let rows = batch.num_rows().min(*left);
                if rows > 0 {
                    shown.push(batch.slice(0, rows));
                    *left -= rows;
                }
            }
            Form::Csv(writer) => writer.write(batch)?,
            Form::Json(writer) => writer.write(batch)?,
            Form::Parquet(writer) => writer.write(batch)?,
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
        match self.form {
            Form::Table { mut to, schema, shown, .. } => {
                let table = pretty_format_batches_with_schema(schema, &shown)?;
                writeln!(to, "{table}")?;
                if self.rows > TABLE_ROWS as u64 {
                    let more = self.rows - TABLE_ROWS as u64;
                    writeln!(to, "and {more} more rows: --format csv or --out has them all")?;
                }
                to.flush()?;
            }
            Form::Csv(writer) => writer.into_inner().flush()?,
            Form::Json(mut writer) => {
                writer.finish()?;
                writer.into_inner().flush()?;
            }
            Form::Parquet(writer) => writer.into_inner()?.flush()?,
        }
        Ok(())
    }
}

impl<W: Write + Send> std::fmt::Debug for RowWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowWriter").field("rows", &self.rows).finish_non_exhaustive()
    }
}
