//! `workahead scheduler` where there is nothing to schedule: wrong words, and a kernel without a
//! scheduler of ours. What it does where there is one is tried in a guest
//! (crates/schedule/scheduler).
#![cfg(feature = "scheduler")]

mod process;

use process::Place;

#[test]
fn wrong_words_are_wrong_use() {
    let place = Place::new();
    for (word, named) in [("bonus", "NAME=VALUE"), ("speed=1", "speed"), ("key=pid", "cgroup")] {
        let said = place.fails(&["scheduler", "run", word], 2);
        assert!(said.contains(named), "{said}");
    }
    place.fails(&["scheduler", "test", "bonus"], 2);
    for (option, word, named) in [
        ("--with", "default,cfs", "scx_cosmos"),
        ("--with", "itas bonsu=1", "bonsu"),
        ("--load", "sleep", "overload"),
        ("--from", "Cargo.lock", "Cargo.lock"),
    ] {
        let said = place
            .fails(&["scheduler", "compare", option, word], if option == "--from" { 1 } else { 2 });
        assert!(said.contains(named), "{said}");
    }
    let said = place.fails(&["scheduler", "run", "max-delay=soon"], 2);
    assert!(said.contains("10ms"), "{said}");
    place.fails(&["scheduler", "run", "--metrics", "9100"], 2);
    let said = place.fails(&["scheduler", "tune", "--delay-max", "soon"], 2);
    assert!(said.contains("50ms"), "{said}");
}

#[test]
fn nothing_runs_here() {
    let place = Place::new();
    for action in ["stats", "stop", "test", "compare"] {
        let said = place.fails(&["scheduler", action], 1);
        let whys = ["sched_ext", "isn't running", "needs root"];
        assert!(whys.iter().any(|why| said.contains(why)), "{said}");
    }
}

/// The threads of two programs wait for CPUs beside each other, and both use a MiB.
#[test]
fn advice_is_by_the_threads_that_run() {
    let place = Place::new();
    let mut loads: Vec<_> =
        [(); 2].map(|()| place.start(&["scheduler", "load", "memory", "4", "0s", "60s"])).into();
    let advice = place.json(&["scheduler", "advise", "--for", "3s"]);
    let text = place.run(&["scheduler", "advise", "--for", "1s"]);
    for load in &mut loads {
        load.kill().unwrap();
        load.wait().unwrap();
    }
    assert!(advice["waiting_per_cpu"].as_f64().unwrap() > 1.0, "{advice}");
    assert!(!advice["caches"].as_array().unwrap().is_empty(), "{advice}");
    let groups = advice["groups"].as_array().unwrap();
    for pid in loads.iter().map(std::process::Child::id) {
        // By other keys both are one group.
        let own = |group: &&serde_json::Value| {
            group["name"].as_str().unwrap().ends_with(&format!("({pid})"))
        };
        let Some(group) = groups.iter().find(own).filter(|_| advice["key"] == "mm") else {
            assert_ne!(advice["key"], "mm", "{advice}");
            continue;
        };
        assert!(group["threads"].as_u64().unwrap() >= 4, "{group}");
        assert!((0.1..1.0).contains(&group["chance"].as_f64().unwrap()), "{group}");
        // Of a MiB as much as they came to within the window.
        assert!(group["working_set_bytes"].as_u64().unwrap() >= 1 << 18, "{group}");
    }
    assert!(text.status.success());
    let said = String::from_utf8(text.stdout).unwrap();
    assert!(said.contains("its own waits"), "{said}");
    place.fails(&["scheduler", "advise", "--for", "10ms"], 2);
}

/// Two schedulers under a load, each better at something.
const RECORD: &str = r#"{
  "workahead": "0.1.0", "kernel": "6.18.15", "cpu": "made up", "cpus": 4, "cores": 2,
  "seconds": 3.0, "rounds": 2,
  "schedulers": [
    { "words": "default", "ours": false, "name": "the kernel's own" },
    { "words": "itas", "ours": true, "name": "workahead" },
    { "words": "scx_none", "ours": false, "name": null }
  ],
  "cells": [
    { "round": 1, "scheduler": "default", "load": "memory",
      "figures": { "passes_per_s": 100.0, "wait_ns_max": 4e6 } },
    { "round": 1, "scheduler": "itas", "load": "memory",
      "figures": { "passes_per_s": 150.0, "wait_ns_max": 8e6 } },
    { "round": 1, "scheduler": "scx_none", "load": "memory", "figures": {},
      "failure": "scx_none: it ended with exit status: 1" },
    { "round": 2, "scheduler": "default", "load": "memory",
      "figures": { "passes_per_s": 104.0, "wait_ns_max": 4e6 } },
    { "round": 2, "scheduler": "itas", "load": "memory",
      "figures": { "passes_per_s": 160.0, "wait_ns_max": 9e6 } }
  ]
}"#;

#[test]
fn a_record_is_shown_with_its_losses() {
    let place = Place::new();
    std::fs::write(place.path("record.json"), RECORD).unwrap();
    let compare = ["scheduler", "compare", "--from", "record.json"];
    let shown = place.run(&compare);
    assert!(shown.status.success());
    let shown = String::from_utf8(shown.stdout).unwrap();
    for part in [
        "155 *",
        "In 1 of 2 rows another scheduler is better",
        "longest wait: default 4.00 ms, itas 8.50 ms, 2.12 times as good",
        "it ended with exit status: 1",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let page = place.path("page.html");
    let words = [&compare[..], &["--html", page.to_str().unwrap()]].concat();
    let judged = place.json(&words);
    assert_eq!(judged["losses"][0]["by"], 0);
    let page = std::fs::read_to_string(page).unwrap();
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part} on the page"));
    assert!(at("Where others are better") < at("<svg"), "losses come first");
    assert!(!page.contains("<script") && !page.contains("http://"));
}
