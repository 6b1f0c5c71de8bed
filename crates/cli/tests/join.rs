//! `workahead join` as a process: right answers, bad input, interruption.

mod process;

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int16Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use process::{Place, interrupt, keyed, names, read, text, wait_until, write};

const JOIN: [&str; 5] = ["join", "--left", "left.parquet", "--right", "right.parquet"];

fn join<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&JOIN[..], &["--on", "id=ref"], more].concat()
}

/// Left: 5,000 ids, some twice. Right: 20,000 references, some null, some without a match.
fn two_files() -> (Place, Vec<(i64, i64)>) {
    let place = Place::new();
    let ids: Vec<i64> = (0..5000).map(|row| if row % 10 == 9 { row - 1 } else { row }).collect();
    let refs: Vec<Option<i16>> =
        (0..20_000).map(|row: i32| (row % 7 != 0).then_some((row * 3 % 6000) as i16)).collect();
    let mut rows = HashMap::<i64, Vec<i64>>::new();
    ids.iter().zip(0..).for_each(|(id, row)| rows.entry(*id).or_default().push(row));
    let pairs = refs.iter().zip(0..).flat_map(|(id, right)| {
        let left = id.and_then(|id| rows.get(&i64::from(id))).into_iter().flatten();
        left.map(move |left| (*left, right))
    });
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort_unstable();
    write(&place.path("left.parquet"), &keyed("id", Arc::new(Int64Array::from(ids))), 1500);
    write(&place.path("right.parquet"), &keyed("ref", Arc::new(Int16Array::from(refs))), 7000);
    (place, pairs)
}

/// Row numbers of both sides, after a check of the other columns.
fn joined(batches: &[RecordBatch]) -> Vec<(i64, i64)> {
    let mut pairs = Vec::new();
    for batch in batches {
        let fields = batch.schema();
        let names: Vec<_> = fields.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["id", "number", "text", "ref", "number_right", "text_right"]);
        let number = |column: usize| batch.column(column).as_primitive::<Int64Type>();
        let shown = |column: usize, row: usize| batch.column(column).as_string::<i32>().value(row);
        for row in 0..batch.num_rows() {
            let (left, right) = (number(1).value(row), number(4).value(row));
            assert_eq!(shown(2, row), format!("row {left}"));
            assert_eq!(shown(5, row), format!("row {right}"));
            pairs.push((left, right));
        }
    }
    pairs.sort_unstable();
    pairs
}

#[test]
fn every_layout_and_side_joins_alike() {
    let (place, expected) = two_files();
    for layout in ["auto", "buckets", "dense", "bloom"] {
        for side in ["auto", "left", "right"] {
            let with = ["--layout", layout, "--build-side", side, "--threads", "3"];
            let facts = place.json(&join(&[&with[..], &["--out", "out.parquet"]].concat()));
            assert_eq!(facts["rows"], expected.len(), "{layout} {side}");
            assert_ne!(facts["layout"], "auto");
            assert_eq!(facts["build_side"], if side == "right" { "right" } else { "left" });
            assert!(joined(&read(&place.path("out.parquet"))) == expected, "{layout} {side}");
            assert_eq!(place.json(&join(&with))["rows"], expected.len(), "counted");
        }
    }
    assert_eq!(place.names(), ["left.parquet", "out.parquet", "right.parquet"]);
}

#[test]
fn facts_are_for_programs_and_for_people() {
    let (place, expected) = two_files();
    let facts = place.json(&join(&["--threads", "2"]));
    for time in ["seconds", "read_seconds", "build_seconds", "probe_seconds"] {
        assert!(facts[time].as_f64().unwrap() > 0.0, "{time}: {facts}");
    }
    assert_eq!(facts["build_rows"], 5000);
    assert_eq!(facts["build_keys"], 4500);
    assert_eq!(facts["probe_rows"], 20_000);
    assert_eq!(facts["threads"], 2);
    assert!(facts["table_cache"].as_str().unwrap().contains("L2"));
    assert!(facts["out"].is_null() && facts["out_bytes"].is_null());
    let output = place.run(&join(&["--out", "out.parquet"]));
    let said = text(&output.stdout);
    assert!(output.status.success() && said.contains("rows in"), "{said}");
    let first: String = said.split(' ').next().unwrap().split(',').collect();
    assert_eq!(first, expected.len().to_string());
    assert!(said.contains("written   out.parquet"));
    assert!(said.contains("left: fewer rows than the right side's 20,000"), "{said}");
    assert!(output.stderr.is_empty());
}

#[test]
fn one_name_serves_both_keys_and_clashes_get_the_suffix() {
    let place = Place::new();
    let keys: ArrayRef = Arc::new(UInt64Array::from(vec![3, u64::MAX, 5]));
    write(&place.path("left.parquet"), &keyed("id", keys), 10);
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![-1, 5, 3]));
    write(&place.path("right.parquet"), &keyed("id", keys), 10);
    let on = [&JOIN[..], &["--on", "id", "--suffix", ".r", "--out", "out.parquet"]].concat();
    assert_eq!(place.json(&on)["rows"], 2, "-1 is not 2⁶⁴ - 1");
    let schema = read(&place.path("out.parquet"))[0].schema();
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["id", "number", "text", "id.r", "number.r", "text.r"]);
}

#[test]
fn an_empty_side_gives_an_empty_result() {
    let (place, _) = two_files();
    write(&place.path("none.parquet"), &keyed("ref", Arc::new(Int64Array::from(vec![0; 0]))), 10);
    for (left, right, on) in [("left", "none", "id=ref"), ("none", "left", "ref=id")] {
        let (left, right) = (format!("{left}.parquet"), format!("{right}.parquet"));
        let out = ["join", "--left", &left, "--right", &right, "--on", on, "--out", "out.parquet"];
        assert_eq!(place.json(&out)["rows"], 0);
        assert!(read(&place.path("out.parquet")).is_empty());
    }
}

#[test]
fn wrong_files_are_one_line_and_leave_nothing() {
    let (place, _) = two_files();
    fs::create_dir(place.path("directory")).unwrap();
    fs::write(place.path("text.parquet"), "not a Parquet file at all").unwrap();
    fs::write(place.path("empty.parquet"), "").unwrap();
    let whole = fs::read(place.path("right.parquet")).unwrap();
    fs::write(place.path("truncated.parquet"), &whole[..whole.len() / 2]).unwrap();
    let mut damaged = whole.clone();
    damaged[100..whole.len() / 2].fill(0xA5);
    fs::write(place.path("damaged.parquet"), damaged).unwrap();
    let before = place.names();
    for (file, says) in [
        ("missing.parquet", "no such file missing.parquet"),
        ("directory", "directory is a directory: name a Parquet file"),
        ("text.parquet", "text.parquet is not a Parquet file, or it is damaged"),
        ("empty.parquet", "empty.parquet is not a Parquet file, or it is damaged"),
        ("truncated.parquet", "truncated.parquet is not a Parquet file, or it is damaged"),
        ("damaged.parquet", "damaged.parquet is not a Parquet file, or it is damaged"),
    ] {
        for side in ["left", "right"] {
            let as_right = ["join", "--left", "left.parquet", "--right", file, "--on", "id=ref"];
            let as_left = ["join", "--left", file, "--right", "left.parquet", "--on", "ref=id"];
            let wrong = if side == "left" { as_left } else { as_right };
            let said = place.fails(&[&wrong[..], &["--out", "out.parquet"]].concat(), 1);
            assert!(said.contains(says), "{said}");
        }
    }
    assert_eq!(place.names(), before);
}

#[test]
fn wrong_use_is_status_2_and_one_line() {
    let (place, _) = two_files();
    let before = place.names();
    let out = ["--out", "out.parquet"];
    let on = |on: &'static str| [&JOIN[..], &["--on", on], &out].concat();
    for (arguments, says) in [
        (on("id=nothing"), "right.parquet has no column \"nothing\": choose from ref, number"),
        (on("nothing=ref"), "left.parquet has no column \"nothing\": choose from id, number"),
        (on("text=ref"), "the keys \"text\" (Utf8) and \"ref\" (Int16) can't be equal: cast"),
        (on("id=text"), "the keys \"id\" (Int64) and \"text\" (Utf8) can't be equal: cast"),
        (on("id="), "write --on LEFT=RIGHT"),
        (on("a=b=c"), "write --on LEFT=RIGHT"),
        (join(&["--layout", "fast"]), "unknown layout \"fast\"; use auto"),
        (join(&["--build-side", "both"]), "auto, left, right"),
        (join(&["--threads", "0"]), "give a number from 1 to 4096"),
        (join(&["--threads", "1000000"]), "give a number from 1 to 4096"),
        (join(&["--threads", "two"]), "give a number from 1 to 4096"),
        (join(&["--jsn"]), "--json"),
        (JOIN.to_vec(), "--on"),
    ] {
        let said = place.fails(&arguments, 2);
        assert!(said.contains(says), "{said}");
    }
    assert_eq!(place.names(), before);
}

#[test]
fn unwritable_outputs_fail_before_any_work() {
    let (place, _) = two_files();
    fs::create_dir(place.path("directory")).unwrap();
    for (out, says) in [
        ("directory", "can't write directory: it is a directory"),
        ("missing/out.parquet", "can't write missing/out.parquet: No such file"),
        ("left.parquet/out.parquet", "can't write left.parquet/out.parquet: Not a directory"),
        ("/proc/out.parquet", "can't write /proc/out.parquet"),
    ] {
        let said = place.fails(&join(&["--out", out]), 1);
        assert!(said.contains(says), "{said}");
    }
    assert_eq!(place.names(), ["directory", "left.parquet", "right.parquet"]);
    assert!(names(&place.path("directory")).is_empty());
}

#[test]
fn more_threads_than_work_is_not_an_error() {
    let (place, expected) = two_files();
    assert_eq!(place.json(&join(&["--threads", "4096"]))["rows"], expected.len());
}

/// Damage anywhere must end in an answer or in one line, never in a panic.
#[test]
fn flipped_bytes_never_panic() {
    let place = Place::new();
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..300));
    write(&place.path("left.parquet"), &keyed("id", keys.clone()), 100);
    write(&place.path("right.parquet"), &keyed("ref", keys), 100);
    let whole = fs::read(place.path("right.parquet")).unwrap();
    for step in 0..48 {
        let mut damaged = whole.clone();
        let at = step * whole.len() / 48;
        damaged[at] ^= 1 << (step % 8);
        fs::write(place.path("right.parquet"), damaged).unwrap();
        let output = place.run(&join(&["--out", "out.parquet", "--threads", "1"]));
        let said = text(&output.stderr);
        let status = output.status.code();
        assert!(said.lines().count() <= 1, "byte {at}: {said}");
        assert!(matches!(status, Some(0..=2)), "byte {at}: {status:?} {said}");
    }
}

#[test]
fn an_interrupted_join_leaves_the_old_file() {
    let place = Place::new();
    // Every row meets every row: 900 million.
    let same: ArrayRef = Arc::new(Int64Array::from(vec![7; 30_000]));
    write(&place.path("left.parquet"), &keyed("id", same.clone()), 30_000);
    write(&place.path("right.parquet"), &keyed("ref", same), 30_000);
    fs::write(place.path("out.parquet"), "old").unwrap();
    let child = place.start(&join(&["--out", "out.parquet"]));
    let is_temporary = |name: &String| name.ends_with(".workahead-tmp");
    wait_until("the temporary file", || place.names().iter().any(is_temporary));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.as_str()), (Some(1), "error: interrupted\n"));
    assert_eq!(place.names(), ["left.parquet", "out.parquet", "right.parquet"]);
    assert_eq!(fs::read(place.path("out.parquet")).unwrap(), b"old");
}

#[test]
fn texts_are_joined_through_views_and_dictionaries_of_the_file() {
    let place = Place::new();
    let names: StringArray = ["a", "bb", "a"].into_iter().map(Some).collect();
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let columns: [(&str, ArrayRef); 2] = [("id", keys), ("name", Arc::new(names))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    write(&place.path("left.parquet"), &batch, 1);
    write(&place.path("right.parquet"), &batch, 2);
    let on = [&JOIN[..], &["--on", "id", "--out", "out.parquet"]].concat();
    assert_eq!(place.json(&on)["rows"], 3);
    let joined = read(&place.path("out.parquet"));
    for batch in joined {
        assert_eq!(batch.column(1), batch.column(3));
    }
}

#[test]
fn every_type_on_keys_of_several_kinds() {
    let place = Place::new();
    let numbers =
        |numbers: &[Option<i64>]| Arc::new(Int64Array::from(numbers.to_vec())) as ArrayRef;
    let texts = |texts: &[&str]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    let side = |key, words, row| {
        RecordBatch::try_from_iter([("a", key), ("b", words), ("row", row)]).unwrap()
    };
    let left = side(
        numbers(&[Some(1), Some(1), None, Some(2)]),
        texts(&["x", "y", "x", "x"]),
        numbers(&[Some(0), Some(1), Some(2), Some(3)]),
    );
    let right = side(
        numbers(&[Some(1), None, Some(1), Some(3)]),
        texts(&["x", "x", "x", "x"]),
        numbers(&[Some(10), Some(11), Some(12), Some(13)]),
    );
    write(&place.path("left.parquet"), &left, 3);
    write(&place.path("right.parquet"), &right, 3);
    let on = [&JOIN[..], &["--on", "a", "--on", "b=b", "--out", "out.parquet"]].concat();
    // Row 0 meets 10 and 12; with equal nulls 2 meets 11.
    for (join_type, rows, with_nulls) in [
        ("inner", 2, 3),
        ("left", 5, 5),
        ("right", 4, 4),
        ("full", 7, 6),
        ("left-semi", 1, 2),
        ("right-semi", 2, 3),
        ("left-anti", 3, 2),
        ("right-anti", 2, 1),
        ("left-mark", 4, 4),
        ("right-mark", 4, 4),
    ] {
        for side in ["left", "right"] {
            let with = [&on[..], &["--type", join_type, "--build-side", side]].concat();
            let facts = place.json(&with);
            assert_eq!(
                (facts["rows"].as_u64(), facts["type"].as_str()),
                (Some(rows), Some(join_type))
            );
            let batches = read(&place.path("out.parquet"));
            assert_eq!(batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>(), rows);
            let equal = place.json(&[&with[..], &["--null-equal"]].concat());
            assert_eq!(equal["rows"], with_nulls, "{join_type} {side}");
            let counted = ["--on", "a", "--on", "b=b", "--type", join_type, "--build-side", side];
            assert_eq!(place.json(&[&JOIN[..], &counted].concat())["rows"], rows);
        }
    }
    place.json(&[&on[..], &["--select", "row_right,row"]].concat());
    let out = &read(&place.path("out.parquet"))[0];
    assert_eq!(out.num_columns(), 2);
    assert_eq!(out.column(0).as_primitive::<Int64Type>().value(0), 10);
    for (more, says) in [
        (&["--type", "outer"][..], "there is no join type \"outer\": choose from inner, left"),
        (&["--select", "rov"], "the result has no column \"rov\": choose from a, b, row, a_right"),
    ] {
        let said = place.fails(&[&on[..], more].concat(), 2);
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn selected_columns_are_those_of_the_whole_result() {
    let place = Place::new();
    let table = |names: &[&str], first: i64| {
        let column = |(at, name): (usize, &&str)| -> (String, ArrayRef) {
            let first = if *name == "k" { 0 } else { first + 100 * at as i64 };
            ((*name).to_owned(), Arc::new(Int64Array::from_iter_values(first..first + 9)))
        };
        RecordBatch::try_from_iter(names.iter().enumerate().map(column)).unwrap()
    };
    write(&place.path("left.parquet"), &table(&["k", "x", "x_r", "y"], 1_000), 9);
    write(&place.path("right.parquet"), &table(&["x_r_r", "x", "k", "z", "x_r"], 9_000), 9);
    let usual = ["--on", "k", "--suffix", "_r", "--filter", "left.y < right.z", "--out"];
    let usual = [&JOIN[..], &usual, &["out.parquet"]].concat();
    let columns = || {
        let batch = &read(&place.path("out.parquet"))[0];
        let (schema, columns) = (batch.schema(), batch.columns().to_vec());
        let names = schema.fields().iter().map(|field| field.name().clone());
        names.zip(columns).collect::<Vec<_>>()
    };
    place.json(&usual);
    let whole = columns();
    assert_eq!(whole.len(), 9);
    for (name, column) in &whole {
        place.json(&[&usual[..], &["--select", name]].concat());
        assert_eq!(columns(), [(name.clone(), column.clone())]);
    }
}

/// More rows than fit into a few megabytes: keys that repeat, and a hot one.
fn two_large_files() -> Place {
    let place = Place::new();
    let ids = (0..120_000_i64).map(|row| if row % 4 == 0 { 5 } else { row * 7 % 90_001 });
    let refs = (0..90_000_i64).map(|row| (row % 9 != 0).then_some(row * 11 % 100_000));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(ids));
    write(&place.path("left.parquet"), &keyed("id", ids), 20_000);
    write(
        &place.path("right.parquet"),
        &keyed("ref", Arc::new(refs.collect::<Int64Array>())),
        9000,
    );
    place
}

#[test]
fn limited_memory_gives_the_same_rows_from_unlinked_files() {
    let place = two_large_files();
    fs::create_dir(place.path("spill")).unwrap();
    let sorted = |file: &str| {
        let mut rows = joined(&read(&place.path(file)));
        rows.sort_unstable();
        rows
    };
    let unlimited = place.json(&join(&["--out", "out.parquet", "--build-side", "left"]));
    assert_eq!(
        (&unlimited["spilled_files"], &unlimited["memory_limit_bytes"]),
        (&0.into(), &().into())
    );
    let expected = sorted("out.parquet");
    for (limit, bytes, threads) in [("14MB", 14_000_000, "2"), ("8MiB", 8 << 20, "1")] {
        let with = ["--memory-limit", limit, "--spill-dir", "spill", "--threads", threads];
        let with = [&with[..], &["--build-side", "left"]].concat();
        let facts = place.json(&join(&[&with[..], &["--out", "out.parquet"]].concat()));
        assert_eq!(facts["rows"], expected.len(), "{limit}");
        assert!(sorted("out.parquet") == expected, "{limit}");
        assert_eq!(facts["memory_limit_bytes"], bytes);
        let most = facts["peak_memory_bytes"].as_u64().unwrap();
        assert!((bytes / 2..=bytes).contains(&most), "{facts}");
        for fact in ["spilled_bytes", "spilled_files", "spilled_partitions", "spill_levels"] {
            assert!(facts[fact].as_u64().unwrap() > 0, "{fact}: {facts}");
        }
        assert_eq!(facts["probe_rows"], 90_000);
        let counted = place.json(&join(&with));
        assert_eq!(counted["rows"], expected.len(), "counted in {limit}");
    }
    assert!(names(&place.path("spill")).is_empty());
    let limited = ["--memory-limit", "14MB", "--build-side", "left", "--threads", "2"];
    let said = place.run(&join(&[&limited[..], &["--out", "out.parquet"]].concat()));
    let said = text(&said.stdout);
    assert!(said.contains("memory    ") && said.contains("spilled to"), "{said}");
}

#[test]
fn a_memory_limit_that_is_too_small_is_one_line() {
    let place = two_large_files();
    let before = place.names();
    for (with, status, says) in [
        (&["--memory-limit", "100KB"][..], 1, "raise the limit"),
        (&["--memory-limit", "six"], 2, "give a size such as 300MB"),
        (&["--memory-limit", "0"], 2, "give a size such as 300MB"),
        (&["--spill-dir", "."], 2, "--memory-limit"),
        (
            &["--memory-limit", "6MB", "--spill-dir", "nowhere"],
            1,
            "spill directory nowhere: No such",
        ),
        (&["--memory-limit", "6MB", "--spill-dir", "left.parquet"], 1, "Not a directory"),
        (&["--memory-limit", "6MB", "--spill-dir", "/proc"], 1, "the spill directory /proc"),
    ] {
        let said = place.fails(&join(&[with, &["--out", "out.parquet"]].concat()), status);
        assert!(said.contains(says), "{said}");
    }
    assert_eq!(place.names(), before);
}
