//! Commands that wait for somebody else, for the other end of a pipe or for a cluster that does not
//! answer, end with the first interruption.

mod process;

#[cfg(feature = "cluster")]
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array};
use process::{Place, interrupt, keyed, text, wait_until, write};

/// Begun, and waiting.
const WAITING: Duration = Duration::from_millis(500);

fn with_pipes(names: &[&str]) -> Place {
    let place = Place::new();
    for name in names {
        assert!(Command::new("mkfifo").arg(place.path(name)).status().unwrap().success());
    }
    place
}

/// Interrupts what waits.
fn ends(place: &Place, words: &[&str]) {
    let mut child = place.start(words);
    std::thread::sleep(WAITING);
    assert!(child.try_wait().unwrap().is_none(), "{words:?} did not wait");
    interrupt(&child);
    wait_until("the end of a command that waits", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stderr), "error: interrupted\n", "{words:?}");
    assert_eq!(output.status.code(), Some(1), "{words:?}");
}

#[test]
fn a_join_waits_until_it_is_interrupted() {
    let place = with_pipes(&["in.csv", "out.csv", "out.parquet"]);
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    write(&place.path("right.parquet"), &keyed("id", ids), 1);
    let join = ["join", "--right", "right.parquet", "--on", "id", "--left"];
    ends(&place, &[&join[..], &["in.csv"]].concat());
    for out in ["out.csv", "out.parquet"] {
        ends(&place, &[&join[..], &["right.parquet", "--out", out]].concat());
    }
}

#[test]
#[cfg(feature = "sql")]
fn so_does_sql() {
    let place = with_pipes(&["text.sql", "out.csv"]);
    ends(&place, &["sql", "-f", "text.sql"]);
    ends(&place, &["sql", "select 1", "--out", "out.csv"]);
}

#[test]
#[cfg(feature = "cluster")]
fn so_does_a_client() {
    let place = with_pipes(&["url"]);
    ends(&place, &["sql", "select 1", "--cluster", "url"]);
    // It takes connections, and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("workahead://{}@{}", "7".repeat(64), silent.local_addr().unwrap());
    ends(&place, &["sql", "select 1", "--cluster", &url, "--dead-after", "600"]);
}

#[test]
fn what_is_written_later_is_read() {
    let place = with_pipes(&["in.csv"]);
    std::fs::write(place.path("right.csv"), "id\n7\n").unwrap();
    let words = ["join", "--left", "in.csv", "--right", "right.csv", "--on", "id", "--json"];
    let child = place.start(&words);
    std::thread::sleep(WAITING);
    std::fs::write(place.path("in.csv"), "id\n7\n7\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["rows_out"].as_u64().or(report["rows"].as_u64()), Some(2), "{report}");
}
