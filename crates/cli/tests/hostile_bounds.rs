//! Small files that ask for gigabytes, or for a walk without end.

#[path = "hostile/crafted.rs"]
mod crafted;
mod hostile;
#[path = "hostile/messages.rs"]
mod messages;
mod process;
#[path = "hostile/repeated.rs"]
mod repeated;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{
    ArrayRef, FixedSizeBinaryArray, Int64Array, NullArray, RecordBatch, StringArray, new_null_array,
};
use arrow_cast::base64::{BASE64_STANDARD, Engine};
use arrow_ipc::writer::DictionaryHandling;
use arrow_schema::{DataType, Field, Schema};
use crafted::{Page, add_page_index, indices, levels, parquet, varint};
use hostile::{arrow_batches, arrow_stream, ends_well, join, place, table};
use messages::{one_field, padded, sharing, with_dictionaries};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter, encode_arrow_schema};
use parquet::basic::Encoding;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use process::{Place, interrupt, read, text, write};

/// Runs a join that has to be refused, in a line that says `what`.
fn is_refused(place: &Place, name: &str, what: &str) {
    assert!(place.path(name).metadata().unwrap().len() < 5 << 20, "{what}");
    assert_eq!(ends_well(place, &join(name, &WRITTEN), what), Some(1), "{what}");
    let said = place.fails(&join(name, &WRITTEN), 1);
    assert!(said.contains(what), "{said}");
}

/// All columns are read, and each row is written once.
const WRITTEN: [&str; 4] = ["--type", "left-semi", "--out", "out.parquet"];

#[test]
fn records_with_carriage_returns_end_batches() {
    let place = place();
    // In quotes, and at the end of all records but some.
    for (name, ends) in [("quoted", ["\r\"\n"; 2]), ("alone", ["\"\r", "\"\n"])] {
        let mut file = BufWriter::new(File::create(place.path(name)).unwrap());
        file.write_all(b"id,text\n").unwrap();
        // 270 MB, of which a batch of 64 thousand rows would be all.
        for row in 0..5_400 {
            let end = ends[usize::from(row % 100 == 0)];
            write!(file, "{row},\"{}{end}", "x".repeat(50_000)).unwrap();
        }
        file.into_inner().unwrap();
        let arguments = join(name, &["--left-format", "csv"]);
        assert_eq!(ends_well(&place, &arguments, name), Some(0), "{name}");
    }
}

#[test]
fn columns_that_share_a_buffer_are_counted_one_by_one() {
    let place = place();
    sharing(&place.path("few.arrows"), 40);
    assert_eq!(ends_well(&place, &join("few.arrows", &WRITTEN), "few"), Some(0));
    sharing(&place.path("many.arrows"), 600);
    is_refused(&place, "many.arrows", "raise --memory-limit to 2405MiB");
}

#[test]
fn dictionaries_are_counted_together() {
    let place = place();
    let many = [with_dictionaries(16, "a")];
    let longer: Vec<_> = (1..=8).map(|texts| with_dictionaries(1, &"abcdefgh"[..texts])).collect();
    for name in ["left.arrow", "left.arrows"] {
        // Each is within the limit, and so is what is added to one.
        messages::write(&place.path(name), DictionaryHandling::Resend, &many);
        is_refused(&place, name, "dictionaries take");
        messages::write(&place.path(name), DictionaryHandling::Delta, &longer);
        is_refused(&place, name, "MiB that may be used for it");
        // Where no column has them, they are not read.
        assert_eq!(ends_well(&place, &join(name, &[]), "counted"), Some(0));
    }
    // One that is replaced takes nothing any more.
    let replaced: Vec<_> = "abcdefghijklmnopqrst".chars().map(String::from).collect();
    let replaced: Vec<_> = replaced.iter().map(|text| with_dictionaries(1, text)).collect();
    messages::write(&place.path("left.arrows"), DictionaryHandling::Resend, &replaced);
    for more in [&[][..], &["--build-side", "right", "--out", "out.arrow"]] {
        assert_eq!(ends_well(&place, &join("left.arrows", more), "replaced"), Some(0));
    }
}

#[test]
fn dictionaries_may_claim_any_length() {
    let place = place();
    let select = |columns| ["--build-side", "right", "--select", columns, "--out", "out.parquet"];
    // The first is passed over, where no column needs it, and those after it are kept by no row.
    messages::claiming(&place.path("left.arrows"), 40, 1 << 40);
    let arguments = join("left.arrows", &select("id,t"));
    assert_eq!(ends_well(&place, &arguments, "passed over"), Some(0));
    // Both lengths together are more than a number holds.
    messages::claiming(&place.path("left.arrows"), 2, i64::MAX);
    let arguments = join("left.arrows", &select("id,z"));
    assert_eq!(ends_well(&place, &arguments, "endless"), Some(1));
    let said = place.fails(&arguments, 1);
    assert!(said.contains("dictionaries take") || said.contains("may be used"), "{said}");
}

const LIST: &str = "required group NAME (LIST) { repeated group list { required int64 item; } }";

/// Lists by a dictionary of one number, by the runs of their repetition levels: some dozens of
/// bytes, however many items.
fn list_page(repeated: &[(u32, u8)], defined: u8) -> Page {
    let values = repeated.iter().map(|run| run.0).sum();
    let body = [levels(repeated), levels(&[(values, defined)]), indices(&[(values, 0)])].concat();
    Page::data(values, Encoding::RLE_DICTIONARY, body)
}

#[test]
fn a_row_of_wide_columns_is_refused() {
    let place = place();
    // A million numbers in each, which is within the limit.
    let pages = [Page::dictionary(1, vec![0; 8]), list_page(&[(1, 0), (999_999, 1)], 1)];
    for columns in [40, 6] {
        let columns = (0..columns).map(|at| LIST.replace("NAME", &format!("c{at}")));
        parquet(&place.path("wide.parquet"), 1, &columns.collect::<String>(), 1_000_000, &pages);
        is_refused(&place, "wide.parquet", "a row of all columns takes");
    }
    let said = place.fails(&join("wide.parquet", &WRITTEN), 1);
    let limit = said.split_once("raise --memory-limit to ").unwrap().1.trim();
    let files = ["join", "--left", "wide.parquet", "--right", "right.parquet", "--on", "id"];
    let rest = ["--build-side", "right", "--memory-limit", limit];
    place.json(&[&files[..], &WRITTEN, &rest].concat());
}

#[test]
fn a_page_index_is_counted_for_each_column() {
    let place = place();
    let columns: String = (0..16).map(|at| format!("required boolean c{at};")).collect();
    let pages = [Page::data(9, Encoding::PLAIN, vec![0; 2])];
    parquet(&place.path("index.parquet"), 9, &columns, 9, &pages);
    let output = place.run(&join("index.parquet", &WRITTEN));
    assert!(output.status.success(), "{}", text(&output.stderr));
    add_page_index(&place.path("index.parquet"), 500_000);
    is_refused(&place, "index.parquet", "its page index takes");
}

#[test]
fn empty_lists_beyond_the_rows_are_refused() {
    let place = place();
    let mut pages = vec![Page::dictionary(1, vec![0; 8])];
    pages.extend((0..1_000).map(|_| list_page(&[(1 << 30, 0)], 0)));
    parquet(&place.path("empty.parquet"), 9, &LIST.replace("NAME", "c"), 9, &pages);
    is_refused(&place, "empty.parquet", "more rows than");
}

/// Rows of five million empty texts each, by differences of no bits: some dozens of bytes.
fn long_page() -> Page {
    const ITEMS: u32 = 5_000_000;
    let mut lengths = Vec::new();
    // The length of a block, of one small block in it, the items, the first, and the least
    // difference, in no bits.
    for number in [1 << 23, 1, u64::from(ITEMS), 0, 0, 0] {
        varint(&mut lengths, number);
    }
    let body = [levels(&[(1, 0), (ITEMS - 1, 1)]), levels(&[(ITEMS, 1)]), lengths].concat();
    Page::data(ITEMS, Encoding::DELTA_LENGTH_BYTE_ARRAY, body)
}

#[test]
fn a_walk_through_pages_is_interrupted() {
    const PAGES: u32 = 10_000;
    let place = place();
    let pages: Vec<_> = (0..PAGES).map(|_| long_page()).collect();
    let texts = LIST.replace("NAME", "c").replace("int64 item", "binary item (UTF8)");
    parquet(&place.path("long.parquet"), PAGES, &texts, 5_000_000 * u64::from(PAGES), &pages);
    let child = place.start(&join("long.parquet", &WRITTEN));
    std::thread::sleep(Duration::from_millis(500));
    let start = Instant::now();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(2), "it went on for {:?}", start.elapsed());
    assert_eq!(text(&output.stderr), "error: interrupted\n");
}

#[test]
fn fields_that_are_one_in_the_file_are_counted() {
    let place = place();
    let schema = one_field(60_000, 10_000);
    fs::write(place.path("one.arrows"), &schema).unwrap();
    is_refused(&place, "one.arrows", "its schema takes 602 MiB");
    fs::write(place.path("one.arrows"), one_field(300_000, 3_000)).unwrap();
    is_refused(&place, "one.arrows", "it has 300000 columns, and 65536 are the most");
    // As Arrow's writers put it into a Parquet file.
    let pair = KeyValue::new("ARROW:schema".to_owned(), BASE64_STANDARD.encode(schema));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![pair])).build();
    let options = ArrowWriterOptions::new().with_properties(properties);
    let options = options.with_skip_arrow_metadata(true);
    let file = File::create(place.path("one.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, table(9).schema(), options).unwrap();
    writer.write(&table(9)).unwrap();
    writer.close().unwrap();
    is_refused(&place, "one.parquet", "its schema takes 602 MiB");
}

#[test]
fn values_that_rows_share_are_counted_in_each() {
    const ROWS: usize = 150_000;
    let place = place();
    let texts = || repeated::views(100_000);
    let list = || repeated::one_list(texts());
    let columns = [
        repeated::runs(1, 16_384, 1_000_000),
        repeated::sharing_lists(16_384, 60_000),
        repeated::sharing_union(16_384, 1_000_000),
        repeated::one_list(repeated::runs(1, 16_384, 1_000_000)),
        repeated::one_list(repeated::sharing_lists(16_384, 100_000)),
        // One by one, these are 15,000,000,000 texts.
        repeated::sharing(ROWS, texts()),
        repeated::one_run(ROWS as i32, &list()),
        repeated::union_of(ROWS, list()),
        repeated::keys_of(ROWS, list()),
    ];
    for column in columns {
        let what = column.data_type().to_string();
        arrow_stream(&place.path("shared.arrows"), &repeated::with_ids(column), None);
        assert!(place.path("shared.arrows").metadata().unwrap().len() < 5 << 20, "{what}");
        let arguments = join("shared.arrows", &["--type", "left-semi", "--out", "out.arrows"]);
        assert_eq!(ends_well(&place, &arguments, &what), Some(1), "{what}");
        let said = place.fails(&arguments, 1);
        assert!(said.contains("with a value of its own in each row, takes"), "{what}: {said}");
    }
}

#[test]
fn pages_without_rows_are_decompressed_for_seconds_at_most() {
    let place = place();
    padded(&place.path("few.arrows"), 20);
    assert_eq!(ends_well(&place, &join("few.arrows", &WRITTEN), "few"), Some(0));
    padded(&place.path("many.arrows"), 1_000);
    is_refused(&place, "many.arrows", "more that no row has than rows");
    let page = |_| Page::data(1, Encoding::PLAIN, vec![0; 8]).and_zeros(40_000_000);
    for (name, pages) in [("few.parquet", 20), ("many.parquet", 110)] {
        let all: Vec<_> = (0..pages).map(page).collect();
        parquet(&place.path(name), pages, "required int64 w;", u64::from(pages), &all);
    }
    assert_eq!(ends_well(&place, &join("few.parquet", &WRITTEN), "few"), Some(0));
    is_refused(&place, "many.parquet", "more that no value has than values");
    // A column that is not read is not decompressed.
    assert_eq!(ends_well(&place, &join("many.parquet", &[]), "counted"), Some(0));
}

#[test]
fn messages_are_charged() {
    let place = place();
    // A build side that about fills the memory, and messages that are a quarter of it, of which
    // each thread takes some rows.
    let ids = |rows: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(0..rows)) };
    let right = RecordBatch::try_from_iter([("id", ids(4_000_000))]).unwrap();
    write(&place.path("right.parquet"), &right, 1_000_000);
    let wide: ArrayRef =
        Arc::new(FixedSizeBinaryArray::try_from_iter((0..44_000).map(|_| [7; 1_000])).unwrap());
    let left = RecordBatch::try_from_iter([("id", ids(44_000)), ("w", wide)]).unwrap();
    arrow_batches(&place.path("left.arrows"), (0..10).map(|_| left.clone()), None);
    for more in [&["--threads", "4"][..], &WRITTEN] {
        let arguments = join("left.arrows", &[&["--build-side", "right"], more].concat());
        assert_eq!(ends_well(&place, &arguments, "wide"), Some(0));
    }
}

#[test]
fn an_error_of_one_thread_ends_all() {
    let place = place();
    // Messages of which one may be in memory, and a row that the filter can't compute.
    let rows = 40_000_i64;
    let wide = (0..rows).map(|_| [7; 100]);
    let wide: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter(wide).unwrap());
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row % 500)));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row - 9)));
    let left = RecordBatch::try_from_iter([("id", ids), ("n", numbers), ("w", wide)]).unwrap();
    arrow_batches(&place.path("left.arrows"), (0..10).map(|_| left.clone()), None);
    let arguments = ["--threads", "8", "--filter", "1 / left.n < 2", "--out", "out.parquet"];
    let arguments = join("left.arrows", &[&["--build-side", "right"], &arguments[..]].concat());
    assert_eq!(ends_well(&place, &arguments, "divided"), Some(1));
    assert!(place.fails(&arguments, 1).contains("Divide by zero"));
}

#[test]
fn outputs_that_are_held_back_keep_no_message() {
    let place = place();
    // A row of each message is joined; the rest of it is a text that is not selected.
    let text = "x".repeat(20_000_000);
    let batch = |row: i64| {
        let ids: ArrayRef = Arc::new(Int64Array::from(vec![row]));
        let short: ArrayRef = Arc::new(StringArray::from(vec![format!("row {row}")]));
        let long: ArrayRef = Arc::new(StringArray::from(vec![text.as_str()]));
        RecordBatch::try_from_iter([("id", ids), ("s", short), ("w", long)]).unwrap()
    };
    arrow_batches(&place.path("left.arrows"), (0..20).map(batch), None);
    let arguments = ["--threads", "1", "--select", "id,s", "--out", "out.arrow"];
    let arguments = join("left.arrows", &[&["--build-side", "right"], &arguments[..]].concat());
    assert_eq!(ends_well(&place, &arguments, "held back"), Some(0));
}

#[test]
fn rows_without_bytes_have_numbers() {
    let place = place();
    let value: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let rows = repeated::one_run(2_000_000_000, &value);
    let batch = RecordBatch::try_from_iter([("id", rows)]).unwrap();
    arrow_stream(&place.path("rows.arrows"), &batch, None);
    is_refused(&place, "rows.arrows", "a batch takes 7630 MiB");
}

#[test]
fn nulls_of_a_size_bound_the_rows_of_a_batch() {
    let place = place();
    // Lists without items in Parquet, which Arrow's schema says have 200,000: 3 GB of nulls.
    let lists = RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from_iter_values(0..4_000)) as ArrayRef, false),
        ("w", new_null_array(&list_of_numbers(), 4_000), true),
    ]);
    let lists = lists.unwrap();
    let field = Field::new("w", repeated::list_type(&DataType::Int32, 200_000), true);
    let schema = Schema::new(vec![lists.schema().field(0).clone(), field]);
    let hint = KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), encode_arrow_schema(&schema));
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![hint])).build();
    let options = ArrowWriterOptions::new().with_properties(properties);
    let options = options.with_skip_arrow_metadata(true);
    let file = File::create(place.path("nulls.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new_with_options(file, lists.schema(), options).unwrap();
    writer.write(&lists).unwrap();
    writer.close().unwrap();
    let arguments = join("nulls.parquet", &["--out", "out.arrow"]);
    assert_eq!(ends_well(&place, &arguments, "nulls"), Some(0));
}

fn list_of_numbers() -> DataType {
    DataType::List(Arc::new(Field::new("item", DataType::Int32, true)))
}

#[test]
fn columns_are_counted() {
    let place = place();
    let mut file = BufWriter::new(File::create(place.path("wide.csv")).unwrap());
    let names = (0..60_000).map(|at| format!(",c{at}"));
    write!(file, "id{}\n1{}\n", names.collect::<String>(), ",1".repeat(60_000)).unwrap();
    file.into_inner().unwrap();
    for out in ["out.parquet", "out.csv"] {
        let arguments = join("wide.csv", &["--type", "left-semi", "--out", out]);
        assert_eq!(ends_well(&place, &arguments, out), Some(1), "{out}");
        let said = place.fails(&arguments, 1);
        assert!(said.contains("is too small for the buffers of all threads"), "{said}");
    }
    assert_eq!(ends_well(&place, &join("wide.csv", &[]), "counted"), Some(0));
}

#[test]
fn values_that_rows_share_are_read_under_the_limit_that_is_named() {
    let place = place();
    // 60 MB in full, of which 50 may be in a batch.
    let columns =
        [repeated::runs(1, 600, 100_000), repeated::sharing(6_000, repeated::bits(10_000))];
    for column in columns {
        arrow_stream(&place.path("shared.arrows"), &repeated::with_ids(column), None);
        let refused = place.fails(&join("shared.arrows", &WRITTEN), 1);
        let (_, limit) = refused.split_once("raise --memory-limit to ").unwrap();
        let limit = limit.split(',').next().unwrap();
        let usual = ["join", "--left", "shared.arrows", "--right", "right.parquet", "--on", "id"];
        let joined = place.run(&[&usual[..], &["--memory-limit", limit], &WRITTEN].concat());
        assert!(joined.status.success(), "{limit}: {}", text(&joined.stderr));
    }
}

#[test]
fn list_views_of_few_items_are_written_as_such() {
    let place = place();
    // 8 MB of items, of which a slice of the rows has next to none.
    let lists = repeated::first_of(300_000, repeated::numbers(8_000_000));
    arrow_stream(&place.path("views.arrows"), &repeated::with_ids(lists), None);
    for out in ["out.arrows", "out.parquet"] {
        let arguments = join("views.arrows", &["--type", "left", "--out", out]);
        assert_eq!(ends_well(&place, &arguments, out), Some(0));
        assert!(place.path(out).metadata().unwrap().len() < 20 << 20, "{out}");
    }
}

#[test]
fn a_row_that_a_dictionary_makes_wide_is_refused() {
    let place = place();
    // Keys of a text of a megabyte: 20 GB in a row.
    let columns = [
        repeated::lists(2, repeated::keys(40_000, 1_000_000)),
        repeated::sharing(1, repeated::keys(20_000, 1_000_000)),
        repeated::one_list(repeated::sharing(1, repeated::keys(20_000, 1_000_000))),
    ];
    for column in columns {
        arrow_stream(&place.path("keys.arrows"), &repeated::with_ids(column), None);
        is_refused(&place, "keys.arrows", "the lists of a row take 190");
    }
}

#[test]
fn items_without_bytes_are_counted() {
    let place = place();
    let nulls = repeated::null_lists(3, 700_000_000);
    arrow_stream(&place.path("nulls.arrows"), &repeated::with_ids(nulls), None);
    is_refused(&place, "nulls.arrows", "a row of \"w\" takes 2671 MiB");
    // A row is narrow enough, not so all of them.
    let nulls = repeated::null_lists(20, 4_000_000);
    arrow_stream(&place.path("nulls.arrows"), &repeated::with_ids(nulls), None);
    is_refused(&place, "nulls.arrows", "a batch takes 306 MiB");
}

#[test]
fn a_type_that_is_wide_without_a_row_is_refused() {
    let place = place();
    let decimals = repeated::list_type(&DataType::Decimal128(38, 0), 1 << 30);
    let types = [
        repeated::list_type(&DataType::Decimal256(76, 0), i32::MAX),
        repeated::list_type(&decimals, 1 << 30),
        DataType::FixedSizeBinary(i32::MAX),
    ];
    for data_type in types {
        repeated::without_rows(&place.path("wide.arrows"), data_type);
        is_refused(&place, "wide.arrows", "a row of \"w\" takes");
        // Nulls of the other side are as wide.
        let arguments = ["--type", "right", "--out", "out.parquet"];
        assert_eq!(ends_well(&place, &join("wide.arrows", &arguments), "nulls"), Some(1));
    }
    let binary = "optional fixed_len_byte_array(2147483647) w;";
    parquet(&place.path("wide.parquet"), 0, binary, 0, &[]);
    is_refused(&place, "wide.parquet", "a row of \"w\" takes 2048 MiB");
}

#[test]
fn columns_that_repeat_little_are_read() {
    let place = place();
    let nulls: ArrayRef = Arc::new(NullArray::new(1_000));
    let columns = [
        ("vectors", repeated::vectors(1_000)),
        ("runs", repeated::runs(100, 10, 30)),
        ("nulls", nulls),
        ("list views", repeated::single_lists(1_000)),
        ("list views of the same texts", repeated::sharing(1_000, repeated::views(100))),
        ("lists of categories", repeated::lists(1_000, repeated::keys(20_000, 30))),
        ("lists of bits", repeated::lists(1_000, repeated::bits(700_000))),
    ];
    for (what, column) in columns {
        arrow_stream(&place.path("usual.arrows"), &repeated::with_ids(column), None);
        let arguments = join("usual.arrows", &["--type", "left", "--out", "out.parquet"]);
        assert_eq!(ends_well(&place, &arguments, what), Some(0), "{what}");
        let out = read(&place.path("out.parquet"));
        assert_eq!(out.iter().map(RecordBatch::num_rows).sum::<usize>(), 1_000, "{what}");
    }
}
