//! An input file of the join: its schema and size, before any row is read.

mod parquet;
mod stream;

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;

use self::parquet::ParquetInput;
pub(crate) use self::parquet::Part;
pub(crate) use self::stream::Batches;
use self::stream::StreamedInput;
use super::format::Format;
use super::units::Unit;
use crate::errors::WrongUse;

/// An open file, and the columns to read.
pub(crate) struct Input {
    path: PathBuf,
    format: Format,
    bytes: u64,
    kind: Kind,
}

enum Kind {
    /// Any thread may read any part.
    Parquet(ParquetInput),
    /// Read from start to end.
    Streamed(StreamedInput),
}

impl Input {
    pub(crate) fn open(path: &Path, option: Option<Format>) -> anyhow::Result<Self> {
        let format = Format::of_input(path, option);
        let file = open(path, format)?;
        let bytes = file.metadata().map_or(0, |file| file.len());
        let kind = match format {
            Format::Parquet => ParquetInput::open(&file).map(Kind::Parquet),
            _ => StreamedInput::open(file, format).map(Kind::Streamed),
        };
        let kind = kind.map_err(|error| damaged(path, format, error))?;
        Ok(Self { path: path.to_owned(), format, bytes, kind })
    }

    /// Refuses a key that is not a column.
    pub(crate) fn require(&self, column: &str, side: &str) -> anyhow::Result<()> {
        let schema = self.schema();
        let fields = schema.fields();
        if fields.iter().any(|field| field.name() == column) {
            return Ok(());
        }
        let known: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
        Err(WrongUse::error(format!(
            "the {side} file {} has no column {column:?}: choose from {}",
            self.path.display(),
            known.join(", ")
        )))
    }

    /// Reads only these columns: in the file's order, each once.
    pub(crate) fn keep_only<'a>(&mut self, columns: impl Iterator<Item = &'a str>) {
        let schema = self.schema();
        let mut kept: Vec<_> = columns.filter_map(|name| schema.index_of(name).ok()).collect();
        kept.sort_unstable();
        kept.dedup();
        match &mut self.kind {
            Kind::Parquet(input) => input.keep_only(kept),
            Kind::Streamed(input) => input.keep_only(kept),
        }
    }

    /// The columns that are read.
    pub(crate) fn schema(&self) -> SchemaRef {
        match &self.kind {
            Kind::Parquet(input) => input.schema(),
            Kind::Streamed(input) => input.schema(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.bytes
    }

    /// Estimated bytes of all rows in memory.
    pub(crate) fn row_bytes(&self) -> u64 {
        match &self.kind {
            Kind::Parquet(input) => input.row_bytes(),
            Kind::Streamed(_) => self.bytes,
        }
    }

    /// Rows, if the metadata has their number.
    pub(crate) fn rows(&self) -> Option<u64> {
        match &self.kind {
            Kind::Parquet(input) => Some(input.rows()),
            Kind::Streamed(_) => None,
        }
    }

    /// The highest value of an integer column minus the lowest, if the metadata has them.
    pub(crate) fn span(&self, column: &str) -> Option<u64> {
        match &self.kind {
            Kind::Parquet(input) => input.span(column),
            Kind::Streamed(_) => None,
        }
    }

    /// Rows of each row group, if there are any.
    pub(crate) fn row_groups(&self) -> Option<Vec<usize>> {
        match &self.kind {
            Kind::Parquet(input) => Some(input.row_groups()),
            Kind::Streamed(_) => None,
        }
    }

    /// Estimated memory of reading, for each thread.
    pub(crate) fn reading_bytes(&self) -> usize {
        match &self.kind {
            Kind::Parquet(input) => input.reading_bytes(),
            Kind::Streamed(input) => input.reading_bytes(),
        }
    }

    /// Reads a part of a file with row groups, in batches of at most `batch_rows`.
    pub(crate) fn read(&self, unit: Unit, batch_rows: usize) -> anyhow::Result<Option<Part>> {
        let Kind::Parquet(input) = &self.kind else { return Ok(None) };
        let file = open(&self.path, self.format)?;
        input.read(file, unit, batch_rows).map(Some).map_err(|error| self.damaged(error))
    }

    /// Reads a file without row groups from start to end.
    pub(crate) fn read_all(&self, batch_rows: usize) -> anyhow::Result<Option<Batches>> {
        let Kind::Streamed(input) = &self.kind else { return Ok(None) };
        let file = open(&self.path, self.format)?;
        input.read(file, batch_rows).map(Some).map_err(|error| self.damaged(error))
    }

    /// The error for a file that can't be decoded.
    pub(crate) fn damaged<E>(&self, error: E) -> anyhow::Error
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        damaged(&self.path, self.format, anyhow::Error::new(error))
    }
}

fn open(path: &Path, format: Format) -> anyhow::Result<File> {
    let shown = path.display();
    if path.is_dir() {
        anyhow::bail!("{shown} is a directory: name {}", format.name());
    }
    File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!("no such file {shown}: check the path"),
        _ => anyhow::Error::new(error).context(format!("can't open {shown}")),
    })
}

fn damaged(path: &Path, format: Format, error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error: anyhow::Error = error.into();
    error.context(format!("{} is not {}, or it is damaged", path.display(), format.name()))
}
