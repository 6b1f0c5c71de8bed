//! `workahead study run` and `resume` as processes, on the real engine: what is saved, when, and
//! what is left by a run that is stopped, killed or refused.

mod process;

use std::fs;
use std::process::Child;

use process::{Place, signal, text, wait_until};
use serde_json::Value;

/// Small enough for milliseconds a sample, and with samples enough to be interrupted among.
const STUDY: &str = r#"title = "Tiny"
question = "Does it run?"
engine = "native"
seed = 7
workload = { operator = "hash_join", probe_rows = 1000 }
[axes]
rows = [1000, 3000]
[[cases]]
name = "sequential"
[[cases]]
name = "AMAC"
technique = "amac:width=8"
[method]
repetitions = 3
baseline = { case = "sequential" }
[[paper]]
row = "E4.6"
figure = "Fig. 6b"
where = { case = "AMAC", rows = 3000 }
ratio = 1.5
says = "+50 %"
[scale.small]
axes.rows = [3000]
"#;

const RUN: [&str; 4] = ["study", "run", "tiny.toml", "--no-limits"];

fn tiny() -> Place {
    let place = Place::new();
    fs::write(place.path("tiny.toml"), STUDY).unwrap();
    place
}

fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&RUN[..], more].concat()
}

fn lines(place: &Place, dir: &str) -> Vec<Value> {
    let log = fs::read_to_string(place.path(dir).join("observations.jsonl")).unwrap_or_default();
    let whole = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

/// Which sample each line is: cell and repetition.
fn visits(lines: &[Value]) -> Vec<(u64, u64)> {
    let number = |line: &Value, field: &str| line[field].as_u64().unwrap();
    let mut visits: Vec<_> =
        lines.iter().map(|line| (number(line, "cell"), number(line, "repetition"))).collect();
    visits.sort_unstable();
    visits
}

/// A run of a given number of samples that a signal meets it in the middle, some of them kept.
fn started(place: &Place) -> Child {
    let mut child = place.start(&run(&["--repetitions", "2000", "--out", "out"]));
    wait_until("some samples", || {
        assert!(child.try_wait().unwrap().is_none(), "the run ended by itself");
        lines(place, "out").len() >= 5
    });
    child
}

#[test]
fn a_run_leaves_its_log_parquet_and_report() {
    let place = tiny();
    let output = place.run(&run(&[]));
    let (said, remarks) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{remarks}");
    assert!(remarks.contains("4 cells, 12 samples"), "{remarks}");
    for word in ["AMAC", "baseline", "E4.6", "workahead-results/tiny/report.html"] {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
    let files = process::names(&place.path("workahead-results/tiny"));
    let written =
        ["findings.json", "observations.jsonl", "observations.parquet", "report.html", "run.json"];
    assert_eq!(files, written);
    let dir = "workahead-results/tiny";
    let seen = lines(&place, dir);
    assert_eq!(visits(&seen).len(), 12);
    // Forward, backward, forward over the two cells of the first block.
    let order: Vec<u64> = seen[..6].iter().map(|line| line["cell"].as_u64().unwrap()).collect();
    assert_eq!(order, [0, 1, 1, 0, 0, 1]);
    let rows: usize = process::read(&place.path(dir).join("observations.parquet"))
        .iter()
        .map(|batch| batch.num_rows())
        .sum();
    assert_eq!(rows, 12);
    // Once more: beside the first.
    assert!(place.run(&run(&[])).status.success());
    assert_eq!(process::names(&place.path("workahead-results")), ["tiny", "tiny-2"]);
}

#[test]
fn programs_read_the_same_facts() {
    let place = tiny();
    let output = place.run(&run(&["--scale", "small", "--json", "--out", "out"]));
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    let facts: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(facts["complete"], true);
    assert_eq!((&facts["samples"], &facts["scale"]), (&Value::from(6), &Value::from("small")));
    assert_eq!(facts["findings"][0]["is_baseline"], true);
    assert!(facts["findings"][1]["ratio"]["ratio"].as_f64().unwrap() > 0.0);
    assert_eq!(facts["verdicts"][0]["claim"], 0);
    assert_eq!(facts["report"], "out/report.html");
}

/// Stops a run by a signal: it says what is kept and how to go on, and leaves whole files only.
fn stopped_by(name: &str) -> (Place, Vec<Value>) {
    let place = tiny();
    let child = started(&place);
    signal(&child, name);
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    // Our own status, not that of a process which the signal killed: there it would be `None`.
    assert_eq!(output.status.code(), Some(1), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("error: interrupted, "), "{said}");
    assert!(last.contains("`workahead study resume out` continues"), "{said}");
    let kept = lines(&place, "out");
    assert!(last.contains(&format!("{} of 8000 samples kept", kept.len())), "{said}");
    let written = ["findings.json", "observations.jsonl", "observations.parquet", "run.json"];
    assert_eq!(process::names(&place.path("out")), written);
    let log = fs::read(place.path("out/observations.jsonl")).unwrap();
    assert_eq!(log.last(), Some(&b'\n'), "the last line is whole");
    (place, kept)
}

#[test]
fn an_interrupted_run_says_how_to_go_on_and_loses_nothing() {
    let (place, kept) = stopped_by("INT");
    // Results so far can be looked at.
    let output = place.run(&["study", "report", "out"]);
    assert!(text(&output.stdout).contains("not finished"), "{}", text(&output.stdout));
    // Not run over unasked.
    let said = place.fails(&run(&["--out", "out"]), 1);
    assert!(said.contains("already holds a result") && said.contains("--force"), "{said}");
    assert_eq!(lines(&place, "out"), kept);
}

/// Signals of a service manager, a container or a closed terminal end a run like Ctrl-C.
#[test]
fn a_terminated_run_ends_like_an_interrupted_one_and_goes_on() {
    for name in ["TERM", "HUP"] {
        let (place, kept) = stopped_by(name);
        let mut child = place.start(&["study", "resume", "out", "--no-limits"]);
        wait_until("more samples", || {
            assert!(child.try_wait().unwrap().is_none(), "the resumed run ended by itself");
            lines(&place, "out").len() >= kept.len() + 5
        });
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(1));
        let after = lines(&place, "out");
        assert_eq!(after[..kept.len()], kept, "kept results stay as they were");
        let mut once = visits(&after);
        once.dedup();
        assert_eq!(once.len(), after.len(), "no sample twice");
    }
}

#[test]
fn a_killed_run_is_resumed_to_exactly_its_samples() {
    let place = tiny();
    let mut child = place.start(&run(&["--repetitions", "200", "--out", "out"]));
    wait_until("some samples", || lines(&place, "out").len() >= 5);
    // SIGKILL: nothing of ours runs any more.
    child.kill().unwrap();
    child.wait().unwrap();
    let before = lines(&place, "out");
    assert!(before.len() < 800, "killed too late to test anything");
    // The line it was in may be torn; make certain that one is.
    let log = place.path("out/observations.jsonl");
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend_from_slice(b"{\"study\":\"tiny\",\"pl");
    fs::write(&log, bytes).unwrap();
    let output = place.run(&["study", "resume", "out", "--no-limits", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let facts: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&facts["complete"], &facts["samples"]), (&Value::from(true), &Value::from(800)));
    let after = lines(&place, "out");
    assert_eq!(after[..before.len()], before, "kept results stay as they were");
    let expected: Vec<_> = (0..4).flat_map(|cell| (0..200).map(move |r| (cell, r))).collect();
    assert_eq!(visits(&after), expected, "every sample once");
    // A finished one has nothing left to do.
    assert!(place.run(&["study", "resume", "out"]).status.success());
    assert_eq!(lines(&place, "out"), after);
}

#[test]
fn two_runs_do_not_write_to_one_directory() {
    let place = tiny();
    let mut child = started(&place);
    for arguments in [run(&["--out", "out", "--force"]), vec!["study", "resume", "out"]] {
        let said = place.fails(&arguments, 1);
        assert!(said.contains("being written by another run"), "{said}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let output = place.run(&run(&["--out", "out", "--force"]));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(lines(&place, "out").len(), 12);
}

#[test]
fn another_run_plan_is_not_resumed() {
    let place = tiny();
    assert!(place.run(&run(&["--out", "out"])).status.success());
    let record = place.path("out/run.json");
    let written = fs::read_to_string(&record).unwrap();
    fs::write(&record, written.replace("seed = 7", "seed = 8")).unwrap();
    let said = place.fails(&["study", "resume", "out"], 1);
    assert!(said.contains("out was run from another run plan") && said.contains("--out"), "{said}");
}

#[test]
fn impossible_runs_are_refused_before_anything_is_written() {
    for (from, to, status, says) in [
        ("probe_rows", "probe_row", 1, "unknown setting `probe_row`: did you mean `probe_rows`?"),
        ("hash_join", "hash_jion", 1, "unknown operator `hash_jion`: did you mean `hash_join`?"),
        ("amac:width=8", "amca:width=8", 1, "technique"),
        ("amac:width=8", "amac:width=0", 1, "technique"),
        ("native", "naitve", 1, "unknown engine `naitve`"),
        ("repetitions", "repetition", 1, "line 14: unknown key `repetition`: did you mean"),
        ("1000, 3000", "3000, 4_000_000_000", 1, "MiB"),
        ("title = \"Tiny\"", "title = \"Tiny", 1, "line 1"),
    ] {
        let place = tiny();
        assert!(STUDY.contains(from), "{from}");
        fs::write(place.path("tiny.toml"), STUDY.replacen(from, to, 1)).unwrap();
        let said = place.fails(&run(&[]), status);
        assert!(said.contains(says), "{to}: {said}");
        assert_eq!(place.names(), ["tiny.toml"], "{to}");
    }
}

#[test]
fn unwritable_outputs_are_known_before_any_sample() {
    let place = tiny();
    for (out, says) in
        [("tiny.toml", "tiny.toml"), ("tiny.toml/below", "below"), ("/proc/result", "/proc/result")]
    {
        let said = place.fails(&run(&["--out", out]), 1);
        assert!(said.contains(says) && said.contains("choose another directory"), "{said}");
    }
    assert_eq!(place.names(), ["tiny.toml"]);
}

/// On a terminal of 60 columns, as `script` (util-linux) makes one: one line, redrawn in place.
#[cfg(target_os = "linux")]
#[test]
fn a_bar_stays_on_its_line() {
    let place = tiny();
    let command =
        format!("stty rows 20 cols 60; {} {}", env!("CARGO_BIN_EXE_workahead"), RUN.join(" "));
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(place.directory.path());
    // The tests may run in a terminal that can't redraw a line.
    script.env("TERM", "xterm");
    let output = script.stdin(std::process::Stdio::null()).output().expect("script");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}");
    // Drawn again and again, each time from the line's beginning.
    let bars: Vec<&str> = said.split(['\r', '\n']).filter(|line| line.contains("/12 ")).collect();
    assert!(!bars.is_empty(), "{said:?}");
    for bar in bars {
        let drawn = bar.split('\u{1b}').map(|piece| match piece.strip_prefix('[') {
            // An escape sequence ends with a letter.
            Some(rest) => rest.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |s| s.1),
            None => piece,
        });
        let drawn: String = drawn.collect();
        assert!(drawn.chars().count() <= 60, "{drawn}");
        assert!(drawn.contains("to go"), "{drawn}");
    }
}
