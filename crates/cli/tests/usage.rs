//! The command line itself: help, completions, the manual, a closed output.

mod process;

use std::io::Read;

use process::{Place, text};

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
