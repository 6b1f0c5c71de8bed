//! Keys and documents of up to a megabyte: joined within a memory limit, or with an error that
//! names a limit that works.

mod process;

use std::fs;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use process::{Place, text, write};

const ROWS: usize = 30;

fn wide(row: usize) -> String {
    format!("{row:05}").repeat(if row.is_multiple_of(3) { 200_000 } else { 5_000 })
}

fn files() -> Place {
    let place = Place::new();
    let keys: StringArray = (0..ROWS).map(|row| Some(wide(row))).collect();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
    let columns = [("id", Arc::new(keys) as ArrayRef), ("number", numbers)];
    write(&place.path("left.parquet"), &RecordBatch::try_from_iter(columns).unwrap(), 1000);
    let lines: String = (0..ROWS).map(|row| format!("{},{}\n", wide(row), row * 2)).collect();
    fs::write(place.path("right.csv"), format!("id,twice\n{lines}")).unwrap();
    fs::create_dir(place.path("spill")).unwrap();
    place
}

const JOIN: [&str; 7] = ["join", "--left", "left.parquet", "--right", "right.csv", "--on", "id"];

/// The limit that an error names.
fn named(error: &str) -> String {
    let (_, limit) = error.trim_end().rsplit_once("raise the limit to ").expect(error);
    limit.to_owned()
}

#[test]
fn wide_keys_are_joined_within_a_limit() {
    let place = files();
    for limit in ["8GB", "200MB", "40MB", "10MB", "3MB"] {
        let with = |limit: &str| {
            let limit = ["--memory-limit", limit, "--spill-dir", "spill", "--out", "out.csv"];
            place.run(&[&JOIN[..], &limit, &["--select", "number,twice"]].concat())
        };
        let mut output = with(limit);
        if !output.status.success() {
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{limit}: {said}");
            output = with(&named(&said));
        }
        assert!(output.status.success(), "{limit}: {}", text(&output.stderr));
        let out = fs::read_to_string(place.path("out.csv")).unwrap();
        let mut rows: Vec<_> = out.lines().skip(1).map(str::to_owned).collect();
        rows.sort();
        let mut expected: Vec<_> = (0..ROWS).map(|row| format!("{row},{}", row * 2)).collect();
        expected.sort();
        assert_eq!(rows, expected, "{limit}");
    }
}

/// A few kilobytes of Parquet that are gigabytes of text in memory.
#[test]
fn a_dictionary_of_wide_values_is_read_in_short_batches() {
    let place = Place::new();
    let (one, two) = ("1".repeat(1_000_000), "2".repeat(1_000_000));
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
    let texts = (0..100).map(|row| Some(if row % 7 == 0 { &one } else { &two }));
    let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
    let batch = RecordBatch::try_from_iter([("id", keys.clone()), ("wide", texts)]).unwrap();
    write(&place.path("left.parquet"), &batch, 100);
    let batch = RecordBatch::try_from_iter([("id", keys)]).unwrap();
    write(&place.path("right.parquet"), &batch, 100);
    let join = ["join", "--left", "left.parquet", "--right", "right.parquet", "--on", "id"];
    let limit = ["--build-side", "right", "--memory-limit", "60MB", "--out", "out.parquet"];
    let output = place.run(&[&join[..], &limit].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows: Vec<_> = process::read(&place.path("out.parquet"));
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 100);
}
