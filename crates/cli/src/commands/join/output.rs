//! The output file, shared by the threads: row groups that each thread encodes for itself, or one
//! stream of batches.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use arrow_array::RecordBatch;
use arrow_cast::cast;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use workahead_machine::atomic_file::AtomicFile;
use workahead_workloads::row_groups::{EncodedRowGroup, RowGroupEncoders, RowGroupFile};

use super::format::Format;

const BUFFER_BYTES: usize = 256 << 10;

/// An output file.
pub(crate) enum Output {
    /// Parquet.
    RowGroups { encoders: RowGroupEncoders, file: Box<Mutex<RowGroups>> },
    /// Other formats.
    Streamed(Box<Mutex<StreamedFile>>),
}

/// Metadata of each row group that stays in memory until a file is complete.
pub(crate) struct RowGroupMetadata {
    pub(crate) bytes: usize,
    pub(crate) bytes_max: usize,
    /// Of a row group.
    pub(crate) group_bytes: usize,
}

/// A file of row groups.
pub(crate) struct RowGroups {
    file: RowGroupFile,
    metadata: RowGroupMetadata,
}

impl RowGroups {
    pub(crate) fn append(&mut self, group: EncodedRowGroup) -> anyhow::Result<()> {
        let of = &mut self.metadata;
        of.bytes = of.bytes.saturating_add(of.group_bytes);
        anyhow::ensure!(
            of.bytes <= of.bytes_max,
            "the metadata of all row groups takes {} MiB, more than the {} MiB that may be used for \
             it: raise --memory-limit, or leave columns out by --select",
            of.bytes.div_ceil(1 << 20),
            of.bytes_max >> 20
        );
        Ok(self.file.append(group)?)
    }
}

impl Output {
    /// A file that gets its name when it is complete.
    pub(crate) fn create(
        path: &Path,
        format: Format,
        schema: SchemaRef,
        metadata: RowGroupMetadata,
    ) -> anyhow::Result<Self> {
        if format == Format::Parquet {
            let file = RowGroupFile::create(path, schema)?;
            return Ok(Self::RowGroups {
                encoders: file.encoders(),
                file: Box::new(Mutex::new(RowGroups { file, metadata })),
            });
        }
        let file = StreamedFile::create(path, format, &schema)?;
        Ok(Self::Streamed(Box::new(Mutex::new(file))))
    }

    /// Completes the file, and returns its size in bytes.
    pub(crate) fn publish(self) -> anyhow::Result<u64> {
        match self {
            Self::RowGroups { file, .. } => {
                Ok(file.into_inner().unwrap_or_else(PoisonError::into_inner).file.publish()?)
            }
            Self::Streamed(file) => {
                file.into_inner().unwrap_or_else(PoisonError::into_inner).publish()
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file of batches one after the other.
pub(crate) struct StreamedFile {
    writer: Writer,
    schema: SchemaRef,
    atomic: AtomicFile,
    path: PathBuf,
}

enum Writer {
    Csv(Box<arrow_csv::Writer<BufWriter<File>>>),
    Arrow(Box<FileWriter<BufWriter<File>>>),
    ArrowStream(Box<StreamWriter<BufWriter<File>>>),
}

impl StreamedFile {
    fn create(path: &Path, format: Format, schema: &Schema) -> anyhow::Result<Self> {
        let failed = || format!("can't write {} as {}", path.display(), format.name());
        let atomic = AtomicFile::create(path).with_context(failed)?;
        let file = atomic.file().try_clone().with_context(failed)?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let schema = Arc::new(if format == Format::ArrowStream {
            schema.clone()
        } else {
            without_dictionaries(schema)
        });
        let writer = match format {
            Format::Arrow => Writer::Arrow(Box::new(FileWriter::try_new(file, &schema)?)),
            Format::ArrowStream => {
                Writer::ArrowStream(Box::new(StreamWriter::try_new(file, &schema)?))
            }
            Format::Csv | Format::Tsv | Format::Parquet => {
                let csv = arrow_csv::WriterBuilder::new().with_header(true);
                Writer::Csv(Box::new(csv.with_delimiter(format.delimiter()).build(file)))
            }
        };
        let mut streamed = Self { writer, schema, atomic, path: path.to_owned() };
        if let Writer::Csv(_) = &streamed.writer {
            // The header; a type that CSV does not support is an error before any work is done.
            let none = RecordBatch::new_empty(streamed.schema.clone());
            streamed.write_batch(&none).with_context(failed)?;
        }
        Ok(streamed)
    }

    /// Writes a batch.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let fields = self.schema.fields().iter();
        let columns = batch.columns().iter().zip(fields);
        let columns = columns.map(|(column, field)| cast(column, field.data_type()));
        let columns = columns.collect::<Result<_, _>>();
        let done = columns
            .and_then(|columns| RecordBatch::try_new(self.schema.clone(), columns))
            .and_then(|batch| self.write_batch(&batch));
        done.with_context(|| format!("can't write {}", self.path.display()))
    }

    fn write_batch(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match &mut self.writer {
            Writer::Csv(writer) => writer.write(batch),
            Writer::Arrow(writer) => writer.write(batch),
            Writer::ArrowStream(writer) => writer.write(batch),
        }
    }

    fn publish(self) -> anyhow::Result<u64> {
        let Self { writer, atomic, path, .. } = self;
        let failed = || format!("can't write {}", path.display());
        let mut file = match writer {
            Writer::Csv(writer) => Ok(writer.into_inner()),
            Writer::Arrow(writer) => writer.into_inner(),
            Writer::ArrowStream(writer) => writer.into_inner(),
        }
        .with_context(failed)?;
        file.flush().with_context(failed)?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error);
        let bytes = file.and_then(|file| file.metadata()).with_context(failed)?.len();
        atomic.publish().with_context(failed)?;
        Ok(bytes)
    }
}

/// Dictionaries as their values: an Arrow file has one dictionary a column, and batches have
/// different ones; CSV has none.
fn without_dictionaries(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Dictionary(_, values) => {
            Arc::new(Field::clone(field).with_data_type(values.as_ref().clone()))
        }
        _ => field.clone(),
    });
    Schema::new(fields.collect::<Vec<_>>())
}
