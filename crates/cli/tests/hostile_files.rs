//! Files that lie about themselves, and places that are not what they seem: one line and a status,
//! never a crash, nor more memory than there is leave for.

mod hostile;
mod process;

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_ipc::CompressionType;
use hostile::{arrow_file, arrow_stream, csv, ends_well, join, place, table};
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
    ends_well(&place, &join("/dev/zero", &["--left-format", "csv"]), "/dev/zero");
    fs::write(place.path("open.csv"), format!("id\n\"{}", "1\n".repeat(10 << 20))).unwrap();
    ends_well(&place, &join("open.csv", &[]), "a quote without end");
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
fn what_a_killed_join_left_is_swept() {
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
