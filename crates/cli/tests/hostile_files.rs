//! Files that lie about themselves, and places that are not what they seem: one line and a status,
//! never a crash, nor more memory than there is leave for.

mod hostile;
mod process;

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, lchown, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeBinaryArray, Int64Array, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use hostile::{arrow_file, arrow_stream, csv, ends_well, join, place, table};
use parquet::arrow::ArrowWriter;
#[cfg(feature = "sql")]
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::properties::WriterProperties;
use process::{read, text, write};

#[test]
fn a_stream_that_lies_about_its_length_allocates_nothing() {
    let place = place();
    arrow_stream(&place.path("whole.arrows"), &table(9_000), None);
    let whole = fs::read(place.path("whole.arrows")).unwrap();
    for length in [8_u64 << 30, 1 << 40, u64::MAX >> 1, u64::MAX] {
        // The body's length is a field of 64 bits of the metadata: every place that holds it.
        let body = (0..whole.len() - 8).filter(|at| {
            let word = u64::from_le_bytes(whole[*at..at + 8].try_into().unwrap());
            (60_000..2_000_000).contains(&word) && word % 8 == 0
        });
        for at in body.take(6) {
            let mut lie = whole.clone();
            lie[at..at + 8].copy_from_slice(&length.to_le_bytes());
            fs::write(place.path("lie.arrows"), lie).unwrap();
            ends_well(&place, &join("lie.arrows", &[]), &format!("{length} at {at}"));
        }
    }
}

#[test]
fn a_buffer_that_lies_about_its_contents_allocates_nothing() {
    let place = place();
    for codec in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
        arrow_file(&place.path("whole.arrow"), &table(9_000), Some(codec));
        assert_eq!(ends_well(&place, &join("whole.arrow", &[]), "whole"), Some(0));
        let whole = fs::read(place.path("whole.arrow")).unwrap();
        // 9,000 numbers of 64 bits.
        let says = 72_000_u64.to_le_bytes();
        let at = whole.windows(8).position(|word| word == says).unwrap();
        for length in [u64::from(u32::MAX), 1 << 40, u64::MAX >> 1] {
            let mut lie = whole.clone();
            lie[at..at + 8].copy_from_slice(&length.to_le_bytes());
            fs::write(place.path("lie.arrow"), lie).unwrap();
            let code = ends_well(&place, &join("lie.arrow", &[]), &format!("{codec:?} {length}"));
            assert_eq!(code, Some(1));
        }
    }
}

#[test]
fn a_batch_above_the_limit_is_refused_with_the_remedy() {
    let place = place();
    let rows = 9_000_000;
    let ids = Arc::new(Int64Array::from_iter_values(0..rows));
    let batch = RecordBatch::try_from_iter([("id", ids as _)]).unwrap();
    arrow_file(&place.path("large.arrow"), &batch, None);
    let said = place.fails(&join("large.arrow", &[]), 1);
    assert!(said.contains("raise --memory-limit"), "{said}");
    assert!(!said.contains("damaged"), "{said}");
    ends_well(&place, &join("large.arrow", &[]), "a large batch");
}

#[test]
fn csv_without_line_ends_is_refused() {
    let place = place();
    fs::write(place.path("one.csv"), "a".repeat(20 << 20)).unwrap();
    let said = place.fails(&join("one.csv", &[]), 1);
    assert!(said.contains("raise --max-record"), "{said}");
    fs::write(place.path("open.csv"), format!("id\n\"{}", "1\n".repeat(10 << 20))).unwrap();
    ends_well(&place, &join("open.csv", &[]), "a quote without end");
}

/// A copy of one without end would fill the disk.
#[test]
fn a_device_is_not_read() {
    let place = place();
    symlink("/dev/zero", place.path("zero.arrow")).unwrap();
    for (left, format) in [("zero.arrow", "arrow"), ("/dev/zero", "csv"), ("/dev/null", "parquet")]
    {
        let said = place.fails(&join(left, &["--left-format", format]), 1);
        assert!(said.contains(&format!("{left} is a character device: name a file")), "{said}");
    }
    assert_eq!(place.names(), ["right.parquet", "zero.arrow"]);
}

#[test]
fn a_flipped_bit_of_a_page_is_found() {
    // By Arrow C++ (`write_page_checksum`), plain and uncompressed: any bit makes another number.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests");
    let fixture = Path::new(&manifest).join("tests/files/checksums.parquet");
    let place = place();
    let path = place.path("left.parquet");
    fs::copy(fixture, &path).unwrap();
    assert_eq!(ends_well(&place, &join("left.parquet", &[]), "whole"), Some(0));
    let whole = fs::read(&path).unwrap();
    let mut found = 0;
    for at in (200..whole.len() - 1_000).step_by(331) {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        fs::write(&path, flipped).unwrap();
        let code = ends_well(&place, &join("left.parquet", &[]), &format!("bit at {at}"));
        found += usize::from(code == Some(1));
    }
    assert!(found >= 20, "{found}");
}

#[test]
fn pipes_are_read() {
    let place = place();
    csv(&place.path("left.csv"), 700);
    arrow_stream(&place.path("left.arrows"), &table(700), None);
    write(&place.path("left.parquet"), &table(700), 300);
    let rows = |report: &serde_json::Value| report["rows_out"].as_u64().or(report["rows"].as_u64());
    for name in ["left.csv", "left.arrows", "left.parquet"] {
        let wanted = place.json(&join(name, &[]));
        let pipe = place.path(&format!("pipe-{name}"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let bytes = fs::read(place.path(name)).unwrap();
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::write(pipe, bytes)
        });
        let read = place.json(&join(&format!("pipe-{name}"), &[]));
        writer.join().unwrap().unwrap();
        assert!(rows(&wanted).is_some_and(|rows| rows > 0), "{wanted}");
        assert_eq!(rows(&wanted), rows(&read), "{name}");
    }
}

#[test]
fn a_header_of_very_many_columns_takes_no_memory_for_rows_that_are_not_there() {
    let place = place();
    let names: String = (0..60_000).map(|column| format!(",{column}")).collect();
    fs::write(place.path("wide.csv"), format!("id{names}\n1{}\n", ",2".repeat(60_000))).unwrap();
    assert_eq!(ends_well(&place, &join("wide.csv", &[]), "many columns"), Some(0));
    fs::write(place.path("wider.csv"), format!("id{}\n", ",".repeat(15 << 20))).unwrap();
    let said = place.fails(&join("wider.csv", &[]), 1);
    assert!(said.contains("columns"), "{said}");
    ends_well(&place, &join("wider.csv", &[]), "very many columns");
}

#[test]
fn csv_with_a_header_only_joins_as_empty() {
    let place = place();
    fs::write(place.path("left.csv"), "id,name\n").unwrap();
    place.json(&join("left.csv", &["--out", "out.parquet"]));
    assert_eq!(
        read(&place.path("out.parquet")).iter().map(RecordBatch::num_rows).sum::<usize>(),
        0
    );
}

#[test]
fn the_output_replaces_no_device_and_no_link() {
    let place = place();
    write(&place.path("left.parquet"), &table(700), 300);
    symlink("there.parquet", place.path("link.parquet")).unwrap();
    place.json(&join("left.parquet", &["--out", "link.parquet"]));
    assert!(fs::symlink_metadata(place.path("link.parquet")).unwrap().is_symlink());
    assert!(!read(&place.path("there.parquet")).is_empty());
    for format in ["parquet", "csv", "arrow", "arrow-stream"] {
        symlink("/dev/null", place.path(format)).unwrap();
        place.json(&join("left.parquet", &["--out", format, "--out-format", format]));
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
    assert!(place.names().iter().all(|name| !name.contains("workahead-tmp")));
}

#[test]
fn files_left_by_a_killed_join_are_swept() {
    let place = place();
    write(&place.path("left.parquet"), &table(700), 300);
    fs::write(place.path(".out.parquet.4711-0.workahead-tmp"), "half").unwrap();
    place.json(&join("left.parquet", &["--out", "out.parquet"]));
    assert_eq!(place.names(), ["left.parquet", "out.parquet", "right.parquet"]);
}

#[test]
fn too_many_open_files_are_not_a_damaged_file() {
    let place = place();
    write(&place.path("left.parquet"), &table(700), 300);
    let program = env!("CARGO_BIN_EXE_workahead");
    let line = join("left.parquet", &[]).join(" ");
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -n 5; exec {program} {line}")])
        .current_dir(place.directory.path())
        .output()
        .unwrap();
    let said = text(&output.stderr);
    assert!(!said.contains("damaged"), "{said}");
}

/// A Parquet file of nothing but this footer.
fn with_footer(path: &Path, footer: &[u8]) {
    let length = (footer.len() as u32).to_le_bytes();
    fs::write(path, [b"PAR1", footer, &length, b"PAR1"].concat()).unwrap();
}

#[test]
fn a_schema_of_thousands_of_levels_is_refused() {
    let place = place();
    // `FileMetaData`: a version, and a list of 8,001 elements, each with one child but the last:
    // a name, a repetition, the number of children.
    let mut footer = vec![0x15, 0x02, 0x19, 0xfc, 0xc1, 0x3e];
    for level in 0..=8_000_u32 {
        footer.extend([0x35, 0x00, 0x18, 0x01, b'a']);
        footer.extend(if level < 8_000 { &[0x15, 0x02, 0x00][..] } else { &[0x00] });
    }
    footer.extend([0x16, 0x00, 0x19, 0x0c, 0x00]);
    with_footer(&place.path("deep.parquet"), &footer);
    let said = place.fails(&join("deep.parquet", &[]), 1);
    assert!(said.contains("nested 8000 levels deep, and 128 are the most"), "{said}");
    if cfg!(feature = "sql") {
        // As a table, by a link without an ending, and in a folder's folder.
        symlink("deep.parquet", place.path("link")).unwrap();
        fs::create_dir_all(place.path("folder/k=1")).unwrap();
        fs::copy(place.path("deep.parquet"), place.path("folder/k=1/a.parquet")).unwrap();
        for table in ["t=deep.parquet", "t=link", "t=folder"] {
            let said = place.fails(&["sql", "select 1", "--table", table], 1);
            assert!(said.contains("nested 8000 levels deep, and 128 are the most"), "{said}");
        }
        // Named by a statement.
        for path in ["deep.parquet", "folder/"] {
            let create = format!("create external table t stored as parquet location '{path}'");
            for arm in [&[][..], &["--stock"]] {
                let said = place.fails(&[&["sql", &create][..], arm].concat(), 1);
                assert!(said.contains("nested 8000 levels deep, and 128 are the most"), "{said}");
            }
        }
        symlink("..", place.path("folder/k=1/above")).unwrap();
        let said = place.fails(&["sql", "select 1", "--table", "t=folder"], 1);
        assert!(said.contains("loop"), "{said}");
    }
    // The same, said to be a set: a decoder goes by the field's number.
    footer[2] = 0x1a;
    with_footer(&place.path("set.parquet"), &footer);
    assert_eq!(ends_well(&place, &join("set.parquet", &[]), "a set"), Some(1));
    // A list of two thousand million row groups, none of which is there.
    let row_groups = [0x15, 0x02, 0x19, 0x0c, 0x16, 0x00, 0x19, 0xfc];
    with_footer(
        &place.path("long.parquet"),
        &[&row_groups[..], &[0xff, 0xff, 0xff, 0xff, 7, 0]].concat(),
    );
    ends_well(&place, &join("long.parquet", &[]), "a list without elements");
}

#[test]
#[cfg(feature = "sql")]
fn a_page_index_that_lies_is_refused_by_sql() {
    let place = place();
    let path = place.path("left.parquet");
    write(&path, &table(500), 500);
    let whole = fs::read(&path).unwrap();
    let reader = ParquetMetaDataReader::new();
    let metadata = reader.parse_and_finish(&File::open(&path).unwrap()).unwrap();
    let column = metadata.row_group(0).column(0);
    let query = ["sql", "select count(*) from t where id > 5", "--table", "t=left.parquet"];
    place.json(&query);
    let long = [0xff_u8, 0xff, 0xff, 0xff, 7];
    // A list of 2^31 - 1 pages; an unknown field of lists of as many truth values.
    let pages = [&[0x19, 0xfc][..], &long].concat();
    let truths = [&[0x89, 0x49][..], &[&[0xf1][..], &long].concat().repeat(4)].concat();
    for (at, lie) in [(column.offset_index_offset(), pages), (column.column_index_offset(), truths)]
    {
        let at = at.unwrap() as usize;
        let mut lying = whole.clone();
        lying[at..at + lie.len()].copy_from_slice(&lie);
        // No decoder looks at how a file begins.
        for begins in [b"PAR1", b"none"] {
            lying[..4].copy_from_slice(begins);
            fs::write(&path, &lying).unwrap();
            for arm in [&[][..], &["--stock"]] {
                let said = place.fails(&[&query[..], arm].concat(), 1);
                assert!(said.contains("its metadata is cut short, or no metadata"), "{said}");
            }
        }
    }
}

#[test]
#[cfg(feature = "sql")]
fn data_that_looks_like_a_footer_is_read_by_sql() {
    let place = place();
    // Plain values at the end of a column, as the length and the magic of an empty footer are.
    let text: ArrayRef = Arc::new(StringArray::from(vec!["\0\0\0\0PAR1"]));
    let batch = RecordBatch::try_from_iter([("a", text.clone()), ("b", text)]).unwrap();
    let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
    let file = File::create(place.path("data.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    for query in ["select a from t", "select b from t", "select * from t"] {
        place.json(&["sql", query, "--table", "t=data.parquet"]);
    }
}

/// A footer without rows: a group of columns with a name of `name_bytes`.
fn footer_of_group(name_bytes: usize, columns: usize) -> Vec<u8> {
    let text = |text: &str| [&varint(text.len())[..], text.as_bytes()].concat();
    // A name and a number of children; a type, a repetition and a name.
    let group = |name: &str, of| {
        [&[0x35, 0x00, 0x18][..], &text(name), &[0x15], &varint(2 * of), &[0]].concat()
    };
    let column = |name: &str| [&[0x15, 0x04, 0x25, 0x00, 0x18][..], &text(name), &[0]].concat();
    let columns: Vec<_> = (0..columns).map(|at| column(&at.to_string())).collect();
    let schema = [group("root", 2), column("id"), group(&"g".repeat(name_bytes), columns.len())];
    let footer = [&[0x15, 0x02, 0x19, 0xfc][..], &varint(columns.len() + 3), &schema.concat()];
    [footer.concat(), columns.concat(), vec![0x16, 0x00, 0x19, 0x0c, 0x00]].concat()
}

fn varint(number: usize) -> Vec<u8> {
    match number {
        0..128 => vec![number as u8],
        _ => [vec![number as u8 | 128], varint(number >> 7)].concat(),
    }
}

#[test]
fn a_name_above_many_columns_is_counted_for_each() {
    let place = place();
    with_footer(&place.path("short.parquet"), &footer_of_group(10, 10_000));
    assert_eq!(ends_well(&place, &join("short.parquet", &[]), "a short name"), Some(0));
    with_footer(&place.path("long.parquet"), &footer_of_group(100_000, 10_000));
    let said = place.fails(&join("long.parquet", &[]), 1);
    assert!(said.contains("its metadata takes 966 MiB"), "{said}");
    assert!(said.contains("raise --memory-limit to 3"), "{said}");
    ends_well(&place, &join("long.parquet", &[]), "a long name");
    with_footer(&place.path("many.parquet"), &footer_of_group(1, 70_000));
    let said = place.fails(&join("many.parquet", &[]), 1);
    assert!(said.contains("it has 70001 columns, and 65536 are the most"), "{said}");
}

#[test]
fn a_dictionary_repeats_its_values_within_the_limit() {
    let place = place();
    let path = place.path("wide.parquet");
    // A megabyte, 3,000 times: each batch repeats it in the file's dictionary.
    let text: ArrayRef = Arc::new(StringArray::from_iter_values(vec!["x".repeat(1 << 20); 50]));
    let batch = |at: i64| {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(at..at + 50));
        RecordBatch::try_from_iter([("id", ids), ("text", text.clone())]).unwrap()
    };
    let properties = WriterProperties::builder().set_dictionary_page_size_limit(4 << 20).build();
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch(0).schema(), Some(properties)).unwrap();
    (0..60).for_each(|at| writer.write(&batch(50 * at)).unwrap());
    writer.close().unwrap();
    assert!(path.metadata().unwrap().len() < 3 << 20);
    let arguments = join("wide.parquet", &["--type", "left-semi", "--out", "out.parquet"]);
    ends_well(&place, &arguments, "a megabyte in each row");
}

#[test]
fn columns_are_distinguished_by_their_names() {
    let place = place();
    fs::write(place.path("twice.csv"), "id,id,a=b,\n1,2,3,4\n").unwrap();
    fs::write(place.path("once.csv"), "id,a=b,a=b\n3,4,5\n").unwrap();
    let said = place.fails(&join("twice.csv", &[]), 2);
    assert!(said.contains("has several columns called \"id\": rename all but one"), "{said}");
    let on = |on: &'static str| {
        let files = ["--left", "twice.csv", "--right", "once.csv"];
        [&["join"], &files[..], &["--on", on]].concat()
    };
    assert_eq!(place.json(&on("\"a=b\"=id"))["rows"], 1);
    assert_eq!(place.json(&on("\"\"=id"))["rows"], 0);
    let said = place.fails(&on("id=\"a=b\""), 2);
    assert!(said.contains("the left file twice.csv has several columns called \"id\""), "{said}");
    let said = place.fails(&[on("\"a=b\"=id"), vec!["--out", "out.csv"]].concat(), 2);
    assert!(said.contains("several columns"), "{said}");
    let said = place.fails(&on("a=b=id"), 2);
    assert!(said.contains("in double quotes"), "{said}");
}

#[test]
fn keys_without_a_byte_are_equal() {
    let place = place();
    let ids = vec![Some(b"".as_slice()), Some(b""), None];
    let ids = FixedSizeBinaryArray::try_from_sparse_iter_with_size(ids.into_iter(), 0).unwrap();
    let batch = RecordBatch::try_from_iter_with_nullable([("id", Arc::new(ids) as _, true)]);
    arrow_file(&place.path("empty.arrow"), &batch.unwrap(), None);
    let files = ["--left", "empty.arrow", "--right", "empty.arrow", "--on", "id"];
    assert_eq!(place.json(&[&["join"][..], &files].concat())["rows"], 4);
}

/// A study of SQL, by what its workload names.
fn study(names: &str) -> String {
    format!(
        "title = 't'\nquestion = 'q'\nengine = 'duckdb'\n[workload]\nworkload = 'sql'\n{names}\n"
    )
}

#[test]
fn files_that_are_not_regular_are_not_read() {
    let place = place();
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    for path in ["/dev/zero", "pipe"] {
        fs::write(place.path("s.toml"), study(&format!("file = '{path}'"))).unwrap();
        let run = ["study", "run", "s.toml", "--no-limits", "--out", "out", "--data-dir", "data"];
        assert_eq!(ends_well(&place, &run, path), Some(1), "{path}");
        let said = place.fails(&[&run[..], &["--force"]].concat(), 1);
        assert!(said.contains("it is not a regular file"), "{said}");
    }
    // The same of a result that somebody sent.
    for name in ["run.json", "observations.jsonl"] {
        let result = place.path(name).with_extension("result");
        fs::create_dir(&result).unwrap();
        symlink("/dev/zero", result.join(name)).unwrap();
        let report = ["study", "report", result.to_str().unwrap()];
        ends_well(&place, &report, name);
    }
    symlink("/dev/zero", place.path("zero.toml")).unwrap();
    assert_eq!(ends_well(&place, &["study", "plan", "zero.toml"], "a study"), Some(1));
}

/// In a directory like `/tmp` somebody else may have made a link of the name that is written to.
#[test]
fn no_result_is_put_where_another_users_link_leads() {
    let place = place();
    let (open, victim) = (place.path("open"), place.path("victim"));
    for path in [&open, &victim] {
        fs::create_dir(path).unwrap();
    }
    fs::set_permissions(&open, PermissionsExt::from_mode(0o1777)).unwrap();
    symlink(&victim, open.join("theirs")).unwrap();
    // Only root can give it away.
    if lchown(open.join("theirs"), Some(65_534), None).is_err() {
        return;
    }
    for name in ["findings.json", "report.html", "orders.parquet"] {
        fs::write(victim.join(name), "precious").unwrap();
    }
    let study = ["study", "run", "quick", "--no-limits"];
    let (data, man) = (["data", "tpch", "--scale", "0.001"], ["man"]);
    for out in ["open/theirs", "open/theirs/sub"] {
        for words in [&study[..], &[&study[..], &["--force"]].concat(), &data, &man] {
            let said = place.fails(&[words, &["--out", out]].concat(), 1);
            assert!(said.contains("theirs` is another user's link"), "{words:?}: {said}");
        }
    }
    assert_eq!(process::names(&victim), ["findings.json", "orders.parquet", "report.html"]);
    for name in process::names(&victim) {
        assert_eq!(fs::read_to_string(victim.join(name)).unwrap(), "precious");
    }
}

#[test]
fn a_study_of_very_many_cells_takes_no_memory() {
    let place = place();
    let axes: String = (0..64).map(|axis| format!("a{axis} = [1, 2]\n")).collect();
    fs::write(place.path("s.toml"), format!("{}[axes]\n{axes}", study("sql = 'select 1'")))
        .unwrap();
    assert_eq!(ends_well(&place, &["study", "plan", "s.toml"], "cells"), Some(1));
    let said = place.fails(&["study", "plan", "s.toml"], 1);
    assert!(said.contains("cells are more than 10000"), "{said}");
}
