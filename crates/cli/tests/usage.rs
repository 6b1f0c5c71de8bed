//! The command line itself: help, completions, the manual, a closed output.

mod process;

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use process::{Place, text, tiny_study};

const COMMANDS: [&[&str]; 25] = [
    &["machine"],
    &["limits"],
    &["data"],
    &["data", "tpch"],
    &["join"],
    &["sql"],
    &["cluster"],
    &["study"],
    &["study", "list"],
    &["study", "show"],
    &["study", "plan"],
    &["study", "run"],
    &["study", "resume"],
    &["study", "report"],
    &["study", "compare"],
    &["capacity"],
    &["reproduce"],
    &["counters"],
    &["counters", "list"],
    &["counters", "stat"],
    &["counters", "profile"],
    &["counters", "papers"],
    &["scheduler"],
    &["completions"],
    &["man"],
];

#[test]
fn every_command_has_help_with_an_example() {
    let place = Place::new();
    for command in COMMANDS {
        let output = place.run(&[command, &["--help"]].concat());
        let help = text(&output.stdout);
        assert!(output.status.success(), "{command:?}");
        let call = format!("workahead {}", command.join(" "));
        let example = help.split("Example").nth(1).unwrap_or_default();
        assert!(example.contains(&call), "{command:?} has no example:\n{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{command:?}");
    }
}

#[test]
fn unknown_commands_are_one_line() {
    let place = Place::new();
    let said = place.fails(&["jion"], 2);
    assert!(said.contains("jion") && said.contains("'join'"), "{said}");
    assert_eq!(place.run(&[]).status.code(), Some(2));
}

#[test]
fn a_file_of_a_study_may_have_any_name() {
    let place = Place::new();
    let name = OsStr::from_bytes(b"mi\xffne.toml");
    let study = tiny_study("native", "clients = [1]", 1);
    fs::write(place.directory.path().join(name), &study).unwrap();
    let output = place.command(&["study", "show"]).arg(name).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), study);
}

#[test]
fn what_must_be_utf_8_is_named_on_one_line() {
    let place = Place::new();
    let fails = |arguments: &[&str], remedy: &str| {
        let output =
            place.command(arguments).arg(OsStr::from_bytes(b"na\xff\x1bme")).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        let named = said.starts_with("error: na\u{fffd}\\u{1b}me is not UTF-8");
        assert!(named && said.trim_end().ends_with(remedy), "{arguments:?}: {said}");
    };
    fails(&["simulate", "--machine"], ": give another name");
    fails(&["study", "run", "quick", "--out"], ": give another path");
    fails(&["study", "run", "quick", "--json", "--out"], ": give another path");
    fails(&["study", "report", "--json"], "or leave --json out");
}

#[test]
fn completions_include_the_options() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = place.run(&["completions", shell]);
        assert!(output.status.success());
        assert!(text(&output.stdout).contains("build-side"), "{shell}");
    }
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let place = Place::new();
    let first = text(&place.run(&["man"]).stdout);
    assert!(first.contains(".TH workahead 1") && first.contains("limits"), "{first}");
    assert!(place.run(&["man", "--out", "pages"]).status.success());
    for command in COMMANDS {
        let page = format!("pages/workahead-{}.1", command.join("-"));
        let page = std::fs::read_to_string(place.path(&page)).expect(&page);
        assert!(page.contains(".SH SYNOPSIS"), "{command:?}");
    }
    std::fs::write(place.path("taken"), "").unwrap();
    let said = place.fails(&["man", "--out", "taken"], 1);
    assert!(said.contains("taken"), "{said}");
}

#[test]
fn a_closed_output_is_not_a_failure() {
    let place = Place::new();
    // Closed at once, since output that fits into the pipe would not meet the closed end.
    let mut child = place.start(&["completions", "zsh"]);
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}
