//! Studies whose database works in the command's own process: whatever a statement does to it, the
//! command says so in a line, keeps the samples, and leaves nothing running.

mod process;

use std::fs;
use std::process::Child;

use process::{Place, interrupt, processes, text, wait_until};

/// A text of a million brackets, which DuckDB's function walks by recursion.
const ENDS_THE_PROCESS: &str =
    "select json_structure(repeat('[', x) || repeat(']', x)) from (select 1000000 as x)";

fn place(statements: &[&str]) -> Place {
    let place = Place::new();
    let study = format!(
        "title = 't'\nquestion = 'q'\nengine = 'duckdb'\nseed = 1\n[workload]\nworkload = 'sql'\n\
         queries = 1\n[axes]\nsql = {statements:?}\n[method]\nrepetitions = 1\nwarmup = 0\n"
    );
    fs::write(place.path("s.toml"), study).unwrap();
    place
}

const RUN: [&str; 6] = ["study", "run", "s.toml", "--no-limits", "--out", "out"];
const DATA: [&str; 2] = ["--data-dir", "data"];

fn samples(place: &Place) -> usize {
    let log = fs::read_to_string(place.path("out/observations.jsonl")).unwrap_or_default();
    log.matches('\n').count()
}

#[test]
fn a_statement_that_ends_the_process_is_an_error_in_a_line() {
    let place = place(&["select 1", "select 2", ENDS_THE_PROCESS]);
    let run = place.run(&[&RUN[..], &DATA].concat());
    let said = text(&run.stderr);
    assert_eq!(run.status.code(), Some(1), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("error: the process that the database works in was ended"), "{said}");
    assert!(last.contains("one of its statements"), "{said}");
    let kept = samples(&place);
    assert!(kept <= 2, "the third has no sample");
    // It goes on where it was, to the same end or by way of the other statements.
    let resumed = place.run(&[&["study", "resume", "out", "--no-limits"][..], &DATA].concat());
    assert_eq!(resumed.status.code(), Some(1), "{}", text(&resumed.stderr));
    assert!(samples(&place) >= kept);
}

/// Starts a run of hours, and waits until it works.
fn busy() -> (Place, Child) {
    let place = place(&["select count(*) from range(1000000000000)"]);
    let child = place.start(&[&RUN[..], &DATA].concat());
    wait_until("the database", || place.path("out/run.json").exists());
    (place, child)
}

/// The process that the database works in, and the guard that ends what is left of it.
fn working(supervisor: &Child) -> Vec<u32> {
    let id = supervisor.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    children.split_whitespace().map(|child| child.parse().unwrap()).collect()
}

#[test]
fn an_interruption_reaches_the_run_once() {
    let (place, child) = busy();
    let run = working(&child);
    assert_eq!(run.len(), 2);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.lines().last().unwrap().starts_with("error: interrupted, 0 of 1"), "{said}");
    assert_eq!(processes(&place.path("data")), [0; 0]);
    assert!(!run.into_iter().any(alive));
}

#[test]
fn a_run_that_does_not_listen_is_killed_by_the_third_interruption() {
    let (_place, child) = busy();
    let run = working(&child);
    let stop = std::process::Command::new("kill").args(["-STOP", &run[0].to_string()]).status();
    assert!(stop.unwrap().success());
    for _ in 0..3 {
        interrupt(&child);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.lines().last().unwrap().contains("SIGKILL"), "{said}");
    assert!(!run.into_iter().any(alive));
}

#[test]
fn a_killed_command_takes_the_run_with_it() {
    let (_place, mut child) = busy();
    let run = working(&child);
    assert_eq!(run.len(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the end of both", || !run.iter().any(|process| alive(*process)));
}

/// Whether a process runs: one that has ended may still be listed, for want of a parent.
fn alive(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
