//! Code that gets to run in the process of a run, as by a defect of the database, is kept to the
//! run's places: tried with a library that does its worst.

#![cfg(target_os = "linux")]

mod process;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use process::{Place, signal, text, wait_until};

const RUN: [&str; 6] = ["study", "run", "s.toml", "--no-limits", "--data-dir", "data"];

/// The directory of DuckDB's library.
fn real() -> PathBuf {
    let mut all = workahead_engines::library_directories().into_iter();
    let real = all.find(|directory| directory.join("libduckdb.so").exists());
    real.expect("DuckDB: `cargo xtask setup`")
}

/// The hostile library, in a directory of its own.
fn hostile(directory: &Path) -> PathBuf {
    let real = real();
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

const COUNTED: &str = "instrumented = { tool = 'callgrind', caches = 'pentium-4-ht-2m-l1d-16k' }\n";

/// A statement, a number of times.
fn study(times: usize, method: &str) -> String {
    format!(
        "title = 't'\nquestion = 'q'\nengine = 'duckdb'\nseed = 1\n[workload]\nworkload = 'sql'\n\
         sql = 'select 1'\nqueries = 1\n[method]\nrepetitions = {times}\nwarmup = 0\n{method}"
    )
}

/// Runs it.
fn run(place: &Place, times: usize, method: &str, environment: &[(&str, &Path)]) {
    fs::write(place.path("s.toml"), study(times, method)).unwrap();
    let run = place
        .command(&[&RUN[..], &["--out", "out"]].concat())
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert!(!text(&run.stderr).contains("your rights"), "{}", text(&run.stderr));
    let log = fs::read_to_string(place.path("out/observations.jsonl")).unwrap();
    assert_eq!(log.lines().count(), times);
    assert!(place.path("out/report.html").exists());
}

/// The log of the hostile library, if it has been loaded.
fn tried(place: &Place) -> Option<String> {
    let all = fs::read_dir(place.path("data/duckdb")).ok()?.map(|entry| entry.unwrap().path());
    let mut all = all.filter(|path| path.extension().is_some_and(|name| name == "tried"));
    fs::read_to_string(all.next()?).ok()
}

#[test]
fn a_database_that_does_its_worst_reaches_nothing_and_the_run_goes_on() {
    let (place, libraries) = (Place::new(), tempfile::tempdir().unwrap());
    let library = hostile(libraries.path());
    fs::create_dir(place.path("mine")).unwrap();
    let victim = place.path("mine/victim");
    fs::write(&victim, "precious").unwrap();
    // A file that the next command would load and run.
    let cache = place.path("cache");
    let next = cache.join("workahead/duckdb/1/libduckdb.so");
    fs::create_dir_all(next.parent().unwrap()).unwrap();
    fs::write(&next, "precious").unwrap();
    let environment: [(&str, &Path); 5] = [
        ("SECRET", &victim),
        ("WORKAHEAD_DUCKDB", &library),
        ("XDG_CACHE_HOME", &cache),
        ("WORKAHEAD_LIBRARY", &next),
        ("WORKAHEAD_VICTIM", &victim),
    ];
    run(&place, 2, "", &environment);
    assert_eq!(fs::read_to_string(&next).unwrap(), "precious");
    assert_eq!(process::names(next.parent().unwrap()), ["libduckdb.so"]);

    assert_eq!(process::names(&place.path("mine")), ["victim"]);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    let tried = tried(&place).unwrap();
    assert!(tried.ends_with("have a program do it: EACCES\n"), "{tried}");
    for line in tried.lines() {
        let how = line.rsplit(": ").next().unwrap();
        assert!(["EACCES", "EPERM", "EXDEV", "ENOSYS"].contains(&how), "{tried}");
    }
}

#[test]
fn what_a_run_starts_finds_its_program_and_library() {
    run(&Place::new(), 1, COUNTED, &[]);
}

#[test]
fn what_a_run_starts_ends_with_a_command_that_is_killed() {
    let (place, libraries) = (Place::new(), tempfile::tempdir().unwrap());
    let library = hostile(libraries.path());
    fs::write(place.path("s.toml"), study(1, COUNTED)).unwrap();
    let mut command = place.command(&[&RUN[..], &["--out", "out"]].concat());
    command.env("WORKAHEAD_DUCKDB", library).env("WORKAHEAD_STAYS", "1");
    command.env("WORKAHEAD_VICTIM", place.path("none"));
    let mut command = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let stays = || -> Option<i32> { tried(&place)?.trim().parse().ok() };
    wait_until("the program that stays", || stays().is_some());
    let stays = Path::new("/proc").join(stays().unwrap().to_string());
    assert!(stays.exists());
    signal(&command, "KILL");
    command.wait().unwrap();
    wait_until("its end", || !stays.exists());
}

/// A study of one statement, in a place of its own.
fn small() -> Place {
    let place = Place::new();
    run(&place, 1, "", &[]);
    place
}

#[test]
fn a_result_is_resumed_only_with_the_study_that_was_begun() {
    let place = small();
    let resume = ["study", "resume", "out", "--no-limits", "--data-dir", "data"];
    assert!(place.run(&resume).status.success());
    let record = place.path("out/run.json");
    let text = fs::read_to_string(&record).unwrap();
    let more = text.replace("queries = 1", "queries = 1\\nset_up = '/etc/passwd'");
    assert_ne!(more, text);
    fs::write(&record, more).unwrap();
    assert!(place.fails(&resume, 1).contains("not one that was begun here"));
}

#[test]
fn places_with_other_things_in_them_are_refused() {
    let place = small();
    fs::create_dir(place.path("project")).unwrap();
    fs::write(place.path("project/precious"), "").unwrap();
    let run = ["study", "run", "s.toml", "--no-limits", "--data-dir", "data", "--out", "project"];
    assert!(place.fails(&run, 1).contains("`precious`"));
    assert_eq!(process::names(&place.path("project")), ["precious"]);
    let library = workahead_engines::library_directories().remove(0);
    let library = place.path("data/duckdb").join(library.file_name().unwrap());
    fs::create_dir(&library).unwrap();
    fs::copy(real().join("libduckdb.so"), library.join("libduckdb.so")).unwrap();
    let mut inside = place.command(&[&RUN[..], &["--out", "new"]].concat());
    let said = inside.env("WORKAHEAD_DUCKDB", library.join("libduckdb.so")).output().unwrap();
    assert!(text(&said.stderr).contains("a statement could replace"), "{}", text(&said.stderr));
}

#[test]
fn whatever_the_umask_is_a_run_has_its_files() {
    let place = small();
    let program = std::env::var("WORKAHEAD_PROGRAM");
    let program = program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_workahead").to_owned());
    let script = format!("umask 0; exec '{program}' {} --out new", RUN.join(" "));
    let run = Command::new("sh").args(["-c", &script]).current_dir(place.directory.path()).output();
    let run = run.unwrap();
    assert!(run.status.success(), "{}", text(&run.stderr));
    // Files written anew keep their mode, as far as the run can give it.
    fs::set_permissions(place.path("out/run.json"), Permissions::from_mode(0o666)).unwrap();
    let resumed = place.run(&["study", "resume", "out", "--no-limits", "--data-dir", "data"]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
}
