//! Studies on private servers as processes: a kill, an interruption or a dead server, and resuming
//! the run after it.

mod process;

use std::fs;
use std::process::{Child, Command};
use std::time::Duration;

use process::{
    Place, processes, server_directory, signal, text, tiny_study, wait_closely, wait_until,
};
use serde_json::Value;
use tempfile::TempDir;

/// Two axes; the server is restarted between the first two cells and the last two.
const AXES: &str = "scheduler = [\"other\", \"batch\"]\nclients = [1, 2]";

/// A working directory, and one for servers.
fn tiny(engine: &str) -> (Place, TempDir) {
    let place = Place::new();
    fs::write(place.path("tiny.toml"), tiny_study(engine, AXES, 1)).unwrap();
    (place, server_directory())
}

fn start(place: &Place, data: &TempDir, words: &[&str]) -> Child {
    let home = data.path().to_str().unwrap();
    place.start(&[words, &["--no-limits", "--data-dir", home]].concat())
}

fn samples(place: &Place) -> Vec<String> {
    let log = fs::read_to_string(place.path("out/observations.jsonl")).unwrap_or_default();
    // The last line may be incomplete.
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    whole.lines().map(ToOwned::to_owned).collect()
}

const RUN: [&str; 5] = ["study", "run", "tiny.toml", "--out", "out"];
const RESUME: [&str; 3] = ["study", "resume", "out"];

/// A run that is killed after each sample is resumed to exactly all samples. On a busy machine it
/// may be over by the time it dies: then it is run again.
fn survives_kills(engine: &str) {
    assert!((0..20).any(|_| survived_kills(engine)), "always killed too late to test anything");
}

/// Whether it was killed before it was over.
fn survived_kills(engine: &str) -> bool {
    let (place, data) = tiny(engine);
    let mut kills = 0;
    loop {
        let kept = samples(&place).len();
        if kept >= 3 {
            break;
        }
        let mut child = start(&place, &data, if kills == 0 { &RUN[..] } else { &RESUME });
        // It may be further than that by the time it dies: its samples take some milliseconds.
        wait_closely("a sample", Duration::from_millis(2), || samples(&place).len() > kept);
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        if samples(&place).len() >= 4 {
            return false;
        }
    }
    let output = start(&place, &data, &RESUME).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let cell = |line: &String| serde_json::from_str::<Value>(line).unwrap()["cell"].clone();
    let mut cells: Vec<_> = samples(&place).iter().map(cell).collect();
    cells.sort_by_key(Value::as_u64);
    assert_eq!(cells, [0, 1, 2, 3]);
    assert_eq!(processes(data.path()), [0; 0], "the last one stops it");
    true
}

#[test]
fn a_run_on_postgres_survives_being_killed_between_any_two_samples() {
    survives_kills("postgres");
}

#[test]
fn a_run_on_mariadb_survives_being_killed_between_any_two_samples() {
    survives_kills("mariadb");
}

/// Begins a cell that would take hours.
fn busy(place: &Place, data: &TempDir) -> Child {
    let child = start(place, data, &[&RUN[..], &["--scale", "long"]].concat());
    // PostgreSQL's processes say in their titles what they do.
    wait_until("a client at work", || {
        titles(data).iter().any(|title| title.contains("current [local] INSERT"))
    });
    child
}

/// Titles of the processes below the server's first one.
fn titles(data: &TempDir) -> Vec<String> {
    let first: Vec<u32> = processes(data.path());
    let mut titles = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent =
            stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        if parent.is_some_and(|parent: u32| first.contains(&parent)) {
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            titles.push(String::from_utf8_lossy(&words).into_owned());
        }
    }
    titles
}

#[test]
fn an_interruption_within_a_cell_stops_the_server_and_names_the_command_to_resume() {
    let (place, data) = tiny("postgres");
    let child = busy(&place, &data);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("error: interrupted, 0 of 4 samples kept"), "{said}");
    assert!(last.contains("`workahead study resume out` continues"), "{said}");
    assert_eq!(processes(data.path()), [0; 0]);
}

#[test]
fn a_server_that_dies_fails_its_cell_in_one_line() {
    let (place, data) = tiny("postgres");
    let child = busy(&place, &data);
    let server = processes(data.path());
    let mut kill = Command::new("kill");
    kill.arg("-KILL").args(server.iter().map(u32::to_string));
    assert!(kill.status().unwrap().success());
    // The next cell begins on a new server, and would take hours too.
    wait_until("the failed cell", || samples(&place).len() == 1);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let failure = serde_json::from_str::<Value>(&samples(&place)[0]).unwrap()["failure"].clone();
    let failure = failure.as_str().unwrap();
    assert!(failure.starts_with("the server went away under client"), "{failure}");
    assert_eq!(processes(data.path()), [0; 0]);
}
