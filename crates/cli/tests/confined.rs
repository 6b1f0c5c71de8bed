//! Code that gets to run in the process of a run, as by a defect of the database, is kept to the
//! run's places: tried with a library that does its worst.

#![cfg(target_os = "linux")]

mod process;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use process::{Place, text};

/// The hostile library, in a directory of its own.
fn hostile(directory: &Path) -> PathBuf {
    let real = workahead_engines::library_directories();
    let real = real.iter().find(|directory| directory.join("libduckdb.so").exists());
    let real = real.expect("DuckDB: `cargo xtask setup`");
    let library = directory.join("libduckdb.so");
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("run by cargo");
    let source = Path::new(&package).join("tests/confined/hostile.c");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-Wl,--no-as-needed")
        .arg(real.join("libduckdb.so"))
        .arg(format!("-Wl,-rpath,{}", real.display()))
        .status();
    assert!(built.expect("a C compiler").success());
    library
}

/// Runs a statement a number of times.
fn run(place: &Place, times: usize, method: &str, environment: &[(&str, &Path)]) {
    let study = format!(
        "title = 't'\nquestion = 'q'\nengine = 'duckdb'\nseed = 1\n[workload]\nworkload = 'sql'\n\
         sql = 'select 1'\nqueries = 1\n[method]\nrepetitions = {times}\nwarmup = 0\n{method}"
    );
    fs::write(place.path("s.toml"), study).unwrap();
    let run = place
        .command(&["study", "run", "s.toml", "--no-limits", "--out", "out", "--data-dir", "data"])
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", text(&run.stderr));
    let log = fs::read_to_string(place.path("out/observations.jsonl")).unwrap();
    assert_eq!(log.lines().count(), times);
    assert!(place.path("out/report.html").exists());
}

#[test]
fn a_database_that_does_its_worst_reaches_nothing_and_the_run_goes_on() {
    let (place, libraries) = (Place::new(), tempfile::tempdir().unwrap());
    let library = hostile(libraries.path());
    fs::create_dir(place.path("mine")).unwrap();
    let victim = place.path("mine/victim");
    fs::write(&victim, "precious").unwrap();
    run(&place, 2, "", &[("WORKAHEAD_DUCKDB", &library), ("VICTIM", &victim)]);

    assert_eq!(process::names(&place.path("mine")), ["victim"]);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    let tried = fs::read_dir(place.path("data/duckdb")).unwrap();
    let tried = tried.map(|entry| entry.unwrap().path());
    let tried = tried.filter(|path| path.extension().is_some_and(|name| name == "tried"));
    let [tried] = tried.collect::<Vec<_>>().try_into().unwrap();
    let tried = fs::read_to_string(tried).unwrap();
    assert!(tried.ends_with("have a program do it: EACCES\n"), "{tried}");
    for line in tried.lines() {
        let how = line.rsplit(": ").next().unwrap();
        assert!(["EACCES", "EPERM", "EXDEV"].contains(&how), "{tried}");
    }
}

#[test]
fn what_a_run_starts_finds_its_program_and_library() {
    let counted = "instrumented = { tool = 'callgrind', caches = 'pentium-4-ht-2m-l1d-16k' }\n";
    run(&Place::new(), 1, counted, &[]);
}
