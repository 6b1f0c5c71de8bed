//! A Parquet file whose row groups are encoded by many threads and appended by one.
//!
//! ```text
//! worker: encoder ──write batch…──► finish ──► EncodedRowGroup ─┐
//! worker: encoder ──write batch…──► finish ──► EncodedRowGroup ─┴─► append ──► publish
//! ```
//!
//! Encoding (dictionaries, compression) is where the time goes; appending copies bytes. The file
//! has its final name only once it is complete ([`AtomicFile`]).

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves,
};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use workahead_machine::atomic_file::AtomicFile;
use workahead_machine::guarded::guarded;

use crate::WorkloadError;

/// A dictionary as large as this is given up: most values are new, and looking each up costs more
/// than all the rest of writing it.
const DICTIONARY_BYTES: usize = 256 << 10;

/// A Parquet file under construction.
pub struct RowGroupFile {
    writer: SerializedFileWriter<BufWriter<File>>,
    encoders: RowGroupEncoders,
    file: AtomicFile,
    /// Why a row group could not be written. Others can't be put after half a one.
    broken: Option<String>,
}

/// Makes encoders, for any thread.
#[derive(Clone)]
pub struct RowGroupEncoders {
    schema: SchemaRef,
    factory: Arc<ArrowRowGroupWriterFactory>,
    path: Arc<Path>,
}

/// One row group being encoded.
pub struct RowGroupEncoder {
    schema: SchemaRef,
    columns: Vec<ArrowColumnWriter>,
    rows: u64,
    path: Arc<Path>,
}

/// One row group, encoded.
pub struct EncodedRowGroup {
    chunks: Vec<ArrowColumnChunk>,
    rows: u64,
}

impl RowGroupFile {
    /// Starts a file that will replace `path`. Snappy pages: fast to read back, and every reader
    /// knows them.
    ///
    /// # Errors
    /// When `path` can't be written to, or Parquet has no form for a type of the schema.
    pub fn create(path: &Path, schema: SchemaRef) -> Result<Self, WorkloadError> {
        refuse_unions(&schema).map_err(|source| failed(path, source))?;
        let file = AtomicFile::create(path).map_err(|source| failed(path, source))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_dictionary_page_size_limit(DICTIONARY_BYTES)
            .build();
        let handle = file.file().try_clone().map_err(|source| failed(path, source))?;
        let buffered = BufWriter::with_capacity(1 << 20, handle);
        let (writer, factory) = encoded(path, || {
            let writer = ArrowWriter::try_new(buffered, schema.clone(), Some(properties))?;
            writer.into_serialized_writer()
        })?;
        let factory = Arc::new(factory);
        let encoders = RowGroupEncoders { schema, factory, path: path.into() };
        Ok(Self { writer, encoders, file, broken: None })
    }

    /// A maker of encoders for this file.
    #[must_use]
    pub fn encoders(&self) -> RowGroupEncoders {
        self.encoders.clone()
    }

    /// Appends a row group. An empty one is left out.
    ///
    /// # Errors
    /// When the file can't be written; then with the same words each time.
    pub fn append(&mut self, group: EncodedRowGroup) -> Result<(), WorkloadError> {
        if group.rows == 0 {
            return Ok(());
        }
        if self.broken.is_none() {
            self.broken = self.put(group).err().map(|error| error.to_string());
        }
        match &self.broken {
            None => Ok(()),
            Some(why) => Err(failed(&self.encoders.path, io::Error::other(why.clone()))),
        }
    }

    fn put(&mut self, group: EncodedRowGroup) -> Result<(), ParquetError> {
        let mut writer = self.writer.next_row_group()?;
        for chunk in group.chunks {
            chunk.append_to_row_group(&mut writer)?;
        }
        writer.close().map(drop)
    }

    /// Ends the file and gives it its name. Returns its size in bytes.
    ///
    /// # Errors
    /// When it can't be completed; nothing is left behind then.
    pub fn publish(self) -> Result<u64, WorkloadError> {
        let Self { writer, encoders, file, .. } = self;
        let path = &encoders.path;
        let buffered = writer.into_inner().map_err(|error| unparquet(path, error))?;
        let handle = buffered.into_inner().map_err(|error| failed(path, error.into_error()))?;
        let bytes = handle.metadata().map_err(|source| failed(path, source))?.len();
        file.publish().map_err(|source| failed(path, source))?;
        Ok(bytes)
    }
}

impl RowGroupEncoders {
    /// Starts a row group.
    ///
    /// # Errors
    /// When Parquet has no form for a type of the schema.
    pub fn start(&self) -> Result<RowGroupEncoder, WorkloadError> {
        let columns = encoded(&self.path, || self.factory.create_column_writers(0))?;
        let (schema, path) = (self.schema.clone(), self.path.clone());
        Ok(RowGroupEncoder { schema, columns, rows: 0, path })
    }
}

impl RowGroupEncoder {
    /// Encodes a batch of the file's schema.
    ///
    /// # Errors
    /// When a value can't be encoded.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), WorkloadError> {
        let mut writers = self.columns.iter_mut();
        encoded(&self.path, || {
            for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                let leaves = compute_leaves(field, column)?;
                // A nested column has several leaves and as many writers, in the same order.
                for (leaf, writer) in leaves.into_iter().zip(&mut writers) {
                    writer.write(&leaf)?;
                }
            }
            Ok(())
        })?;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Rows encoded so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes held so far, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(ArrowColumnWriter::memory_size).sum()
    }

    /// Ends the row group.
    ///
    /// # Errors
    /// When its last pages can't be encoded.
    pub fn finish(self) -> Result<EncodedRowGroup, WorkloadError> {
        let columns = self.columns.into_iter().map(ArrowColumnWriter::close);
        let chunks = encoded(&self.path, || columns.collect::<Result<_, _>>())?;
        Ok(EncodedRowGroup { chunks, rows: self.rows })
    }
}

impl EncodedRowGroup {
    /// Rows in it.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

fn refuse_unions(schema: &Schema) -> io::Result<()> {
    let has_union = |field: &&Arc<Field>| {
        let alone = Schema::new(vec![(*field).clone()]);
        let mut within = alone.flattened_fields().into_iter();
        within.any(|field| matches!(field.data_type(), DataType::Union(..)))
    };
    match schema.fields().iter().find(has_union) {
        None => Ok(()),
        Some(field) => Err(io::Error::other(format!(
            "column {:?} has a union, which Parquet does not have: write an Arrow file, or leave it \
             out",
            field.name()
        ))),
    }
}

/// Runs Parquet's encoder, which panics at some types.
fn encoded<T>(
    path: &Path,
    encode: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, WorkloadError> {
    match guarded(encode) {
        Ok(encoded) => encoded.map_err(|error| unparquet(path, error)),
        Err(_) => Err(failed(path, io::Error::other("Parquet has no form for a column's type"))),
    }
}

fn failed(path: &Path, source: io::Error) -> WorkloadError {
    WorkloadError::Write { path: PathBuf::from(path), source }
}

/// The system's error, where the Parquet error only carries it.
fn unparquet(path: &Path, error: ParquetError) -> WorkloadError {
    failed(path, io::Error::other(error))
}
