//! Workers that are stopped: they keep their connections and answer nothing.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::{Place, cpu_ticks, text};
use crate::running::{
    Cluster, ENDLESS, LONG, URL, alone, answer, data, finish, number, right_or_error, send, table,
    there, wait_for_work,
};

/// Seconds after which a silent process counts as dead: of the cluster, and of its client.
const DEAD_AFTER: Duration = Duration::from_secs(2);
/// A worker is found dead, and all are called after that.
const MOST: Duration = Duration::from_secs(2 * 2 + 4);

fn stop(id: u32) -> Instant {
    assert!(send("STOP", id));
    Instant::now()
}

#[test]
fn a_query_whose_worker_is_stopped_is_run_again_on_the_others() {
    let place = Place::new();
    let lines = table("l", "lineitem");
    let words = [LONG, "--table", &lines, "--out"];
    let start = Instant::now();
    let (wanted, _) = answer(&place, &[&["sql"], &words[..], &["here.csv"]].concat());
    let runs = 2 * start.elapsed();
    for victim in [0, 1] {
        let cluster = Cluster::two(&place);
        let words = [&there(&words)[..], &["there.csv", "--json"]].concat();
        let child = place.start(&words);
        wait_for_work(&cluster.workers, 20);
        let start = stop(cluster.workers[victim]);
        let output = finish(child);
        assert!(start.elapsed() < MOST + runs, "{:?}: {}", start.elapsed(), text(&output.stderr));
        right_or_error(&output, &place.path("there.csv"), &wanted).unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        println!("{:?} after worker {victim} was stopped", start.elapsed());
        assert_eq!(number(&report["statements"][0], "runs"), 2, "{report}");
    }
}

#[test]
fn when_all_workers_are_stopped_the_error_is_one_line() {
    let place = Place::new();
    let cluster = Cluster::two(&place);
    let lines = table("l", "lineitem");
    let words = there(&[LONG, "--table", &lines, "--out", "there.csv"]);
    let child = place.start(&words);
    wait_for_work(&cluster.workers, 20);
    let start = Instant::now();
    for id in &cluster.workers {
        stop(*id);
    }
    let output = finish(child);
    assert!(start.elapsed() < MOST, "{:?}: {}", start.elapsed(), text(&output.stderr));
    let said = right_or_error(&output, &place.path("there.csv"), "").expect_err("none answers");
    assert!(said.contains("no worker answers") || said.contains("did not answer"), "{said}");
    // Those that come later.
    for words in [&there(&["select 1"])[..], &["cluster", "status", URL, "--dead-after", "1"]] {
        let start = Instant::now();
        let said = place.fails(words, 1);
        assert!(said.contains("no worker answers"), "{said}");
        assert!(start.elapsed() < DEAD_AFTER + Duration::from_secs(2), "{:?}", start.elapsed());
    }
    // A stopped worker goes on, and does not run requests sent to it before.
    cluster.workers.iter().for_each(|id| assert!(send("CONT", *id)));
    let six = there(&["--tpch", "6", "--data", data(), "--out", "there.csv"]);
    assert_eq!(answer(&place, &six).0, alone(&place, 6).0);
}

#[test]
fn a_worker_that_is_stopped_is_left_out_until_it_answers() {
    let place = Place::new();
    let cluster = Cluster::two(&place);
    let status = || {
        let shown = place.json(&["cluster", "status", URL, "--dead-after", "1"]);
        let workers = shown["workers"].as_array().unwrap().clone();
        workers.iter().map(|worker| worker["threads"].as_u64()).collect::<Vec<_>>()
    };
    assert_eq!(status(), [Some(1), Some(1)]);
    stop(cluster.workers[1]);
    let mut states = status();
    states.sort();
    assert_eq!(states, [None, Some(1)]);
    let three = there(&["--tpch", "3", "--data", data(), "--out", "there.csv"]);
    let (rows, facts) = answer(&place, &three);
    assert_eq!((rows, number(&facts, "runs")), (alone(&place, 3).0, 1));
    assert!(send("CONT", cluster.workers[1]));
    assert_eq!(status(), [Some(1), Some(1)]);
    let before = cpu_ticks(cluster.workers[1]);
    let lines = table("l", "lineitem");
    place.json(&there(&[LONG, "--table", &lines]));
    assert!(cpu_ticks(cluster.workers[1]) > before, "it has work again");
}

#[test]
fn a_pause_that_is_shorter_than_the_limit_changes_nothing() {
    let place = Place::new();
    let cluster = Cluster::two(&place);
    let lines = table("l", "lineitem");
    let words = [LONG, "--table", &lines, "--out"];
    let (wanted, _) = answer(&place, &[&["sql"], &words[..], &["here.csv"]].concat());
    let patient = ["sql", "--cluster", URL, "--set", "cluster.run=workers", "--dead-after", "20"];
    let words = [&patient[..], &[LONG, "--table", &lines, "--json", "--out", "there.csv"]].concat();
    let child = place.start(&words);
    wait_for_work(&cluster.workers, 20);
    stop(cluster.workers[0]);
    std::thread::sleep(Duration::from_millis(500));
    assert!(send("CONT", cluster.workers[0]));
    let output = finish(child);
    right_or_error(&output, &place.path("there.csv"), &wanted).unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(number(&report["statements"][0], "runs"), 1, "{report}");
}

#[test]
fn a_stopped_worker_does_not_keep_a_client_from_being_interrupted() {
    let place = Place::new();
    let cluster = Cluster::two(&place);
    let lines = table("l", "lineitem");
    let patient = ["sql", "--cluster", URL, "--set", "cluster.run=workers", "--dead-after", "600"];
    let child = place.start(&[&patient[..], &[ENDLESS, "--table", &lines]].concat());
    wait_for_work(&cluster.workers, 20);
    for id in &cluster.workers {
        stop(*id);
    }
    let start = Instant::now();
    assert!(send("INT", child.id()));
    let output = finish(child);
    assert!(start.elapsed() < DEAD_AFTER, "{:?}", start.elapsed());
    assert_eq!(text(&output.stderr), "error: interrupted\n");
}
