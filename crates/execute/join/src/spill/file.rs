//! Spill files: Arrow IPC streams in unlinked files, [compressed](super::compression) or not.
//!
//! A file is unlinked as soon as it is created (with `O_TMPFILE` if the system has it), so nothing
//! is left behind however the process ends, and its space is freed when the last handle closes.
//! Blocks are [checked](super::blocks) when they are read back, before they are decoded.

use std::any::Any;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, SchemaRef};

use super::blocks::{BlockReader, BlockWriter, File};
use super::compression::Compression;
use crate::memory_estimate::{ProbeBatchSize, RowSize, sliced_bytes};
use crate::row_bytes::WidestValues;

/// Spilling failed.
#[derive(Debug, thiserror::Error)]
pub enum SpillError {
    /// The directory isn't writable.
    #[error("can't write to the spill directory {}: {source}", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Writing failed, mostly because the disk is full.
    #[error(
        "can't spill to {}: {source}; free space there, name another directory or raise the memory \
         limit",
        directory.display()
    )]
    Write {
        /// The directory.
        directory: PathBuf,
        /// The error.
        source: ArrowError,
    },
    /// The limit on spilled bytes is exceeded.
    #[error("more than {limit} bytes to spill: raise that limit, or the memory limit")]
    Limit {
        /// The limit in bytes.
        limit: u64,
    },
    /// Reading back failed, or the content differs from what was written.
    #[error(
        "a spilled file in {} can't be read back: {why}; the disk or its file system is damaged",
        directory.display()
    )]
    Read {
        /// The directory.
        directory: PathBuf,
        /// The reason.
        why: String,
    },
}

/// A directory for spill files, and counters of what was spilled.
#[derive(Debug)]
pub struct SpillDirectory {
    path: PathBuf,
    limit: u64,
    bytes: AtomicU64,
    files: AtomicU64,
    compression: Compression,
    #[cfg(test)]
    faults: Arc<super::FileFaults>,
    _owner: Owner,
}

/// Something to keep alive as long as the directory is in use.
type Owner = Option<Arc<dyn Any + Send + Sync>>;

impl SpillDirectory {
    /// Spills to a directory, at most `limit` bytes.
    ///
    /// # Errors
    /// If no file can be created there.
    pub fn new(path: impl Into<PathBuf>, limit: Option<u64>) -> Result<Arc<Self>, SpillError> {
        Self::open(path.into(), limit, None)
    }

    /// The same for a directory that exists as long as its owner.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_owner(
        path: impl Into<PathBuf>,
        limit: Option<u64>,
        owner: Arc<dyn Any + Send + Sync>,
    ) -> Result<Arc<Self>, SpillError> {
        Self::open(path.into(), limit, Some(owner))
    }

    fn open(path: PathBuf, limit: Option<u64>, owner: Owner) -> Result<Arc<Self>, SpillError> {
        match tempfile::tempfile_in(&path) {
            Ok(_) => Ok(Arc::new(Self {
                path,
                limit: limit.unwrap_or(u64::MAX),
                bytes: AtomicU64::new(0),
                files: AtomicU64::new(0),
                compression: Compression::default(),
                #[cfg(test)]
                faults: Arc::default(),
                _owner: owner,
            })),
            Err(source) => Err(SpillError::Directory { directory: path, source }),
        }
    }

    /// The same, with files that fail.
    #[cfg(test)]
    pub(crate) fn with_faults(
        path: impl Into<PathBuf>,
        faults: &Arc<super::FileFaults>,
    ) -> Result<Arc<Self>, SpillError> {
        let mut directory = Self::new(path, None)?;
        Arc::get_mut(&mut directory).expect("it is new").faults = Arc::clone(faults);
        Ok(directory)
    }

    /// A new file without a name.
    fn create(&self) -> io::Result<File> {
        let file = tempfile::tempfile_in(&self.path)?;
        #[cfg(test)]
        let file = self.faults.file(file)?;
        Ok(file)
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts written bytes.
    fn add(&self, bytes: u64) -> Result<(), SpillError> {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.limit {
            return Err(SpillError::Limit { limit: self.limit });
        }
        Ok(())
    }

    /// Files written so far.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }
}

/// A file being written.
pub(crate) struct SpillWriter {
    writer: StreamWriter<BlockWriter>,
    schema: SchemaRef,
    rows: usize,
    /// Of the largest and of the longest batch.
    batch_bytes: usize,
    batch_rows: usize,
    widest: WidestValues,
    /// Bytes counted by the directory.
    counted: u64,
    compressed: bool,
    directory: Arc<SpillDirectory>,
}

impl SpillWriter {
    pub(crate) fn new(
        directory: &Arc<SpillDirectory>,
        schema: SchemaRef,
        block_bytes: usize,
    ) -> Result<Self, SpillError> {
        let path = || directory.path.clone();
        let created = directory.create();
        let file = created.map_err(|source| SpillError::Directory { directory: path(), source })?;
        directory.files.fetch_add(1, Ordering::Relaxed);
        let failed = |source| SpillError::Write { directory: path(), source };
        let compression = directory.compression.choose();
        let options =
            IpcWriteOptions::default().try_with_compression(compression).map_err(failed)?;
        let writer = StreamWriter::try_new_with_options(
            BlockWriter::new(file, block_bytes),
            &schema,
            options,
        )
        .map_err(failed)?;
        let directory = directory.clone();
        Ok(Self {
            writer,
            schema,
            rows: 0,
            batch_bytes: 0,
            batch_rows: 0,
            widest: WidestValues::default(),
            counted: 0,
            compressed: compression.is_some(),
            directory,
        })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), SpillError> {
        let (start, bytes) = (Instant::now(), sliced_bytes(batch));
        let written = compact(batch).and_then(|batch| self.writer.write(&batch));
        written.map_err(|source| self.failed(source))?;
        self.directory.compression.wrote(self.compressed, bytes, start.elapsed());
        self.rows += batch.num_rows();
        self.batch_bytes = self.batch_bytes.max(bytes);
        self.batch_rows = self.batch_rows.max(batch.num_rows());
        self.widest.add(batch);
        self.count_written(self.writer.get_ref().written())
    }

    pub(crate) fn finish(mut self) -> Result<SpillFile, SpillError> {
        let ended = self.writer.finish();
        ended.map_err(|source| self.failed(source))?;
        let Self {
            writer,
            schema,
            rows,
            batch_bytes,
            batch_rows,
            widest,
            counted,
            compressed,
            directory,
        } = self;
        let block_bytes = writer.get_ref().block_bytes();
        let failed = |source| SpillError::Write { directory: directory.path.clone(), source };
        let blocks = writer.into_inner().map_err(failed)?;
        let (file, bytes) = blocks.finish().map_err(|error| failed(error.into()))?;
        directory.add(bytes - counted)?;
        let file = Arc::new(file);
        Ok(SpillFile {
            file,
            schema,
            rows,
            batch_bytes,
            batch_rows,
            widest_row: widest.row_bytes(),
            block_bytes,
            bytes,
            compressed,
            directory,
        })
    }

    fn count_written(&mut self, written: u64) -> Result<(), SpillError> {
        let more = written - std::mem::replace(&mut self.counted, written);
        self.directory.add(more)
    }

    fn failed(&self, source: ArrowError) -> SpillError {
        SpillError::Write { directory: self.directory.path.clone(), source }
    }
}

/// A finished file. Clones are handles to the same file.
#[derive(Debug, Clone)]
pub(crate) struct SpillFile {
    file: Arc<File>,
    schema: SchemaRef,
    rows: usize,
    batch_bytes: usize,
    batch_rows: usize,
    widest_row: usize,
    block_bytes: usize,
    bytes: u64,
    compressed: bool,
    directory: Arc<SpillDirectory>,
}

impl SpillFile {
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Size of the batches of several files.
    pub(crate) fn batch_size(files: &[Self]) -> ProbeBatchSize {
        let rows = files.iter().map(|file| file.batch_rows).max().unwrap_or(0);
        let bytes = files.iter().map(|file| file.batch_bytes).max().unwrap_or(0);
        let widest = files.iter().map(|file| file.widest_row).max().unwrap_or(0);
        ProbeBatchSize { rows, row: RowSize { average: bytes.div_ceil(rows.max(1)), widest } }
    }

    /// Memory for reading: a block, and a batch both compressed and decompressed.
    pub(crate) fn reading_bytes(&self) -> usize {
        self.block_bytes + 3 * self.batch_bytes
    }

    /// Starts reading from the first batch. Any number of readers may exist.
    pub(crate) fn read(&self) -> Result<SpillReader, SpillError> {
        let (directory, compressed) = (self.directory.clone(), self.compressed);
        match StreamReader::try_new(BlockReader::new(self.file.clone()), None) {
            Ok(reader) => {
                Ok(SpillReader { reader, left: self.rows, directory, compressed, ended: false })
            }
            Err(error) => {
                Err(SpillError::Read { directory: directory.path.clone(), why: why(&error) })
            }
        }
    }
}

/// Reads a spill file.
pub(crate) struct SpillReader {
    reader: StreamReader<BlockReader>,
    /// Rows still expected.
    left: usize,
    directory: Arc<SpillDirectory>,
    compressed: bool,
    ended: bool,
}

impl SpillReader {
    /// The next batch. At the end, an error if anything is missing.
    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>, SpillError> {
        if self.ended {
            return Ok(None);
        }
        let start = Instant::now();
        let batch = self.reader.next().transpose().map_err(|error| self.wrong(why(&error)))?;
        match &batch {
            Some(batch) => {
                let compression = &self.directory.compression;
                compression.read(self.compressed, sliced_bytes(batch), start.elapsed());
                let left = self.left.checked_sub(batch.num_rows());
                self.left = left.ok_or_else(|| self.wrong("it has too many rows".to_owned()))?;
            }
            None => {
                self.ended = true;
                let whole = self.reader.get_mut().at_end();
                if !whole.map_err(|error| self.wrong(error.to_string()))? || self.left > 0 {
                    return Err(self.wrong(format!("{} rows are missing", self.left)));
                }
            }
        }
        Ok(batch)
    }

    fn wrong(&self, why: String) -> SpillError {
        SpillError::Read { directory: self.directory.path.clone(), why }
    }
}

/// The message of an error without the prefix of its kind.
fn why(error: &ArrowError) -> String {
    match error {
        ArrowError::IoError(_, source) => source.to_string(),
        other => other.to_string(),
    }
}

/// Drops bytes that a batch's views don't reference: spilling a few rows of a large batch must not
/// write all of its strings.
pub(crate) fn compact(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let views =
        |data_type: &DataType| matches!(data_type, DataType::Utf8View | DataType::BinaryView);
    if !batch.columns().iter().any(|column| views(column.data_type())) {
        return Ok(batch.clone());
    }
    let columns = batch.columns().iter().map(|column| match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()) as ArrayRef,
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()) as ArrayRef,
        _ => column.clone(),
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns.collect(), &options)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use arrow_array::{DictionaryArray, Int64Array, StringViewArray, types::Int8Type};

    use super::super::blocks::BLOCK_BYTES;
    use super::*;

    fn batch(factor: i64, rows: i64) -> RecordBatch {
        let numbers: ArrayRef =
            Arc::new((0..rows).map(|i| Some(i * factor)).collect::<Int64Array>());
        let text = |i: i64| format!("a text longer than a view holds inline {}", i * factor);
        let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..rows).map(text)));
        let values = (0..rows).map(|i| if (i + factor) % 3 == 0 { "a" } else { "b" });
        let dictionary: ArrayRef = Arc::new(values.collect::<DictionaryArray<Int8Type>>());
        RecordBatch::try_from_iter([("a", numbers), ("b", texts), ("c", dictionary)]).unwrap()
    }

    fn written(batches: &[RecordBatch], limit: Option<u64>) -> Result<SpillFile, SpillError> {
        let directory = SpillDirectory::new(std::env::temp_dir(), limit)?;
        let mut writer = SpillWriter::new(&directory, batches[0].schema(), BLOCK_BYTES)?;
        batches.iter().try_for_each(|batch| writer.write(batch))?;
        let file = writer.finish()?;
        assert_eq!((directory.files(), directory.bytes()), (1, file.bytes()));
        Ok(file)
    }

    fn read(file: &SpillFile) -> Result<Vec<RecordBatch>, SpillError> {
        let mut reader = file.read()?;
        std::iter::from_fn(|| reader.next_batch().transpose()).collect()
    }

    #[test]
    fn batches_are_read_back_unchanged_any_number_of_times() {
        let batches = [batch(1, 1000), batch(7, 10).slice(3, 5), batch(2, 300)];
        let file = written(&batches, None).unwrap();
        assert_eq!(file.rows(), 1305);
        for _ in 0..2 {
            assert_eq!(read(&file).unwrap(), batches);
        }
    }

    #[test]
    fn a_few_rows_of_many_are_written_without_the_rest() {
        let many = batch(3, 20_000);
        let whole = written(std::slice::from_ref(&many), None).unwrap().bytes();
        let few = written(&[many.slice(5, 10)], None).unwrap().bytes();
        assert!(few * 50 < whole, "{few} of {whole}");
    }

    #[test]
    fn truncated_and_changed_files_are_errors() {
        let batches: Vec<_> = (1..30).map(|factor| batch(factor, 200)).collect();
        let bytes = written(&batches, None).unwrap().bytes();
        for cut in [1, bytes / 3, bytes / 2, bytes - 9, bytes - 1] {
            let file = written(&batches, None).unwrap();
            file.file.set_len(cut).unwrap();
            let error = read(&file).unwrap_err().to_string();
            assert!(error.contains("can't be read back"), "cut at {cut}: {error}");
        }
        for changed in (0..bytes).step_by(bytes as usize / 200) {
            let file = written(&batches, None).unwrap();
            let mut byte = [0];
            file.file.read_exact_at(&mut byte, changed).unwrap();
            file.file.write_all_at(&[!byte[0]], changed).unwrap();
            assert!(read(&file).is_err(), "changed at {changed}");
        }
    }

    #[test]
    fn limits_and_directories_are_one_line_errors() {
        let error = written(&[batch(1, 10_000)], Some(1000)).unwrap_err();
        assert!(matches!(error, SpillError::Limit { limit: 1000 }), "{error}");
        let error = SpillDirectory::new("/nowhere/at all", None).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at all") && !error.contains('\n'), "{error}");
    }
}
