//! `workahead limits` as a process: its JSON, the kept result, bad input. No test depends on speed.

mod process;

use std::fs;
use std::process::Command;
use std::sync::Arc;

use arrow_array::Int64Array;
use process::{Place, interrupt, keyed, names, text, wait_until, write};
use serde_json::Value;
use workahead_machine::Machine;
use workahead_machine::limits::{Budget, Limits, Store};
use workahead_machine::pages::Pages;

/// `workahead limits` with a cache directory of its own.
fn limits(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workahead"));
    command.arg("limits").args(arguments).env("XDG_CACHE_HOME", place.path("cache"));
    command
}

/// Saves limits for this machine, so that none need to be measured.
fn keep(place: &Place) -> Limits {
    let machine = Machine::here();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let quick = Limits::measure(&machine, Budget::quick(&machine), &mut |_| (), &stop).unwrap();
    let limits = Limits { quick: false, limitations: vec!["a word".to_owned()], ..quick };
    Store::at(&place.path("cache/workahead/limits")).save(&machine, &limits).unwrap();
    limits
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn json_has_its_keys_and_a_quick_result_is_not_kept() {
    let place = Place::new();
    let output = limits(&place, &["--quick", "--json"]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        keys(&json),
        [
            "version",
            "machine",
            "processor",
            "taken_unix_s",
            "seconds",
            "quick",
            "latency",
            "lines",
            "bandwidth",
            "instruction_sets",
            "pause_ns",
            "siblings",
            "cache_sizes",
            "huge_share",
            "presence",
            "limitations"
        ]
    );
    assert_eq!(keys(&json["latency"][0]), ["bytes", "pages", "ns", "median_ns"]);
    let line = ["bytes", "threads", "pages"];
    let methods = ["plain_per_s", "prefetch_l1_per_s", "prefetch_l2_per_s"];
    assert_eq!(keys(&json["lines"][0]), [line, methods].concat());
    assert_eq!(
        keys(&json["bandwidth"][0]),
        [
            "bytes",
            "threads",
            "read_bytes_per_s",
            "store_bytes_per_s",
            "non_temporal_store_bytes_per_s"
        ]
    );
    assert_eq!(keys(&json["cache_sizes"]), ["l2_bytes", "useful_llc_bytes"]);
    for pair in json["siblings"]["pairs"].as_array().expect("a list") {
        assert_eq!(keys(pair), ["cpus", "reported", "throughput_ratio"]);
    }
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn a_kept_result_is_printed_without_measuring() {
    let place = Place::new();
    let kept = keep(&place);
    let output = limits(&place, &["--json"]).output().unwrap();
    assert_eq!(serde_json::from_slice::<Limits>(&output.stdout).unwrap(), kept);
    let output = limits(&place, &[]).output().unwrap();
    assert!(output.status.success());
    let report = text(&output.stdout);
    for part in [" ago in ", "useful LLC", "footprint", "Sequential", "Pause", "a word", "--fresh"]
    {
        assert!(report.contains(part), "no {part:?} in\n{report}");
    }
    assert!(report.lines().all(|line| !line.ends_with(' ')), "{report}");
    assert!(!report.contains("NaN") && !report.contains("inf "), "{report}");
}

#[test]
fn a_join_is_compared_with_the_kept_limits() {
    let place = Place::new();
    let ids =
        |step: i64| Arc::new(Int64Array::from_iter_values((0..20_000).map(|i| i * step % 20_000)));
    write(&place.path("a.parquet"), &keyed("id", ids(7919)), 5000);
    write(&place.path("b.parquet"), &keyed("id", ids(7919)), 5000);
    write(&place.path("ordered.parquet"), &keyed("id", ids(1)), 5000);
    let joined = |place: &Place, right: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_workahead"));
        command.env("XDG_CACHE_HOME", place.path("cache")).current_dir(place.directory.path());
        command.args(["join", "--left", "a.parquet", "--right", right, "--on", "id", "--json"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let join = |place: &Place| joined(place, "b.parquet");
    assert_ne!(join(&place)["limit"]["source"], "kept");
    let kept = keep(&place);
    let json = join(&place);
    let limit = &json["limit"];
    assert_eq!(keys(limit), ["random_lines_per_second", "fraction", "source"]);
    assert_eq!(limit["source"], "kept");
    let number = |value: &Value| value.as_f64().expect("a number");
    let table_bytes = json["table_bytes"].as_u64().unwrap() as usize;
    let threads = json["threads"].as_u64().unwrap() as usize;
    let threads = threads.min(Machine::here().allowed_cpus().len());
    let per_s = kept.lines_per_s(table_bytes, threads, Pages::Huge).unwrap();
    let report = number(&limit["random_lines_per_second"]);
    assert!((report / per_s - 1.0).abs() < 1e-9, "{report}, kept {per_s}");
    let fraction = number(&json["lookups_per_second"]) / per_s;
    assert!((number(&limit["fraction"]) / fraction - 1.0).abs() < 1e-9);
    // Keys in the order of the table touch no line at random: no share of that limit.
    let ordered = joined(&place, "ordered.parquet");
    assert!(ordered["limit"].is_null() && json["table_bytes_per_second"].is_null(), "{ordered}");
    assert!(number(&ordered["table_bytes_per_second"]) > 0.0, "{ordered}");
    let caches = (kept.l2_bytes(), kept.useful_llc_bytes());
    if let (Some(_), Some(_)) = caches {
        let why = json["table_cache"].as_str().expect("words");
        assert!(why.contains("measured"), "{why}");
    }
}

#[test]
fn an_interrupted_measurement_keeps_nothing() {
    let place = Place::new();
    let mut command = limits(&place, &["--fresh"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("the command starts");
    // It listens before it measures.
    let status = format!("/proc/{}/status", child.id());
    let caught = || {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        u64::from_str_radix(mask.trim(), 16).unwrap_or(0) & 2 != 0
    };
    wait_until("the handler of Ctrl-C", caught);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(said.contains("interrupted") && said.lines().count() == 1, "{said}");
    assert!(output.stdout.is_empty());
    let kept = place.path("cache/workahead/limits");
    assert!(!kept.exists() || names(&kept).is_empty());
}

#[test]
fn quick_and_fresh_exclude_each_other() {
    let said = Place::new().fails(&["limits", "--quick", "--fresh"], 2);
    assert!(said.contains("leave out"), "{said}");
}
