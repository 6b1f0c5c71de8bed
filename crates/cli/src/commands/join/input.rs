//! A Parquet file to be joined: its schema and row counts, from the metadata alone.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::PageIndexPolicy;

use super::units::Unit;
use crate::errors::WrongUse;

/// What a page of a column holds, as most writers make them.
const PAGE_BYTES: usize = 1 << 20;

/// An open Parquet file, and the columns wanted of it.
pub(crate) struct Input {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    /// Columns to read; all if none are named.
    columns: Option<Vec<usize>>,
}

impl Input {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let file = open(path)?;
        // Where pages lie: a part of a row group is then found without decoding what is before it.
        let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&file, options).map_err(|e| damaged(path, e))?;
        Ok(Self { path: path.to_owned(), metadata, columns: None })
    }

    /// Refuses a key that is not there.
    pub(crate) fn require(&self, column: &str, side: &str) -> anyhow::Result<()> {
        let fields = self.metadata.schema().fields();
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

    /// Reads some columns and no other: in the file's order, each once.
    pub(crate) fn keep_only<'a>(&mut self, columns: impl Iterator<Item = &'a str>) {
        let schema = self.metadata.schema();
        let mut kept: Vec<_> = columns.filter_map(|name| schema.index_of(name).ok()).collect();
        kept.sort_unstable();
        kept.dedup();
        self.columns = Some(kept);
    }

    /// The columns that are read.
    pub(crate) fn schema(&self) -> SchemaRef {
        let schema = self.metadata.schema();
        match &self.columns {
            None => schema.clone(),
            Some(columns) => {
                let fields: Vec<_> =
                    columns.iter().map(|column| schema.fields()[*column].clone()).collect();
                Arc::new(Schema::new(fields))
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn rows(&self) -> u64 {
        self.metadata.metadata().file_metadata().num_rows().max(0) as u64
    }

    /// What reading takes in each thread, about: of each column a page as it is in the file, and
    /// as it is not.
    pub(crate) fn reading_bytes(&self) -> usize {
        let wanted = |column: usize| match &self.columns {
            Some(columns) => {
                let leaves = self.metadata.parquet_schema();
                columns.contains(&leaves.get_column_root_idx(column))
            }
            None => true,
        };
        let mut largest = HashMap::<usize, usize>::new();
        for group in self.metadata.metadata().row_groups() {
            for (at, chunk) in group.columns().iter().enumerate().filter(|(at, _)| wanted(*at)) {
                let bytes = chunk.uncompressed_size().max(0) as usize;
                let most = largest.entry(at).or_default();
                *most = bytes.clamp(*most, PAGE_BYTES.max(*most));
            }
        }
        largest.values().map(|bytes| 2 * bytes).sum()
    }

    /// Rows of each row group.
    pub(crate) fn row_groups(&self) -> impl Iterator<Item = usize> {
        let groups = self.metadata.metadata().row_groups().iter();
        groups.map(|group| group.num_rows().max(0) as usize)
    }

    /// Reads a part, in batches of at most `batch_rows`.
    pub(crate) fn read(
        &self,
        unit: Unit,
        batch_rows: usize,
    ) -> anyhow::Result<ParquetRecordBatchReader> {
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
            open(&self.path)?,
            self.metadata.clone(),
        );
        let projection = match &self.columns {
            None => ProjectionMask::all(),
            Some(columns) => {
                ProjectionMask::roots(builder.parquet_schema(), columns.iter().copied())
            }
        };
        builder
            .with_projection(projection)
            .with_row_groups(vec![unit.row_group])
            .with_offset(unit.rows.start)
            .with_limit(unit.rows.len())
            .with_batch_size(batch_rows)
            .build()
            .map_err(|error| damaged(&self.path, error))
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    let shown = path.display();
    if path.is_dir() {
        anyhow::bail!("{shown} is a directory: name a Parquet file");
    }
    File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!("there is no file {shown}: check the path"),
        _ => anyhow::Error::new(error).context(format!("can't open {shown}")),
    })
}

/// What a file that can't be decoded is called.
pub(crate) fn damaged(path: &Path, error: ParquetError) -> anyhow::Error {
    Err::<(), _>(error)
        .with_context(|| format!("{} is not a Parquet file, or it is damaged", path.display()))
        .unwrap_err()
}
