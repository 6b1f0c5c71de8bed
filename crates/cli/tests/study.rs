//! `workahead study` as a process: what it prints, where, and its exit status.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use workahead_study::testing::{self, Mock, Trouble};

/// A study that any engine refuses or runs within milliseconds.
const STUDY: &str = r#"title = "Demo"
question = "Which?"
engine = "mock"
workload = { rows = 1000 }
[[cases]]
name = "sequential"
[[cases]]
name = "AMAC"
speed = 2.0
[method]
repetitions = 3
baseline = { case = "sequential" }
[[paper]]
row = "E4.6"
figure = "Fig. 6b"
where = { case = "AMAC" }
ratio = 1.5
says = "+50 %"
"#;

fn workahead(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workahead"));
    command.env("RUST_BACKTRACE", "1");
    command.current_dir(dir).arg("study").args(args).output().expect("the command starts")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).expect("words")
}

/// The one line on standard error of a command that failed.
fn failure(output: &Output, status: i32) -> String {
    let line = String::from_utf8(output.stderr.clone()).expect("words");
    assert_eq!(output.status.code(), Some(status), "{line}");
    assert_eq!(line.trim_end().lines().count(), 1, "one line: {line}");
    assert!(line.starts_with("error: "), "{line}");
    line
}

/// Fails with that status and a line that holds these words; nothing is left behind.
fn refused(args: &[&str], status: i32, words: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("study.toml"), STUDY).unwrap();
    let line = failure(&workahead(dir.path(), args), status);
    for word in words {
        assert!(line.contains(word), "`{word}` is not in: {line}");
    }
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["study.toml"], "nothing is left behind");
}

#[test]
fn unknown_names_are_wrong_use() {
    refused(&["run", "no-such-study"], 2, &["no-such-study", "study list"]);
    refused(&["plan", "study.toml", "--scale", "small"], 2, &["small", "leave --scale out"]);
    refused(&["run", "study.toml", "--repetitions", "0"], 2, &["--repetitions"]);
    refused(&["run"], 2, &["STUDY"]);
}

#[test]
fn missing_files_engines_and_results_are_failures() {
    refused(&["run", "missing.toml"], 1, &["cannot read missing.toml"]);
    refused(&["run", "study.toml"], 1, &["unknown engine `mock`"]);
    refused(&["resume", "."], 1, &["does not hold a result", "run.json"]);
    refused(&["report", "nowhere"], 1, &["does not hold a result"]);
}

#[test]
fn runs_longer_than_allowed_are_not_begun() {
    refused(
        &["run", "quick", "--max-duration", "10s"],
        1,
        &["120 s", "10 s", "lower its repetitions"],
    );
    refused(&["run", "quick", "--max-duration", "soon"], 2, &["soon", "10m"]);
}

#[test]
fn a_misspelt_key_is_named_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("typo.toml"), STUDY.replace("engine", "egnine")).unwrap();
    let line = failure(&workahead(dir.path(), &["run", "typo.toml"]), 1);
    let expected = "error: study `typo`: line 3: unknown key `egnine`: did you mean `engine`?";
    assert_eq!(line.trim_end(), expected);
}

#[test]
fn the_list_names_every_study_and_each_can_be_shown() {
    let dir = tempfile::tempdir().unwrap();
    let listed = workahead(dir.path(), &["list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let text = workahead(dir.path(), &["list"]);
    for study in listed.as_array().unwrap() {
        let id = study["id"].as_str().unwrap();
        assert!(stdout(&text).contains(id), "{id} is not in the table");
        let shown = workahead(dir.path(), &["show", id]);
        assert!(stdout(&shown).contains("title = "), "{id}");
    }
}

#[test]
fn a_result_is_reported_again_from_its_directory_alone() {
    let dir = tempfile::tempdir().unwrap();
    testing::results(dir.path(), STUDY, &mut Mock::new());
    let facts = workahead(dir.path(), &["report", ".", "--json"]);
    let facts: Value = serde_json::from_slice(&facts.stdout).unwrap();
    assert_eq!(facts["complete"], true);
    assert_eq!(facts["samples"], 6);
    assert_eq!(facts["findings"][0]["is_baseline"], true);
    let ratio = facts["findings"][1]["ratio"]["ratio"].as_f64().unwrap();
    assert!((ratio / 2.0 - 1.0).abs() < 0.03, "{ratio}");
    assert_eq!(facts["verdicts"][0]["direction"], "agrees");
    for file in ["report", "parquet"] {
        let path = dir.path().join(facts[file].as_str().unwrap());
        assert!(fs::metadata(&path).unwrap().len() > 0, "{}", path.display());
    }
    let text = workahead(dir.path(), &["report", "."]);
    let text = stdout(&text);
    for word in ["Which?", "AMAC", "baseline", "agrees", "evidence tier C", "report.html"] {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
}

#[test]
fn a_result_without_profiles_has_no_pages_of_them() {
    let dir = tempfile::tempdir().unwrap();
    testing::results(dir.path(), STUDY, &mut Mock::new());
    let line = failure(&workahead(dir.path(), &["report", ".", "--profiles"]), 1);
    assert!(line.contains("no cell of this result kept a profile"), "{line}");
    assert!(!dir.path().join("profile-1.html").exists());
}

#[test]
fn a_report_of_a_result_with_a_failed_cell_says_so() {
    let dir = tempfile::tempdir().unwrap();
    testing::results(dir.path(), STUDY, &mut Mock::with(Trouble::Fail(1)));
    let text = workahead(dir.path(), &["report", "."]);
    assert!(stdout(&text).contains("failed: requested failure"), "{}", stdout(&text));
    assert!(text.status.success(), "rendering did not fail");
}

#[test]
fn a_damaged_log_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    testing::results(dir.path(), STUDY, &mut Mock::new());
    let log = dir.path().join("observations.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("\"wall_s\"", "\"wal_s\"", 1)).unwrap();
    let line = failure(&workahead(dir.path(), &["report", "."]), 1);
    assert!(line.contains("observations.jsonl, line 1"), "{line}");
}
