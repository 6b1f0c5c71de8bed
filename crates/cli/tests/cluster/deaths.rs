//! Workers that are killed while a query runs: the others answer, or there is one clear error.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::{Place, Random, text};
use crate::running::{
    Cluster, LONG, QUERIES, URL, alone, answer, data, finish, is_running, number, right_or_error,
    send, table, there, wait_for_work,
};

/// From a worker's end to that of the client.
const MOST: Duration = Duration::from_secs(5);
const KILLS: usize = 12;

fn kills() -> usize {
    let wanted = std::env::var("WORKAHEAD_KILLS").ok();
    wanted.map_or(KILLS, |text| text.parse().expect("WORKAHEAD_KILLS is a number"))
}

/// A client, when workers are killed after its start, and how long it may take from then on.
struct Kill<'a> {
    words: &'a [&'a str],
    moment: Duration,
    most: Duration,
}

/// Starts the client, kills workers at the moment, and waits for the client.
fn kill(place: &Place, Kill { words, moment, most }: Kill<'_>, workers: &[u32]) -> Output {
    let child = place.start(words);
    std::thread::sleep(moment);
    let start = Instant::now();
    assert!(workers.iter().all(|id| send("KILL", *id)));
    let output = finish(child);
    let took = start.elapsed();
    assert!(took < most, "{took:?} after {moment:?}: {}", text(&output.stderr));
    output
}

#[test]
fn a_worker_that_is_killed_at_any_moment_never_makes_an_answer_wrong() {
    let place = Place::new();
    let mut random = Random::new("workers");
    let wanted: Vec<String> = (1..=QUERIES).map(|query| alone(&place, query).0).collect();
    let out = place.path("there.csv");
    let (mut again, mut failed) = (0, 0);
    for round in 0..kills() {
        let cluster = Cluster::two(&place);
        let query = random.below(QUERIES) + 1;
        let name = query.to_string();
        let words = ["--tpch", &name, "--data", data(), "--json", "--out", "there.csv"];
        let words = there(&words);
        let start = Instant::now();
        assert!(place.run(&words).status.success());
        let moment = start.elapsed().mul_f64(random.below(1_000) as f64 / 1_000.0);
        let _ = fs::remove_file(&out);
        let victim = random.below(cluster.workers.len());
        let killed = Kill { words: &words, moment, most: MOST };
        let output = kill(&place, killed, &cluster.workers[victim..=victim]);
        let when = format!("kill {round}, q{query} after {moment:?}");
        match right_or_error(&output, &out, &wanted[query - 1]) {
            Ok(()) => {
                let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
                again += usize::from(number(&report["statements"][0], "runs") > 1);
            }
            Err(said) => {
                println!("{when}: {said}");
                failed += 1;
            }
        }
        let _ = fs::remove_file(&out);
        // The worker that is left goes on.
        let next = random.below(QUERIES) + 1;
        let name = next.to_string();
        let words = ["--tpch", &name, "--data", data(), "--out", "there.csv"];
        assert_eq!(answer(&place, &there(&words)).0, wanted[next - 1], "q{next} after {when}");
        let _ = fs::remove_file(&out);
    }
    println!("of {} killed, {again} run again, {failed} failed", kills());
    assert_eq!(failed, 0, "a worker was left for each");
}

#[test]
fn all_queries_go_on_when_a_worker_is_killed_among_them() {
    let place = Place::new();
    let words = ["--tpch", "all", "--data", data(), "--json"];
    let rows = |output: &Output| {
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let statements = report["statements"].as_array().unwrap();
        statements.iter().map(|facts| number(facts, "rows")).collect::<Vec<_>>()
    };
    let wanted = rows(&place.run(&[&["sql"], &words[..]].concat()));
    let cluster = Cluster::start(&place, &["--workers", "3", "--threads", "1"]);
    // All of them take their time, and more on a busy machine.
    let start = Instant::now();
    assert_eq!(rows(&place.run(&there(&words))), wanted);
    let most = MOST + start.elapsed();
    for moment in [300, 700] {
        let victim = &cluster.workers[usize::from(moment > 300)..][..1];
        let killed = Kill { words: &there(&words), moment: Duration::from_millis(moment), most };
        let output = kill(&place, killed, victim);
        assert_eq!(rows(&output), wanted, "after {moment} ms");
        let said = cluster.said();
        assert!(said.contains("ended") && said.contains("the others"), "{said}");
    }
}

#[test]
fn a_query_whose_worker_is_killed_is_run_again_on_the_others() {
    let place = Place::new();
    let lines = table("l", "lineitem");
    let words = [LONG, "--table", &lines, "--out"];
    let (wanted, _) = answer(&place, &[&["sql"], &words[..], &["here.csv"]].concat());
    for victim in [0, 1] {
        let cluster = Cluster::two(&place);
        let words = [&there(&words)[..], &["there.csv", "--json"]].concat();
        let child = place.start(&words);
        wait_for_work(&cluster.workers, 30);
        assert!(send("KILL", cluster.workers[victim]));
        let output = finish(child);
        right_or_error(&output, &place.path("there.csv"), &wanted).unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(number(&report["statements"][0], "runs"), 2, "{report}");
    }
}

#[test]
fn rows_printed_before_a_worker_died_are_not_an_answer() {
    let place = Place::new();
    let cluster = Cluster::two(&place);
    let lines = table("l", "lineitem");
    let pairs = "select a.l_comment, b.l_comment as other from l a join l b on a.l_suppkey = \
                 b.l_suppkey";
    let words = [pairs, "--table", &lines, "--format", "csv"];
    let mut child = place.start(&there(&words));
    let mut rows = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    rows.read_line(&mut first).unwrap();
    assert_eq!(first, "l_comment,other\n");
    // The client waits for its reader.
    std::thread::sleep(Duration::from_millis(300));
    for id in &cluster.workers {
        send("KILL", *id);
    }
    let reader = std::thread::spawn(move || {
        let mut rest = Vec::new();
        rows.read_to_end(&mut rest).unwrap();
    });
    let output = finish(child);
    reader.join().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("error: ") && said.lines().count() == 1, "{said}");
    assert!(said.contains("ended or did not answer"), "{said}");
}

#[test]
fn without_a_worker_the_error_is_one_line() {
    let place = Place::new();
    let mut cluster = Cluster::two(&place);
    let lines = table("l", "lineitem");
    let words = there(&[LONG, "--table", &lines, "--out", "there.csv"]);
    let child = place.start(&words);
    wait_for_work(&cluster.workers, 20);
    let start = Instant::now();
    cluster.workers.iter().for_each(|id| assert!(send("KILL", *id)));
    let output = finish(child);
    assert!(start.elapsed() < MOST, "{:?}", start.elapsed());
    let said =
        right_or_error(&output, &place.path("there.csv"), "").expect_err("no worker is left");
    assert!(said.contains("no worker answers") || said.contains("ended or did not"), "{said}");
    // The cluster ends with an error.
    let said = std::iter::repeat_with(|| cluster.said()).find(|line| line.starts_with("error: "));
    assert!(said.is_some_and(|said| said.contains("no worker is left")));
    assert_eq!(cluster.child.wait().unwrap().code(), Some(1));
    assert!(!cluster.workers.iter().any(|id| is_running(*id)));
    let said = place.fails(&there(&["select 1"]), 1);
    assert!(said.contains("is `workahead cluster` running there?"), "{said}");
    let said = place.fails(&["cluster", "status", URL], 1);
    assert!(said.contains("is `workahead cluster` running there?"), "{said}");
}
