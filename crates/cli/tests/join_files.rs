//! `workahead join` with filters, other formats, `--explain`, and failures during the join.

mod process;

use std::fs::{self, File};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use process::{Place, keyed, names, read, signal, text, wait_until, write};

const JOIN: [&str; 5] = ["join", "--left", "left.parquet", "--right", "right.parquet"];

fn join<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&JOIN[..], &["--on", "id"], more].concat()
}

fn sides() -> [RecordBatch; 2] {
    let ids = |rows: i64, step: i64| -> ArrayRef {
        Arc::new(
            (0..rows).map(|row| (row % 9 != 0).then_some(row * step % 700)).collect::<Int64Array>(),
        )
    };
    [keyed("id", ids(1000, 3)), keyed("id", ids(3000, 7))]
}

fn two_files() -> Place {
    let place = Place::new();
    let [left, right] = sides();
    write(&place.path("left.parquet"), &left, 300);
    write(&place.path("right.parquet"), &right, 700);
    place
}

/// Pairs of row numbers.
fn numbers(batches: &[RecordBatch]) -> Vec<(i64, i64)> {
    let column = |batch: &RecordBatch, name: &str| {
        let column = batch.column_by_name(name).unwrap();
        column.as_primitive::<Int64Type>().clone()
    };
    let mut pairs = Vec::new();
    for batch in batches {
        let (left, right) = (column(batch, "number"), column(batch, "number_right"));
        pairs.extend(left.values().iter().copied().zip(right.values().iter().copied()));
    }
    pairs.sort_unstable();
    pairs
}

#[test]
fn filters_decide_what_matches() {
    let place = two_files();
    place.json(&join(&["--out", "out.parquet"]));
    let all = numbers(&read(&place.path("out.parquet")));
    let wanted: Vec<_> =
        all.iter().copied().filter(|(left, right)| left < right && right % 2 == 0).collect();
    assert!(!wanted.is_empty() && wanted.len() < all.len());
    let filter = ["--filter", "left.number < right.number AND right.number % 2 = 0"];
    for side in ["left", "right"] {
        let with = [&filter[..], &["--build-side", side]].concat();
        let facts = place.json(&join(&[&with[..], &["--out", "out.parquet"]].concat()));
        assert_eq!(facts["rows"], wanted.len());
        assert!(numbers(&read(&place.path("out.parquet"))) == wanted);
        // Only counted: of the columns, the filter's are read too.
        assert_eq!(place.json(&join(&with))["rows"], wanted.len());
    }
    // Rows without a match come out of an outer join, whatever the filter says.
    let none = place.json(&join(&["--filter", "left.number < 0", "--type", "left"]));
    assert_eq!(none["rows"], 1000);
}

#[test]
fn files_of_every_format_give_the_same_rows() {
    let place = two_files();
    let [left, right] = sides();
    place.json(&join(&["--out", "out.parquet"]));
    let expected = numbers(&read(&place.path("out.parquet")));
    let file = |name: &str| File::create(place.path(name)).unwrap();
    let mut writer = FileWriter::try_new(file("left.arrow"), &left.schema()).unwrap();
    (0..10).for_each(|part| writer.write(&left.slice(part * 100, 100)).unwrap());
    writer.finish().unwrap();
    // A stream under the name of a file is known by its first bytes.
    for name in ["right.arrows", "right.arrow"] {
        let mut writer = StreamWriter::try_new(file(name), &right.schema()).unwrap();
        writer.write(&right).unwrap();
        writer.finish().unwrap();
    }
    arrow_csv::Writer::new(file("left.csv")).write(&left).unwrap();
    let tabs = arrow_csv::WriterBuilder::new().with_delimiter(b'\t');
    tabs.build(file("right.data")).write(&right).unwrap();
    for (left, right, more) in [
        ("left.arrow", "right.arrows", &[][..]),
        ("left.csv", "right.arrow", &["--memory-limit", "8MB"]),
        ("left.parquet", "right.data", &["--right-format", "tsv"]),
        ("left.csv", "right.parquet", &["--build-side", "right"]),
    ] {
        for out in ["out.parquet", "out.arrow", "out.arrows", "out.csv"] {
            let files = ["join", "--left", left, "--right", right, "--on", "id", "--out", out];
            let facts = place.json(&[&files[..], &["--threads", "2"], more].concat());
            assert_eq!(facts["rows"], expected.len(), "{left} {right} {out}");
            let rows = (facts["build_rows"].as_u64(), facts["probe_rows"].as_u64());
            let is_left = facts["build_side"] == "left";
            let given = if is_left { (Some(1000), Some(3000)) } else { (Some(3000), Some(1000)) };
            assert_eq!(rows, given, "{left} {right} {out}");
            let path = place.path(out);
            let open = || File::open(&path).unwrap();
            let batches: Vec<RecordBatch> = match out {
                "out.arrow" => {
                    FileReader::try_new(open(), None).unwrap().map(Result::unwrap).collect()
                }
                "out.arrows" => {
                    StreamReader::try_new(open(), None).unwrap().map(Result::unwrap).collect()
                }
                "out.parquet" => read(&path),
                _ => {
                    let csv = arrow_csv::reader::Format::default().with_header(true);
                    let schema = csv.infer_schema(open(), None).unwrap().0;
                    let csv = arrow_csv::ReaderBuilder::new(Arc::new(schema)).with_header(true);
                    csv.build(open()).unwrap().map(Result::unwrap).collect()
                }
            };
            assert!(numbers(&batches) == expected, "{left} {right} {out}");
        }
    }
}

#[test]
fn explain_prints_the_plan_without_running_it() {
    let place = two_files();
    let before = place.names();
    let limited = ["--memory-limit", "64KiB", "--threads", "1", "--filter", "left.number > 1"];
    let explain = join(&[&["--explain", "--out", "out.parquet"], &limited[..]].concat());
    let said = place.json(&explain);
    assert_eq!((&said["build_side"], &said["build_rows"]), (&"left".into(), &1000.into()));
    assert_eq!((&said["will_spill"], &said["filter"]), (&true.into(), &"left.number > 1".into()));
    assert!(said["keys"].as_str().unwrap().contains("64-bit word"), "{said}");
    let printed = text(&place.run(&explain).stdout);
    let build = "build     left, 1,000 rows: fewer rows than the right side's 3,000\n";
    for part in ["not run", build, "will spill", "number_right Int64"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    arrow_csv::Writer::new(File::create(place.path("left.csv")).unwrap())
        .write(&sides()[0])
        .unwrap();
    let csv = ["join", "--left", "left.csv", "--right", "right.parquet", "--on", "id", "--explain"];
    let said = place.json(&csv);
    assert!(said["build_rows"].is_null() && said["peak_memory_bytes"].is_null(), "{said}");
    assert!(said["layout_why"].as_str().unwrap().contains("when all keys are read"), "{said}");
    fs::remove_file(place.path("left.csv")).unwrap();
    assert_eq!(place.names(), before);
}

/// A file of 3000 rows and no null, in row groups.
fn write_column(place: &Place, name: &str, of: impl Fn(i64) -> i64) {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values((0..3000).map(of)));
    write(&place.path(name), &keyed("id", column), 800);
}

#[test]
fn explain_predicts_the_layout() {
    let place = Place::new();
    write_column(&place, "close.parquet", |row| 5000 - row * 2);
    write_column(&place, "apart.parquet", |row| row << 40);
    write_column(&place, "right.parquet", |row| row);
    let close = "a slot for each of the 5,999 integers between the lowest and the highest key";
    let bloom = "a Bloom filter before them if at most 15 of 100 probes hit";
    for (left, more, layout, why) in [
        ("close.parquet", &[][..], "dense", close),
        ("close.parquet", &["--layout", "buckets"], "buckets", "as requested"),
        ("close.parquet", &["--layout", "bloom"], "bloom", "as requested"),
        ("apart.parquet", &[], "buckets", bloom),
    ] {
        let files = ["join", "--left", left, "--right", "right.parquet", "--build-side", "left"];
        let words = [&files[..], &["--on", "id"], more].concat();
        let (predicted, actual) =
            (place.json(&[&words[..], &["--explain"]].concat()), place.json(&words));
        assert_eq!((&predicted["layout"], &actual["layout"]), (&layout.into(), &layout.into()));
        assert!(predicted["layout_why"].as_str().unwrap().contains(why), "{predicted}");
        let printed = text(&place.run(&[&words[..], &["--explain"]].concat()).stdout);
        assert!(printed.contains(&format!("\n  layout    {layout}: ")), "{printed}");
    }
}

#[test]
fn a_stream_ends_between_two_messages_and_nowhere_else() {
    let place = two_files();
    let [left, _] = sides();
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &left.schema()).unwrap();
    writer.write(&left.slice(0, 500)).unwrap();
    writer.flush().unwrap();
    let half = writer.get_ref().len();
    writer.write(&left.slice(500, 500)).unwrap();
    writer.finish().unwrap();
    drop(writer);
    let words = ["join", "--left", "cut.arrows", "--right", "right.parquet", "--on", "id"];
    for more in 0..12 {
        fs::write(place.path("cut.arrows"), &bytes[..half + more]).unwrap();
        match more {
            0 => assert_eq!(place.json(&words)["build_rows"], 500),
            _ => assert!(place.fails(&words, 1).contains("damaged"), "{more}"),
        }
    }
}

#[test]
fn errors_are_one_line_and_leave_no_file() {
    let place = two_files();
    fs::write(place.path("ragged.csv"), "id,a\n1,2\n3\n").unwrap();
    let late: String = (0..150_000).map(|row| format!("{row}\n")).collect();
    fs::write(place.path("late.csv"), format!("id\n{late}x\n")).unwrap();
    fs::write(place.path("empty.csv"), "").unwrap();
    fs::write(place.path("no.arrow"), "ARROW1\0\0 and no more").unwrap();
    fs::write(place.path("no.arrows"), "not a stream of batches").unwrap();
    let before = place.names();
    let with = |left| ["join", "--left", left, "--right", "right.parquet", "--on", "id"];
    for (words, status, says) in [
        (&with("ragged.csv")[..], 1, "ragged.csv is not a CSV file, or it is damaged"),
        (&with("late.csv"), 1, "late.csv is not a CSV file, or it is damaged"),
        (&with("empty.csv"), 2, "empty.csv has no column \"id\""),
        (&with("no.arrow"), 1, "no.arrow is not an Arrow file, or it is damaged"),
        (&with("no.arrows"), 1, "no.arrows is not an Arrow stream, or it is damaged"),
        (&join(&["--filter", "left.price > 1"]), 2, "the left side has no column \"price\""),
        (&join(&["--filter", "number > 1"]), 2, "both sides have a column \"number\""),
        (&join(&["--filter", "left.text > 1"]), 2, "can't be compared: cast one of them"),
        (&join(&["--filter", "left.id / 0 = 1"]), 1, "Divide by zero"),
        (&join(&["--out-format", "csv"]), 2, "--out"),
    ] {
        let out: &[&str] =
            if words.contains(&"--out-format") { &[] } else { &["--out", "o.parquet"] };
        let said = place.fails(&[words, out].concat(), status);
        assert!(said.contains(says), "{said}");
    }
    assert_eq!(place.names(), before);
}

/// Many rows of one key on both sides: the join takes longer than any test.
fn endless() -> Place {
    let place = Place::new();
    let same: ArrayRef = Arc::new(Int64Array::from(vec![7; 60_000]));
    write(&place.path("left.parquet"), &keyed("id", same.clone()), 30_000);
    write(&place.path("right.parquet"), &keyed("id", same), 30_000);
    place
}

#[test]
fn a_spilling_join_that_is_stopped_leaves_no_file() {
    for name in ["INT", "TERM"] {
        let place = endless();
        fs::create_dir(place.path("spill")).unwrap();
        let limit = ["--memory-limit", "8MB", "--spill-dir", "spill", "--out", "out.csv"];
        // Two threads that read batches of 30,000 rows need more memory than this limit.
        let child = place.start(&join(&[&limit[..], &["--threads", "1"]].concat()));
        let is_temporary = |name: &String| name.ends_with(".workahead-tmp");
        wait_until("the temporary file", || place.names().iter().any(is_temporary));
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(text(&output.stderr), "error: interrupted\n", "{name}");
        assert_eq!(output.status.code(), Some(1), "{name}");
        assert_eq!(place.names(), ["left.parquet", "right.parquet", "spill"]);
        assert!(names(&place.path("spill")).is_empty());
    }
}

/// A file system of one megabyte, where one can be mounted.
struct SmallFileSystem(std::path::PathBuf);

impl SmallFileSystem {
    fn mounted(path: std::path::PathBuf) -> Option<Self> {
        fs::create_dir(&path).unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&path);
        let done = mount.stderr(std::process::Stdio::null()).status();
        done.is_ok_and(|status| status.success()).then_some(Self(path))
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_one_line() {
    let place = Place::new();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((0..400_000).map(|row| row * 7919)));
    write(&place.path("left.parquet"), &keyed("id", ids.clone()), 50_000);
    write(&place.path("right.parquet"), &keyed("id", ids), 50_000);
    let Some(tiny) = SmallFileSystem::mounted(place.path("tiny")) else {
        eprintln!("skipped: a small file system can't be mounted here (not root?)");
        return;
    };
    let limit = ["--memory-limit", "8MB", "--spill-dir", "tiny", "--out", "out.parquet"];
    let said = place.fails(&join(&limit), 1);
    assert!(said.contains("can't spill to tiny") && said.contains("No space left"), "{said}");
    let said = place.fails(&join(&["--out", "tiny/out.parquet"]), 1);
    assert!(said.contains("tiny/out.parquet") && said.contains("No space left"), "{said}");
    assert!(names(&tiny.0).is_empty());
    drop(tiny);
    assert_eq!(place.names(), ["left.parquet", "right.parquet", "tiny"]);
}
