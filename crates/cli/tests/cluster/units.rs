//! The files for services and containers in docs/cluster: the workers that they start.

use std::path::PathBuf;
use std::process::Command;

use crate::process::{Place, text};
use crate::running::{URL, Worker, data, write_token};

fn read(name: &str) -> String {
    let path = file(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn file(name: &str) -> PathBuf {
    let crate_folder =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(Default::default, PathBuf::from);
    crate_folder.join("../../docs/cluster").join(name)
}

/// Starts the worker of a unit, with the values of this place in its words, and asks it.
fn start(words: &str, values: &[(&str, &str)]) {
    let place = Place::new();
    let token = write_token(&place, "token");
    std::fs::create_dir(place.path("spill")).unwrap();
    let mut words = words.to_owned();
    for (name, value) in values {
        assert!(words.contains(name), "{name} in {words}");
        words = words.replace(name, value);
    }
    let mut words = words.split_whitespace();
    assert!(words.next().is_some_and(|program| program.ends_with("workahead")));
    let words: Vec<&str> = words.collect();
    let worker = Worker::start(place.command(&words));
    worker.write_url(&place, &token);
    let status = place.json(&["cluster", "status", URL]);
    assert_eq!(status["workers"][0]["memory_limit_bytes"], 2_000_000_000_u64, "{words:?}");
}

#[test]
fn the_service_starts_a_worker() {
    let unit = read("workahead-worker.service");
    let lines = unit.replace("\\\n", " ");
    let words = lines.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let environment = read("worker.env");
    for name in ["LISTEN", "DATA", "MEMORY"] {
        assert!(environment.lines().any(|line| line.starts_with(&format!("{name}="))), "{name}");
    }
    start(
        words,
        &[
            ("${LISTEN}", "127.0.0.1:0"),
            ("/etc/workahead/token", "token"),
            ("${DATA}", data()),
            ("${MEMORY}", "2GB"),
            ("/var/tmp", "spill"),
        ],
    );
}

#[test]
fn systemd_finds_no_fault_with_the_service() {
    let unit = read("workahead-worker.service");
    // Which is not installed here.
    let unit = unit.replace("/usr/local/bin/workahead", "/bin/true");
    let place = Place::new();
    let path = place.path("workahead-worker.service");
    std::fs::write(&path, unit).unwrap();
    let verified = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output();
    let Ok(verified) = verified else {
        println!("skipped: there is no systemd-analyze");
        return;
    };
    let said = text(&verified.stderr);
    let own = said.lines().filter(|line| line.contains("workahead-worker"));
    assert_eq!(own.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn the_container_starts_a_worker() {
    let compose = read("compose.yaml");
    let (_, worker) = compose.split_once("\n  worker:\n").unwrap();
    let (_, command) = worker.split_once("command:\n").unwrap();
    let words: Vec<&str> =
        command.lines().map_while(|line| line.trim_start().strip_prefix("- ")).collect();
    start(
        &words.join(" "),
        &[
            ("0.0.0.0:50050", "127.0.0.1:0"),
            ("/run/secrets/token", "token"),
            ("${DATA}", data()),
            ("${MEMORY:-4GB}", "2GB"),
            ("/var/tmp", "spill"),
        ],
    );
}
