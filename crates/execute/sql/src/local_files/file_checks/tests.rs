//! Files that a session is given, and should not believe.

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
use datafusion::parquet::basic::{Compression, Encoding};
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::{WriterProperties, WriterVersion};

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
        StreamWriter::try_new_with_options(&mut bytes, &batch.schema(), options(codec)).unwrap();
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
    let create =
        format!("create external table t stored as arrow location '{}'", by_statement.display());
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
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
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

/// A file of a column of zeros, in one plain page of 1.6 MB. The last one is a two: a column of one
/// value isn't read.
fn zeros(path: &Path, codec: Compression, version: WriterVersion) -> Vec<u8> {
    let mut ids = vec![0; ZEROS];
    ids[ZEROS - 1] = 2;
    let ids: ArrayRef = Arc::new(Int64Array::from(ids));
    let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    let properties = WriterProperties::builder()
        .set_writer_version(version)
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::PLAIN)
        .set_data_page_size_limit(usize::MAX)
        .set_data_page_row_count_limit(usize::MAX)
        .set_write_batch_size(ZEROS)
        .set_compression(codec)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    fs::read(path).unwrap()
}

const ZEROS: usize = 200_000;

/// How many zeros are read from a file, within 16 MiB, or why none.
fn count(path: &Path, joiner: Joiner) -> std::result::Result<usize, String> {
    let options = Options { joiner, memory_limit: Some(16 << 20), ..Options::default() };
    let session = Session::new(&options).unwrap();
    session.register("t", path, &NEVER).map_err(|error| error.to_string())?;
    let query = "select id from t where id % 2 = 0";
    let rows = async { session.context().sql(query).await?.count().await };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(rows).map_err(|error| error.to_string())
}

/// Writes these bytes, of which no page may be read.
fn is_refused(path: &Path, bytes: &[u8], why: &str) {
    fs::write(path, bytes).unwrap();
    for joiner in [Joiner::Ours, Joiner::Stock] {
        let said = count(path, joiner).unwrap_err();
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn pages_that_expand_are_read_if_they_hold_what_they_say() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let gzip = Compression::GZIP(Default::default());
    for codec in [gzip, Compression::BROTLI(Default::default()), Compression::LZ4] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            zeros(&path, codec, version);
            assert_eq!(count(&path, Joiner::Stock), Ok(ZEROS), "{codec:?} {version:?}");
        }
    }
}

#[test]
fn a_page_that_holds_more_than_it_says_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    for codec in [Compression::GZIP(Default::default()), Compression::BROTLI(Default::default())] {
        let mut bytes = zeros(&path, codec, WriterVersion::PARQUET_1_0);
        // Behind the magic: a page of data, and the bytes that it takes, which are to be 100, in a
        // number as long.
        let size = bytes[7..11].to_vec();
        assert!(bytes[4..7] == [0x15, 0, 0x15] && size[..3].iter().all(|byte| byte & 0x80 != 0));
        assert_eq!(size[3] & 0x80, 0);
        bytes[7..11].copy_from_slice(&[0xc8, 0x81, 0x80, 0]);
        is_refused(&path, &bytes, "a page holds more than it says");
    }
}

#[test]
fn a_page_whose_header_has_a_field_of_another_kind_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let mut bytes = zeros(&path, Compression::UNCOMPRESSED, WriterVersion::PARQUET_1_0);
    // What describes a page of data: its values, in three bytes, and the encoding.
    let at = bytes.iter().position(|byte| *byte == 0x2c).unwrap();
    assert!(at < 40 && bytes[at + 1] == 0x15 && bytes[at + 5] == 0x15, "{:?}", &bytes[..40]);
    bytes[at + 5] = 0x16;
    is_refused(&path, &bytes, "a page has no header");
}

#[test]
fn a_place_that_is_not_a_page_s_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let mut bytes = zeros(&path, Compression::SNAPPY, WriterVersion::PARQUET_1_0);
    // One place, behind the magic, and its length, to be a byte more or less.
    let begin = [0x19, 0x1c, 0x16, 8, 0x15];
    let at = bytes.windows(begin.len()).position(|window| window == begin).unwrap();
    bytes[at + begin.len()] ^= 2;
    // If it is longer than its page, none begins behind that.
    is_refused(&path, &bytes, ": a page ");
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
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![KeyValue::new(
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
