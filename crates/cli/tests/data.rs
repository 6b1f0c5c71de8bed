//! `workahead data` as a process, and TPC-H's tables joined by the command itself.

mod process;

use std::fs;

use process::{Place, interrupt, names, text, wait_until};

const TPCH: [&str; 4] = ["data", "tpch", "--out", "tpch"];

fn tpch<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&TPCH[..], more].concat()
}

#[test]
fn orders_and_lineitem_join_to_lineitems_rows() {
    let place = Place::new();
    let tables = ["--scale", "0.001", "--table", "orders", "--table", "lineitem"];
    let made = place.json(&tpch(&tables));
    assert_eq!(made["scale"], 0.001);
    let rows: Vec<_> =
        made["tables"].as_array().unwrap().iter().map(|t| (&t["table"], &t["rows"])).collect();
    assert_eq!(
        format!("{rows:?}"),
        r#"[(String("orders"), Number(1500)), (String("lineitem"), Number(6005))]"#
    );
    assert_eq!(names(&place.path("tpch")), ["lineitem.parquet", "orders.parquet"]);
    let (orders, lines) = ("tpch/orders.parquet", "tpch/lineitem.parquet");
    let on = "o_orderkey=l_orderkey";
    let join = ["join", "--left", orders, "--right", lines, "--on", on, "--out", "out.parquet"];
    let facts = place.json(&join);
    assert_eq!(facts["rows"], 6005);
    assert_eq!(facts["build_side"], "left");
    let rows: usize =
        process::read(&place.path("out.parquet")).iter().map(|batch| batch.num_rows()).sum();
    assert_eq!(rows, 6005);
    // Again into the same directory, printed as text.
    let again = place.run(&tpch(&["--scale", "0.001", "--table", "region"]));
    assert!(text(&again.stdout).contains("5 rows"), "{}", text(&again.stdout));
    assert_eq!(names(&place.path("tpch")).len(), 3);
}

#[test]
fn wrong_use_is_status_2_and_one_line() {
    let place = Place::new();
    for (more, says) in [
        (&["--scale", "0"][..], "the scale 0 can't be made: give a number from 0.001 to 1000"),
        (&["--scale", "nan"], "the scale NaN can't be made"),
        (&["--scale", "large"], "--scale"),
        (&["--table", "order"], "there is no table \"order\": choose from region"),
        (&["--threads", "0"], "give a number from 1 to 4096"),
    ] {
        let said = place.fails(&tpch(more), 2);
        assert!(said.contains(says), "{said}");
    }
    assert!(place.names().is_empty());
}

#[test]
fn unwritable_directories_are_one_line() {
    let place = Place::new();
    fs::write(place.path("tpch"), "a file").unwrap();
    let said = place.fails(&tpch(&[]), 1);
    assert!(said.contains("tpch is a file: name a directory with --out"), "{said}");
    let said = place.fails(&["data", "tpch", "--out", "tpch/below"], 1);
    assert!(said.contains("can't make tpch/below"), "{said}");
    let said = place.fails(&["data", "tpch", "--out", "/proc/tpch"], 1);
    assert!(said.contains("can't make /proc/tpch"), "{said}");
    assert_eq!(place.names(), ["tpch"]);
}

#[test]
fn an_interrupted_table_leaves_nothing() {
    let place = Place::new();
    let child = place.start(&tpch(&["--scale", "100", "--table", "lineitem"]));
    wait_until("the temporary file", || {
        place.path("tpch").is_dir() && !names(&place.path("tpch")).is_empty()
    });
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said, "error: lineitem was not written: interrupted\n");
    assert!(place.names().is_empty(), "{:?}", place.names());
}
