//! Files that a decoder may be given, looked through once as long as nobody changes them: each
//! stream of a scan opens its file anew.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use datafusion::arrow::ipc::reader::FileReader;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};
use object_store::Result;
use tokio::task::spawn_blocking;
use workahead_footer::pages::largest_page;
use workahead_machine::guarded::guarded;
use workahead_machine::memory::Memory;
use workahead_messages::{At, BYTES_MIN, MessageError, check_encoded_schema};

use super::failed;

/// Files that are remembered: a session's tables.
const KNOWN_MAX: usize = 4096;
/// Beginnings of columns that are remembered: 32 MiB of them.
const STARTS_MAX: usize = 1 << 22;
/// A file that was changed before less than this may be changed again, and bear the same time.
const SETTLED: Duration = Duration::from_secs(1);
/// Names of files that are Arrow's, or damaged.
const ARROW: [&str; 4] = ["arrow", "arrows", "ipc", "feather"];

/// Whether a file has to be Arrow's by its name.
pub(crate) fn is_named_as_arrow(path: &Path) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    ending.is_some_and(|ending| ARROW.contains(&ending.as_str()))
}

/// The files that were looked through.
#[derive(Debug)]
pub(super) struct FileChecks {
    /// Says how much memory may be used.
    pool: Arc<dyn MemoryPool>,
    known: Mutex<HashMap<State, ColumnStarts>>,
}

/// Where the pages of a Parquet file's columns begin, in order; of other files none.
pub(super) type ColumnStarts = Arc<[u64]>;

/// A file as it is: device, number, size, times of the last change; and whether the name by which
/// it was opened, one of several perhaps, says that it is Arrow's.
type State = (u64, u64, u64, [(i64, i64); 2], bool);

impl FileChecks {
    pub(super) fn new(pool: Arc<dyn MemoryPool>) -> Self {
        Self { pool, known: Mutex::default() }
    }

    /// Refuses a file that a decoder should not be given.
    pub(super) async fn check(&self, file: &File, path: &Path) -> Result<ColumnStarts> {
        let about = file.metadata().map_err(|why| failed(path, &why))?;
        let is_named = is_named_as_arrow(path);
        let before = state(&about, is_named, SystemTime::now());
        let known = before.and_then(|state| self.known().get(&state).cloned());
        if let Some(known) = known {
            return Ok(known);
        }
        let file = file.try_clone().map_err(|why| failed(path, &why))?;
        let pool = Arc::clone(&self.pool);
        // It may wait for a device.
        let looked = spawn_blocking(move || {
            guarded(|| {
                let most = || bytes_max(pool.as_ref());
                let metadata = workahead_footer::check_file(&file);
                let metadata = metadata.map_err(|why| why.to_string())?;
                let or = ", or write fewer columns and row groups to a file";
                fits(("its metadata", or), metadata.bytes, most)?;
                for text in &metadata.arrow_schemas {
                    check_encoded_schema(text, most()).map_err(|why| why.to_string())?;
                }
                let is_file = workahead_messages::check_file(&file, is_named, most);
                if is_file.map_err(|why| why.to_string())? && is_named {
                    // Where this fails DataFusion reads a stream, and `ARRO` as its first length.
                    let file = At::new(Arc::new(file), 0);
                    FileReader::try_new(file, None).map_err(|why| why.to_string())?;
                }
                Ok::<_, String>(metadata.column_starts)
            })
        });
        let looked = looked.await.map_err(|why| failed(path, &why))?;
        let looked = looked.map_err(|why| failed(path, &why))?;
        let starts = ColumnStarts::from(looked.map_err(|why| failed(path, &why))?);
        if let Some(state) = before {
            let mut known = self.known();
            let starts_known: usize = known.values().map(|starts| starts.len()).sum();
            if known.len() >= KNOWN_MAX || starts_known + starts.len() > STARTS_MAX {
                known.clear();
            }
            known.insert(state, Arc::clone(&starts));
        }
        Ok(starts)
    }

    /// Refuses ranges that are not in the file, or that it has once only, and such as take more
    /// than they may: a reader makes room for all of them first.
    pub(super) fn check_ranges(
        &self,
        path: &Path,
        file: &File,
        ranges: &[Range<u64>],
    ) -> Result<()> {
        let size = file.metadata().map_err(|why| failed(path, &why))?.len();
        let bytes = |range: &Range<u64>| range.end.saturating_sub(range.start);
        let all = ranges.iter().map(bytes).fold(0, u64::saturating_add);
        if all > size || ranges.iter().any(|range| range.end > size) {
            let why = "parts of it are said to lie beyond its end, or in the same place";
            return Err(failed(path, &why));
        }
        let largest = ranges.iter().map(bytes).max().unwrap_or_default();
        let or = ", or write the file in smaller row groups";
        let fits_one = fits(("a column", or), largest as usize, || bytes_max(self.pool.as_ref()));
        // A file may have holes, and be longer than what there is room for.
        let fits_all = fits(("a row group", or), all as usize, allowed);
        fits_one.and(fits_all).map_err(|why| failed(path, &why))
    }

    /// Refuses bytes of a file whose pages take more than they may once they are decoded.
    pub(super) fn check_pages(
        &self,
        path: &Path,
        starts: &ColumnStarts,
        (range, bytes): (&Range<u64>, &[u8]),
    ) -> Result<()> {
        let first = starts.partition_point(|start| *start <= range.start);
        let within = starts[first..].iter().take_while(|start| **start < range.end);
        // Decoders ask for pages from the first byte of one on, or of a column.
        let offsets = within.map(|start| (start - range.start) as usize);
        let largest = largest_page(bytes, [0].into_iter().chain(offsets));
        let largest = largest.map_err(|_| "a dictionary has more values than bytes".to_owned());
        let or = ", or write the file in smaller pages";
        let most = || bytes_max(self.pool.as_ref());
        let checked = largest.and_then(|bytes| fits(("a page", or), bytes, most));
        checked.map_err(|why| failed(path, &why))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<State, ColumnStarts>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What tells a file from what becomes of it later; none if it was changed just now.
fn state(about: &Metadata, is_named: bool, now: SystemTime) -> Option<State> {
    let seconds = u64::try_from(about.ctime()).ok()?;
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds + 1);
    let age = now.duration_since(changed).ok()?;
    let times = [(about.mtime(), about.mtime_nsec()), (about.ctime(), about.ctime_nsec())];
    (age > SETTLED).then(|| (about.dev(), about.ino(), about.len(), times, is_named))
}

/// Refuses what would take more than it may once it is decoded.
fn fits(
    (what, or): (&str, &'static str),
    bytes: usize,
    bytes_max: impl Fn() -> usize,
) -> std::result::Result<(), String> {
    let bytes_max = if bytes <= BYTES_MIN { BYTES_MIN } else { bytes_max() };
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(MessageError::TooMuch { what: what.to_owned(), bytes, bytes_max, or }.to_string())
}

/// What a part of a file may take: the pool's limit, or what the machine has left.
pub(crate) fn bytes_max(pool: &dyn MemoryPool) -> usize {
    let most = match pool.memory_limit() {
        MemoryLimit::Finite(bytes) => bytes,
        _ => allowed(),
    };
    most.max(BYTES_MIN)
}

/// The memory that the machine has left.
fn allowed() -> usize {
    let allowed = Memory::here().allowed_bytes;
    allowed.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::num::NonZero;
    use std::sync::atomic::AtomicBool;

    use datafusion::arrow::array::{ArrayRef, DictionaryArray, Int64Array, RecordBatch};
    use datafusion::arrow::datatypes::{DataType, Field, Int32Type, Schema};
    use datafusion::arrow::ipc::CompressionType;
    use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
    use datafusion::execution::memory_pool::UnboundedMemoryPool;
    use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
    use datafusion::parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter};
    use datafusion::parquet::basic::Compression;
    use datafusion::parquet::file::metadata::KeyValue;
    use datafusion::parquet::file::properties::WriterProperties;

    use super::*;
    use crate::session::{Joiner, Options, Session};

    static NEVER: AtomicBool = AtomicBool::new(false);

    /// 64,000 bytes of numbers, and as many once more.
    const ROWS: i64 = 8_000;

    fn batch() -> RecordBatch {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
        RecordBatch::try_from_iter([("id", ids)]).unwrap()
    }

    fn options(codec: Option<CompressionType>) -> IpcWriteOptions {
        IpcWriteOptions::default().try_with_compression(codec).unwrap()
    }

    fn stream(codec: Option<CompressionType>) -> Vec<u8> {
        let (batch, mut bytes) = (batch(), Vec::new());
        let mut writer =
            StreamWriter::try_new_with_options(&mut bytes, &batch.schema(), options(codec))
                .unwrap();
        (0..2).for_each(|_| writer.write(&batch).unwrap());
        writer.finish().unwrap();
        drop(writer);
        bytes
    }

    fn file(codec: Option<CompressionType>) -> Vec<u8> {
        let (batch, mut bytes) = (batch(), Vec::new());
        let mut writer =
            FileWriter::try_new_with_options(&mut bytes, &batch.schema(), options(codec)).unwrap();
        (0..2).for_each(|_| writer.write(&batch).unwrap());
        writer.finish().unwrap();
        drop(writer);
        bytes
    }

    fn session(joiner: Joiner) -> Session {
        let threads = NonZero::new(2).unwrap();
        let memory_limit = Some(256 << 20);
        Session::new(&Options { threads, joiner, memory_limit, spill_directory: None }).unwrap()
    }

    /// The rows of a file as a table, and as one that a statement names without its ending.
    fn rows(bytes: &[u8]) -> [std::result::Result<usize, String>; 4] {
        let directory = tempfile::tempdir().unwrap();
        let [by_name, by_statement] = ["t.arrow", "t"].map(|name| directory.path().join(name));
        fs::write(&by_name, bytes).unwrap();
        fs::write(&by_statement, bytes).unwrap();
        let create = format!(
            "create external table t stored as arrow location '{}'",
            by_statement.display()
        );
        let count = async |session: &Session, is_named: bool| {
            if is_named {
                session.context().sql(&create).await?.collect().await?;
            }
            session.context().sql("select id from t where id >= 0").await?.count().await
        };
        [(Joiner::Ours, false), (Joiner::Stock, false), (Joiner::Ours, true), (Joiner::Stock, true)]
            .map(|(joiner, is_named)| {
                let session = session(joiner);
                if !is_named {
                    session.register("t", &by_name, &NEVER).map_err(|error| error.to_string())?;
                }
                let runtime = tokio::runtime::Runtime::new().unwrap();
                runtime.block_on(count(&session, is_named)).map_err(|error| error.to_string())
            })
    }

    fn refused(bytes: &[u8], with: &str) {
        for said in rows(bytes) {
            let said = said.unwrap_err();
            assert!(said.contains(with) && said.lines().count() == 1, "{said}");
        }
    }

    /// The same with this number in the place of another.
    fn lying(mut bytes: Vec<u8>, number: u64, lie: u64) -> Vec<u8> {
        let at = bytes.windows(8).position(|word| word == number.to_le_bytes()).unwrap();
        bytes[at..at + 8].copy_from_slice(&lie.to_le_bytes());
        bytes
    }

    #[test]
    fn arrow_that_is_whole_is_read() {
        for codec in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            for bytes in [stream(codec), file(codec)] {
                let found = rows(&bytes);
                assert!(found.iter().all(|rows| *rows == Ok(2 * ROWS as usize)), "{found:?}");
            }
        }
    }

    #[test]
    fn arrow_that_says_too_much_of_its_size_is_refused() {
        // The length of a body, and of numbers before compression.
        let bytes = 8 * ROWS as u64;
        for lie in [1 << 42, u64::MAX >> 2] {
            refused(&lying(stream(None), bytes, lie), "a batch takes ");
            let zstd = Some(CompressionType::ZSTD);
            refused(&lying(stream(zstd), bytes, lie), "a batch takes ");
            refused(&lying(file(zstd), bytes, lie), "a batch takes ");
        }
        let lz4 = Some(CompressionType::LZ4_FRAME);
        refused(&lying(file(lz4), bytes, 1 << 25), "can't decompress to what it says");
    }

    #[test]
    fn files_and_streams_are_not_of_one_table() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("a.arrow"), stream(None)).unwrap();
        fs::write(directory.path().join("b.arrow"), file(None)).unwrap();
        let session = session(Joiner::Stock);
        let at = directory.path().display();
        let create = format!("create external table t stored as arrow location '{at}/'");
        let statement = session.statements(&create, &NEVER).unwrap().remove(0);
        let said = session.run(&statement, &NEVER).unwrap_err().to_string();
        assert!(said.contains("both files and streams"), "{said}");
    }

    #[test]
    fn a_stream_that_ends_within_a_message_is_refused() {
        let whole = stream(None);
        let one = whole.len() - 8 * ROWS as usize;
        // Within the last body, within metadata, and within a length.
        let second = (9..one).rev().find(|at| whole[*at..*at + 4] == [0xff; 4]).unwrap();
        for end in [whole.len() - 100, second + 20, second + 2] {
            refused(&whole[..end], "it ends within a message");
        }
    }

    fn varint(number: usize) -> Vec<u8> {
        match number {
            0..128 => vec![number as u8],
            _ => [vec![number as u8 | 128], varint(number >> 7)].concat(),
        }
    }

    /// A Parquet file without rows: a group of 10,000 columns, whose name each of them has.
    fn under_a_name(name_bytes: usize) -> Vec<u8> {
        let text = |text: &str| [&varint(text.len())[..], text.as_bytes()].concat();
        // A repetition, a name and a number of children; a type, a repetition and a name.
        let group = |name: &str, of: usize| {
            [&[0x35, 0, 0x18][..], &text(name), &[0x15], &varint(2 * of), &[0]].concat()
        };
        let column = |name: &str| [&[0x15, 4, 0x25, 0, 0x18][..], &text(name), &[0]].concat();
        let columns: Vec<_> = (0..10_000).map(|at: usize| column(&at.to_string())).collect();
        let groups = [group("root", 1), group(&"g".repeat(name_bytes), columns.len())].concat();
        let schema = [varint(columns.len() + 2), groups, columns.concat()].concat();
        let footer = [&[0x15, 2, 0x19, 0xfc], &schema[..], &[0x16, 0, 0x19, 0x0c, 0]].concat();
        let length = (footer.len() as u32).to_le_bytes();
        [b"PAR1", &footer[..], &length, b"PAR1"].concat()
    }

    #[test]
    fn metadata_that_take_more_than_the_limit_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        for joiner in [Joiner::Ours, Joiner::Stock] {
            fs::write(&path, under_a_name(10)).unwrap();
            session(joiner).register("t", &path, &NEVER).unwrap();
            fs::write(&path, under_a_name(40_000)).unwrap();
            let said = session(joiner).register("t", &path, &NEVER).unwrap_err().to_string();
            assert!(said.contains("its metadata takes "), "{said}");
            assert!(said.contains(" MiB, more than the 256 MiB"), "{said}");
        }
    }

    #[test]
    fn a_page_that_says_too_much_of_its_size_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let rows = 200_000;
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_data_page_size_limit(usize::MAX)
            .set_data_page_row_count_limit(usize::MAX)
            .set_write_batch_size(rows as usize)
            .set_compression(Compression::SNAPPY);
        let file = File::create(&path).unwrap();
        let mut writer =
            ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let sum = |joiner| {
            let options = Options { joiner, memory_limit: Some(16 << 20), ..Options::default() };
            let session = Session::new(&options).unwrap();
            session.register("t", &path, &NEVER).unwrap();
            let query = "select id from t where id % 2 = 0";
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let rows = async { session.context().sql(query).await?.count().await };
            runtime.block_on(rows).map_err(|error| error.to_string())
        };
        for joiner in [Joiner::Ours, Joiner::Stock] {
            assert_eq!(sum(joiner), Ok(rows as usize / 2));
        }
        // Behind the magic: a page of data, and the bytes that it takes, nearly 2^27.
        let mut bytes = fs::read(&path).unwrap();
        assert!(bytes[4..7] == [0x15, 0, 0x15] && bytes[7..10].iter().all(|byte| byte & 0x80 != 0));
        assert_eq!(bytes[10] & 0x80, 0);
        bytes[7..11].copy_from_slice(&[0xfe, 0xff, 0xff, 0x7f]);
        fs::write(&path, bytes).unwrap();
        for joiner in [Joiner::Ours, Joiner::Stock] {
            let said = sum(joiner).unwrap_err();
            assert!(said.contains("a page takes 128 MiB, more than the 16 MiB"), "{said}");
        }
    }

    /// Where a file can't be opened, DataFusion reads a stream from its first byte on.
    #[tokio::test]
    async fn a_file_whose_dictionary_is_damaged_is_refused() {
        let texts: DictionaryArray<Int32Type> = ["first", "second"].into_iter().collect();
        let batch = RecordBatch::try_from_iter([("t", Arc::new(texts) as ArrayRef)]).unwrap();
        let mut bytes = Vec::new();
        let mut writer = FileWriter::try_new(&mut bytes, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.arrow");
        let check = async |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            FileChecks::new(Arc::clone(&pool)).check(&File::open(&path).unwrap(), &path).await
        };
        check(&bytes).await.unwrap();
        // The ends of the two texts.
        let ends = [0_i32, 5, 11].map(i32::to_le_bytes).concat();
        let at = bytes.windows(ends.len()).position(|there| there == ends).unwrap();
        bytes[at + 4..at + 8].copy_from_slice(&99_i32.to_le_bytes());
        check(&bytes).await.unwrap_err();
    }

    #[test]
    fn the_schema_of_arrow_in_parquet_is_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let fields = (0..40_000).map(|n| Field::new(format!("{n:0100}"), DataType::Int64, true));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let properties =
            WriterProperties::builder().set_key_value_metadata(Some(vec![KeyValue::new(
                ARROW_SCHEMA_META_KEY.to_owned(),
                datafusion::parquet::arrow::encode_arrow_schema(&schema),
            )]));
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3));
        let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        let options = ArrowWriterOptions::new()
            .with_properties(properties.build())
            .with_skip_arrow_metadata(true);
        let file = File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        for joiner in [Joiner::Ours, Joiner::Stock] {
            let options = Options { joiner, memory_limit: Some(16 << 20), ..Options::default() };
            let session = Session::new(&options).unwrap();
            let said = session.register("t", &path, &NEVER).unwrap_err().to_string();
            assert!(said.contains("its schema takes "), "{said}");
        }
    }

    #[test]
    fn a_file_is_known_until_it_changes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let about = || file.as_file().metadata().unwrap();
        let later = SystemTime::now() + Duration::from_secs(3600);
        assert_eq!(state(&about(), false, SystemTime::now()), None);
        let before = state(&about(), false, later);
        assert!(before.is_some());
        assert_eq!(state(&about(), false, later), before);
        assert_ne!(state(&about(), true, later), before, "by another name");
        fs::write(file.path(), "more").unwrap();
        assert_ne!(state(&about(), false, later), before);
    }
}
