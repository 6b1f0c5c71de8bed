//! `workahead sql` as a process: rows, formats, bad input, interruption.
#![cfg(feature = "sql")]

mod process;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use process::{Place, interrupt, keyed, names, read, text, wait_until, write};

const JOIN: &str = "select l.number as l, r.number as r from l join r on l.id = r.ref";
const TABLES: [&str; 4] = ["--table", "l=left.parquet", "--table", "r=right.parquet"];

/// Left: 40,000 ids with texts. Right: 20,000 references, of which two thirds are to an id.
fn two_files() -> Place {
    let place = Place::new();
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..40_000));
    let refs = (0..20_000).map(|row| row * 7 % 60_000);
    let refs: ArrayRef = Arc::new(Int64Array::from_iter_values(refs));
    write(&place.path("left.parquet"), &keyed("id", ids), 15_000);
    write(&place.path("right.parquet"), &keyed("ref", refs), 7000);
    place
}

fn sql<'a>(query: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["sql", query][..], &TABLES, more].concat()
}

fn pairs(batches: &[RecordBatch]) -> Vec<(i64, i64)> {
    let column = |batch: &RecordBatch, at: usize| {
        batch.column(at).as_primitive::<Int64Type>().values().to_vec()
    };
    let both = batches.iter().flat_map(|batch| column(batch, 0).into_iter().zip(column(batch, 1)));
    let mut pairs: Vec<_> = both.collect();
    pairs.sort_unstable();
    pairs
}

#[test]
fn ours_and_stock_give_the_same_rows() {
    let place = two_files();
    let expected = (0..20_000).map(|row| (row * 7 % 60_000, row)).filter(|(id, _)| *id < 40_000);
    let mut expected: Vec<(i64, i64)> = expected.collect();
    expected.sort_unstable();
    for (more, joins) in [(&[][..], (1, 0)), (&["--stock"], (0, 1))] {
        for threads in ["1", "3"] {
            let more = [more, &["--threads", threads, "--out", "out.parquet"]].concat();
            let facts = place.json(&sql(JOIN, &more));
            let done = &facts["statements"][0];
            assert_eq!(done["rows"], expected.len());
            let found = (&done["joins"], &done["joins_left_to_datafusion"]);
            assert_eq!((found.0.as_u64(), found.1.as_u64()), (Some(joins.0), Some(joins.1)));
            assert!(pairs(&read(&place.path("out.parquet"))) == expected, "{more:?}");
        }
    }
    assert_eq!(place.names(), ["left.parquet", "out.parquet", "right.parquet"]);
}

#[test]
fn rows_are_written_in_every_format() {
    let place = two_files();
    let query = "select l.number as n, l.text from l join r on l.id = r.ref where r.number = 1";
    let shown = |more: &[&str]| {
        let output = place.run(&sql(query, more));
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(shown(&[]).contains("| 7 | row 7 |"), "{}", shown(&[]));
    assert_eq!(shown(&["--format", "csv"]), "n,text\n7,row 7\n");
    assert_eq!(shown(&["--format", "json"]), "{\"n\":7,\"text\":\"row 7\"}\n");
    for (file, holds) in
        [("a.csv", "n,text\n7,row 7\n"), ("a.json", "{\"n\":7,\"text\":\"row 7\"}\n")]
    {
        assert!(shown(&["--out", file]).contains(file), "the written file is named");
        assert_eq!(fs::read_to_string(place.path(file)).unwrap(), holds);
        // The written file can be read again.
        let table = format!("a={file}");
        let facts = place.json(&["sql", "select n from a", "--table", &table]);
        assert_eq!(facts["statements"][0]["rows"], 1);
    }
    shown(&["--out", "a.dat", "--format", "parquet"]);
    assert_eq!(read(&place.path("a.dat"))[0].num_rows(), 1);
}

#[test]
fn explain_and_several_statements() {
    let place = two_files();
    let shown = |query: &str, more: &[&str]| {
        let output = place.run(&sql(query, more));
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let explain = format!("explain analyze {JOIN}");
    let plan = shown(&explain, &[]);
    assert!(plan.contains("WorkaheadJoinExec") && plan.contains("layout="), "{plan}");
    assert!(shown(&explain, &["--stock"]).contains("HashJoinExec"));
    let two = "set workahead.layout = 'buckets'; explain analyze select * from l join r on \
               l.id = r.ref";
    assert!(shown(two, &[]).contains("layout=buckets"));
    let plan = shown(&explain, &["--set", "workahead.layout=buckets"]);
    assert!(plan.contains("layout=buckets"), "{plan}");
    fs::write(place.path("two.sql"), two).unwrap();
    let facts = place.json(&[&["sql", "-f", "two.sql"][..], &TABLES].concat());
    assert_eq!(facts["statements"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_join_spills_under_a_limit_and_a_smaller_limit_is_an_error() {
    let place = two_files();
    // What a killed process leaves: a lock that nobody holds.
    fs::create_dir_all(place.path("spill/workahead-sql-left/datafusion-a")).unwrap();
    fs::write(place.path("spill/workahead-sql-left/lock"), "").unwrap();
    let join = "set datafusion.execution.batch_size = 512; \
                select l.text as l, r.text as r from r right join l on l.id = r.ref";
    let limit = |limit: &'static str| {
        let memory = ["--memory-limit", limit, "--spill-dir", "spill", "--threads", "1"];
        [&memory[..], &["--out", "out.parquet"]].concat()
    };
    let rows = place.json(&sql(join, &["--threads", "1"]))["statements"][1]["rows"].clone();
    let facts = place.json(&sql(join, &limit("600kB")));
    let done = &facts["statements"][1];
    assert_eq!((&done["rows"], &done["joins_spilled"]), (&rows, &1.into()), "{facts}");
    assert!(done["spilled_bytes"].as_u64() > Some(1000));
    assert!(names(&place.path("spill")).is_empty(), "files are left");
    fs::remove_file(place.path("out.parquet")).unwrap();
    let said = place.fails(&sql(join, &limit("10kB")), 1);
    assert!(said.contains("limit"), "{said}");
    assert_eq!(place.names(), ["left.parquet", "right.parquet", "spill"]);
}

#[test]
fn bad_input_is_one_line() {
    let place = two_files();
    fs::write(place.path("bad.parquet"), "no Parquet at all, but long enough to be read").unwrap();
    fs::write(place.path("a.dat"), "x").unwrap();
    let whole = fs::read(place.path("left.parquet")).unwrap();
    let mut broken = whole.clone();
    let most = broken.len() / 4 * 3;
    broken[100..most].fill(0x55);
    fs::write(place.path("broken.parquet"), broken).unwrap();
    let count = "select count(*) from t";
    for (words, status, says) in [
        (vec!["sql", count, "--table", "t=none.parquet"], 1, "none.parquet"),
        (vec!["sql", count, "--table", "t=bad.parquet"], 1, "bad.parquet"),
        (vec!["sql", "select sum(length(text)) from t", "--table", "t=broken.parquet"], 1, "error"),
        (vec!["sql", count, "--table", "t=a.dat"], 1, "unknown file type"),
        (vec!["sql", count, "--table", "t"], 2, "--table NAME=FILE"),
        (vec!["sql", "select 1", "--set", "workahead.layout"], 2, "--set NAME=VALUE"),
        (vec!["sql", "select 1", "--set", "workahead.layout=guess"], 2, "guess"),
        (vec!["sql", "select 1", "--set", "no.such\"'=it's"], 2, "namespace"),
        (vec!["sql", count], 2, "t"),
        (vec!["sql", "selct 1"], 2, "selct"),
        (vec!["sql", "select nothing from l", "--table", "l=left.parquet"], 2, "nothing"),
        (vec!["sql", ""], 2, "no statement"),
        (vec!["sql"], 2, "QUERY"),
        (vec!["sql", "select 1", "--out", "a"], 2, "--format"),
        (vec!["sql", "select 1", "--format", "parquet"], 2, "--out"),
        (vec!["sql", "select 1", "--out", "none/a.csv"], 1, "none/a.csv"),
        (vec!["sql", "select 1", "--memory-limit", "much"], 2, "300MB"),
        (
            vec!["sql", "select 1", "--memory-limit", "1GB", "--spill-dir", "none"],
            1,
            "directory none",
        ),
        (vec!["sql", "-f", "none.sql"], 1, "none.sql"),
        (vec!["sql", "-f", "/dev/zero"], 1, "/dev/zero: it has more than 16 MiB"),
        (vec!["sql", "--tpch", "23", "--data", "."], 2, "1 to 22"),
        (vec!["sql", "--tpch", "1", "--data", "."], 1, "workahead data tpch"),
        (vec!["sql", "--tpch", "1"], 2, "--data"),
    ] {
        let said = place.fails(&words, status);
        assert!(said.contains(says), "{words:?}: {said}");
    }
    let left: Vec<_> =
        place.names().into_iter().filter(|name| name.contains("workahead-tmp")).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn tpch_runs_on_generated_tables() {
    let place = Place::new();
    place.json(&["data", "tpch", "--scale", "0.001", "--out", "tpch"]);
    let run =
        |more: &[&str]| place.json(&[&["sql", "--data", "tpch", "--tpch"][..], more].concat());
    let (ours, stock) = (run(&["all"]), run(&["all", "--stock"]));
    let rows = |facts: &serde_json::Value| {
        let all = facts["statements"].as_array().expect("statements").iter();
        all.map(|done| done["rows"].as_u64()).collect::<Vec<_>>()
    };
    assert_eq!(rows(&ours).len(), 22);
    assert_eq!(rows(&ours), rows(&stock));
    let output = place.run(&["sql", "--data", "tpch", "--tpch", "1"]);
    assert!(text(&output.stdout).contains("avg_disc"), "{}", text(&output.stderr));
    let said = place.fails(&["sql", "--data", "tpch", "--tpch", "all", "--out", "a.csv"], 2);
    assert!(said.contains("choose one"), "{said}");
}

#[test]
fn an_interrupted_query_leaves_nothing_behind() {
    let place = two_files();
    // Hundreds of millions of pairs as text: longer than it takes to interrupt.
    let query = "select l.id, r.ref, l.text from l join r on l.id % 2 = r.ref % 2";
    let mut child = place.start(&sql(query, &["--out", "out.csv", "--threads", "2"]));
    wait_until("the temporary file", || {
        place.names().iter().any(|name| name.contains("workahead-tmp"))
    });
    interrupt(&child);
    let status = child.wait().unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!((status.code(), said.as_str()), (Some(1), "error: interrupted\n"));
    assert_eq!(place.names(), ["left.parquet", "right.parquet"]);
}

#[test]
fn a_query_without_output_ends_soon_after_an_interruption() {
    let place = two_files();
    // Hundreds of millions of pairs, none of which is a row; by each join, on each number of
    // threads.
    let query = "select count(*) from l join r on l.id < r.ref and l.number * r.ref = -1";
    let equal = "select count(*) from l join r on l.id % 2 = r.ref % 2 and l.number * r.ref = -1";
    // Its rows are there before it is run.
    let made = format!("create table made as {query}");
    for (query, join) in
        [(query, "--stock"), (equal, "--stock"), (equal, "--json"), (&*made, "--json")]
    {
        for threads in ["1", "2"] {
            let mut child = place.start(&sql(query, &[join, "--threads", threads]));
            std::thread::sleep(Duration::from_millis(700));
            let start = Instant::now();
            interrupt(&child);
            let status = child.wait().unwrap();
            let took = start.elapsed();
            let what = format!("{query} {join} {threads}: {took:?}");
            assert_eq!(status.code(), Some(1), "{what}");
            // A second, and another one for a busy machine.
            assert!(took < Duration::from_secs(2), "{what}");
        }
    }
}

#[test]
fn a_statement_that_makes_a_table_has_a_time_limit() {
    let place = two_files();
    let made = "create table made as select count(*) from l join r on l.id < r.ref \
                and l.number * r.ref = -1";
    let start = Instant::now();
    let said = place.fails(&sql(made, &["--timeout", "0.5"]), 1);
    assert!(said.contains("longer than 500ms"), "{said}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

/// Its columns are found by DataFusion, which takes the square of their number.
#[test]
fn a_table_of_many_columns_ends_in_time() {
    let place = Place::new();
    let names: Vec<String> = (0..200_000).map(|n| format!("c{n}")).collect();
    fs::write(place.path("wide.csv"), names.join(",") + "\n").unwrap();
    let start = Instant::now();
    let wide = ["sql", "select 1", "--table", "w=wide.csv", "--timeout", "0.5"];
    let said = place.fails(&wide, 1);
    assert!(said.contains("longer than 500ms"), "{said}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

/// DataFusion opens such tables itself, or goes by what their first bytes say.
#[test]
fn tables_beside_the_store_of_files_are_refused() {
    let place = Place::new();
    fs::write(place.path("victim.csv"), "1\n").unwrap();
    std::os::unix::fs::symlink("victim.csv", place.path("x.csv")).unwrap();
    fs::create_dir_all(place.path("folder/of=1")).unwrap();
    for tiny in ["tiny.dat", "folder/of=1/tiny.dat"] {
        fs::write(place.path(tiny), [0xff, 0xff, 0xff, 0x7f]).unwrap();
    }
    for (create, why) in [
        ("unbounded external table e (a bigint) stored as csv location 'x.csv'", "UNBOUNDED"),
        ("external table e stored as arrow location 'tiny.dat'", "name it .arrow"),
        ("external table e (a bigint) stored as arrow location 'folder'", "as folder/*.arrow"),
        ("external table e (a bigint) stored as arrow location 'folder/'", "as folder/*.arrow"),
    ] {
        let said = place.fails(&["sql", &format!("create {create}; insert into e values (2)")], 2);
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(fs::read_to_string(place.path("victim.csv")).unwrap(), "1\n");
}

/// A file may ask for 4 GiB by its first bytes.
#[test]
fn tables_of_xz_are_refused() {
    let place = Place::new();
    fs::write(place.path("t.xz"), "").unwrap();
    for (kind, key, value) in [
        ("csv", "compression", "xz"),
        ("json", "format.compression", "XZ"),
        ("csv", "FORMAT.COMPRESSION.ANY", "Xz"),
    ] {
        let create = format!(
            "create external table t (a bigint) stored as {kind} location 't.xz' \
             options ('{key}' '{value}')"
        );
        let said = place.fails(&["sql", &create], 2);
        assert!(said.contains("xz -d"), "{said}");
    }
}

/// Room for the ends of a batch's values.
#[test]
fn a_csv_file_with_more_columns_than_the_limit_takes_is_refused() {
    let place = Place::new();
    let names: Vec<String> = (0..2_000).map(|n| format!("c{n}")).collect();
    let values = vec!["1"; names.len()].join(",");
    fs::write(place.path("w.csv"), format!("{}\n{values}\n", names.join(","))).unwrap();
    let table = ["--table", "w=w.csv", "--memory-limit"];
    let limited = [&["sql", "select max(c3) from w"][..], &table, &["50MB"]].concat();
    let said = place.fails(&limited, 1);
    assert!(said.contains("2000 columns") && said.contains("batch_size"), "{said}");
    let create = "create external table w stored as csv location 'w.csv'; select max(c3) from w";
    let said = place.fails(&["sql", create, "--memory-limit", "50MB"], 2);
    assert!(said.contains("2000 columns"), "{said}");
    let enough = [&["sql", "select max(c3) from w"][..], &table, &["400MB"]].concat();
    assert_eq!(place.json(&enough)["statements"][0]["rows"], 1);
    // A table that is there already is not the one that would be too wide.
    let kept = "create table w as values (1); create external table if not exists w stored as csv \
                location 'w.csv'; select column1 from w";
    assert_eq!(place.json(&["sql", kept, "--memory-limit", "50MB"])["statements"][2]["rows"], 1);
}

/// A value takes its room in all rows of a batch, though one has it.
#[test]
fn json_with_more_values_than_the_limit_takes_is_refused() {
    let place = Place::new();
    let values: Vec<String> = (0..2_000).map(|n| format!("\"v{n}\":{n}")).collect();
    let first = format!("{{\"of\":{{{}}}}}\n", values.join(","));
    fs::write(place.path("w.json"), first + &"{}\n".repeat(8_191)).unwrap();
    let table = ["--table", "w=w.json", "--memory-limit"];
    let limited = [&["sql", "select * from w"][..], &table, &["50MB"]].concat();
    let said = place.fails(&limited, 1);
    assert!(said.contains("2001 columns") && said.contains("batch_size"), "{said}");
    let create = "create external table w stored as json location 'w.json'";
    let said = place.fails(&["sql", create, "--memory-limit", "50MB"], 2);
    assert!(said.contains("2001 columns"), "{said}");
}

#[test]
fn a_pipe_is_not_a_table() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.path("t.csv")).status().unwrap().success());
    let said = place.fails(&["sql", "--table", "t=t.csv", "select * from t"], 1);
    assert!(said.contains("not a regular file"), "{said}");
}

#[test]
fn a_copy_replaces_no_link_and_no_device() {
    let place = Place::new();
    fs::write(place.path("victim.csv"), "precious").unwrap();
    std::os::unix::fs::symlink("victim.csv", place.path("link.csv")).unwrap();
    for format in ["csv", "parquet"] {
        let place_of = place.path("link.csv").display().to_string();
        let encoded = place_of.replace("link", "l%69nk");
        for (target, status) in [
            ("link.csv".to_owned(), 2),
            (format!("file://{place_of}"), 2),
            (format!("file:{place_of}"), 1),
            (format!("FILE://{place_of}"), 1),
            (format!("file://localhost{place_of}"), 1),
            (format!("file://{encoded}"), 1),
        ] {
            let copy = format!("copy (values (1)) to '{target}' stored as {format}");
            let said = place.fails(&["sql", &copy], status);
            assert!(said.contains("not a regular file"), "{target}: {said}");
        }
    }
    assert_eq!(fs::read_to_string(place.path("victim.csv")).unwrap(), "precious");
    assert!(place.path("link.csv").is_symlink());
    assert_eq!(place.names(), ["link.csv", "victim.csv"]);
}

#[test]
fn a_copy_that_fails_leaves_what_was_there() {
    let place = Place::new();
    fs::create_dir(place.path("folder")).unwrap();
    for format in ["csv", "parquet", "json"] {
        let kept = format!("kept.{format}");
        fs::write(place.path(&kept), "precious").unwrap();
        // A few rows, which are written at once, and megabytes, which are written in parts.
        for (rows, wide) in [(100, "value"), (60_000, "repeat(md5(value::text), 20)")] {
            let query = format!(
                "select {wide} as w, 10 / ({rows} - value) as x from generate_series(1, {rows})"
            );
            let output = place.run(&["sql", &format!("copy ({query}) to '{kept}'")]);
            let said = text(&output.stderr);
            assert!(!output.status.success() && said.contains("ivide by zero"), "{said}");
            assert_eq!(fs::read_to_string(place.path(&kept)).unwrap(), "precious", "{format}");
            let insert = format!(
                "create external table t(w text, x bigint) stored as {format} \
                 location 'folder/'; insert into t {query}"
            );
            let output = place.run(&["sql", &insert]);
            assert!(text(&output.stderr).contains("ivide by zero"), "{}", text(&output.stderr));
            assert_eq!(names(&place.path("folder")), [""; 0], "{format}");
        }
    }
    assert_eq!(place.names(), ["folder", "kept.csv", "kept.json", "kept.parquet"]);
    let said = place.fails(&["sql", "copy (select 1) to 'a[1].csv'"], 2);
    assert!(said.contains("for a pattern"), "{said}");
    assert_eq!(place.names().len(), 4);
}

#[test]
fn a_copy_keeps_who_may_read_and_sweeps_what_was_killed() {
    let place = Place::new();
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    fs::write(place.path("kept.csv"), "old").unwrap();
    fs::set_permissions(place.path("kept.csv"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(place.path(".kept.csv.1-0.workahead-tmp"), "left").unwrap();
    for rows in [10, 3_000_000] {
        let query = format!("copy (select * from generate_series(1, {rows})) to 'kept.csv'");
        let output = place.run(&["sql", &query]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(fs::read_to_string(place.path("kept.csv")).unwrap().lines().count(), rows + 1);
        assert_eq!((mode("kept.csv"), place.names()), (0o600, vec!["kept.csv".to_owned()]));
    }
    // Its folders are made.
    let output = place.run(&["sql", "copy (select 1 as a) to 'some/where/one.csv'"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(place.path("some/where/one.csv")).unwrap(), "a\n1\n");
}

#[test]
fn a_copy_beyond_what_a_file_may_have_says_so() {
    let place = Place::new();
    for format in ["csv", "parquet", "json"] {
        let kept = format!("kept.{format}");
        fs::write(place.path(&kept), "precious").unwrap();
        for rows in [20_000, 2_000_000] {
            let query = format!(
                "copy (select md5(value::text) as t from generate_series(1, {rows})) to '{kept}'"
            );
            let script = "trap '' XFSZ; ulimit -f 200; exec \"$@\"";
            let whole = place.command(&["sql", &query]);
            let mut limited = Command::new("sh");
            limited.args(["-c", script, "sh"]).arg(whole.get_program()).args(whole.get_args());
            let output = limited.current_dir(place.path("")).output().unwrap();
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(said.contains(&format!("{kept}: File too large")), "{said}");
            assert_eq!(fs::read_to_string(place.path(&kept)).unwrap(), "precious", "{format}");
        }
    }
    assert_eq!(place.names(), ["kept.csv", "kept.json", "kept.parquet"]);
}

/// A file above 10 MB is read in parts by several threads.
#[test]
fn line_breaks_in_quotes_make_no_rows() {
    let place = Place::new();
    let mut file = String::from("id,t\n");
    for id in 0..50_000 {
        let words = if id < 1_100 { "plain".to_owned() } else { "\n7,q".repeat(60) };
        file.push_str(&format!("{id},\"{words}\"\n"));
    }
    fs::write(place.path("t.csv"), &file).unwrap();
    assert!(file.len() > 11 << 20);
    let query = "select count(*) as n, sum(id) as s from t";
    let made = format!(
        "create external table t(id bigint, t text) stored as csv location 't.csv' \
         options ('format.has_header' 'true'); {query}"
    );
    for threads in ["1", "2", "3"] {
        for more in [&["--table", "t=t.csv"][..], &["--stock", "--table", "t=t.csv"], &[]] {
            let query = if more.is_empty() { &made } else { query };
            let words = [&["sql", query, "--format", "csv", "--threads", threads], more].concat();
            let output = place.run(&words);
            let answer = text(&output.stdout);
            assert!(answer.starts_with("n,s\n50000,1249975000\n"), "{words:?}: {answer}");
        }
    }
}

#[test]
fn values_and_names_of_a_file_do_not_steer_the_terminal() {
    let place = Place::new();
    std::fs::write(place.path("t.csv"), "a,b\u{1b}]0;x\u{7}\n1,\u{1b}[31m\n").unwrap();
    let output = place.run(&["sql", "select * from t", "--table", "t=t.csv"]);
    let printed = text(&output.stdout);
    assert!(output.status.success() && !printed.contains('\u{1b}'), "{printed:?}");
    assert!(printed.contains(r"\u{1b}[31m") && printed.contains(r"b\u{1b}]0;x\u{7}"), "{printed}");
    // A program gets the bytes as they are.
    let output = place.run(&["sql", "select * from t", "--table", "t=t.csv", "--format", "csv"]);
    assert!(text(&output.stdout).contains("\u{1b}[31m"));
}
