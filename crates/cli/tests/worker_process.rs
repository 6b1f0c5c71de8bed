//! `workahead study worker`, the worker process of studies: a request on standard input, a reply
//! of one line.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use workahead_study::cell::Cell;
use workahead_study::engine::{Answer, Engine, Stop};
use workahead_study::setting::Setting;
use workahead_study::worker_process::{Reply, Request};

fn cell(rows: i64) -> Cell {
    let settings = [
        ("operator", Setting::from("hash_join")),
        ("rows", rows.into()),
        ("probe_rows", rows.into()),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value)).into();
    let (place, protocol) = (BTreeMap::new(), Default::default());
    Cell { index: 0, block: 0, seed: 7, place, settings, protocol }
}

fn request(engine: &str, cell: Cell, runs: u64) -> Vec<u8> {
    let (engine, home) = (engine.to_owned(), std::env::temp_dir());
    Request { engine, cell, home, limits: None, runs }.to_json()
}

fn worker(input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_workahead"))
        .args(["study", "worker"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

fn reply(input: &[u8]) -> Reply {
    let output = worker(input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Reply::find(&String::from_utf8(output.stdout).unwrap()).unwrap()
}

#[test]
fn a_cell_is_run_the_requested_number_of_times_with_the_oracles_answer() {
    let expected = {
        let mut native = workahead_native::engine::Native::default();
        native.prepare(&cell(2000), &Stop::new()).unwrap();
        native.run(&cell(2000), &Stop::new()).unwrap().answer
    };
    assert!(expected.rows > 0);
    let none: Option<Answer> = None;
    for (runs, answer) in [(0, none), (1, Some(expected)), (3, Some(expected))] {
        assert_eq!(reply(&request("native", cell(2000), runs)), Reply { runs, answer });
    }
}

#[test]
fn errors_are_one_line() {
    let mut unknown = cell(10);
    unknown.settings.insert("rowz".to_owned(), Setting::Integer(1));
    for (input, status, word) in [
        (b"{}".to_vec(), 2, "not a request"),
        (request("postgres", cell(10), 1), 1, "unknown engine `postgres`"),
        (request("native", unknown, 1), 1, "`rowz`"),
    ] {
        let output = worker(&input);
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{line}");
        assert!(line.contains(word) && line.trim_end().lines().count() == 1, "{line}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn help_does_not_list_it() {
    let help = Command::new(env!("CARGO_BIN_EXE_workahead")).args(["study", "--help"]).output();
    let help = String::from_utf8(help.unwrap().stdout).unwrap();
    assert!(help.contains("compare") && !help.contains("worker"), "{help}");
}
