//! `workahead simulate` as a process: machines, their figures, a run, bad input.

mod process;

use process::{Place, text};

#[test]
fn machines_are_listed_and_described() {
    let place = Place::new();
    let machines = place.json(&["simulate"]);
    let names: Vec<&str> =
        machines.as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
    for name in ["p4-ht-2m", "e3-1240", "ppro-quad", "core2quad", "p4-ht-512k"] {
        assert!(names.contains(&name), "{name} of the papers is missing: {names:?}");
    }
    for name in names {
        let described = place.json(&["simulate", "--machine", name, "--describe"]);
        for figure in described["figures"].as_array().unwrap() {
            assert!(!figure["origin"].as_str().unwrap().is_empty(), "{name}: {figure}");
        }
    }
    let shown = place.run(&["simulate", "--machine", "p4-ht-512k", "--describe"]);
    assert!(text(&shown.stdout).contains("cache.L2.bytes"), "{}", text(&shown.stdout));
}

/// The same figures every time, and others on another machine.
#[test]
fn a_workload_runs_on_a_machine() {
    let place = Place::new();
    let run = |more: &[&str]| {
        let words = [
            "simulate",
            "--machine",
            "p4-ht-512k",
            "--workload",
            "hash_join",
            "--set",
            "rows=20000",
            "--set",
            "probe_rows=5000",
        ];
        place.json(&[&words, more].concat())
    };
    let sequential = run(&[]);
    assert_eq!(sequential, run(&[]));
    assert_eq!((&sequential["tier"], &sequential["tuples"]), (&"E".into(), &5000.into()));
    let cycles = |told: &serde_json::Value| told["measures"]["cycles_per_tuple"].as_f64().unwrap();
    let helped = run(&["--set", "technique=work-ahead"]);
    assert_eq!(helped["rows"], sequential["rows"]);
    assert!(cycles(&helped) < cycles(&sequential));
    let larger = run(&["--change", "cache.L2.bytes=67108864"]);
    assert!(cycles(&larger) < cycles(&sequential));
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let place = Place::new();
    let on =
        |more: &[&str]| place.fails(&[&["simulate", "--machine", "p4-ht-512k"], more].concat(), 2);
    let unknown = place.fails(&["simulate", "--machine", "pentium-9", "--describe"], 2);
    assert!(unknown.contains("p4-ht-512k"), "{unknown}");
    assert!(on(&[]).contains("--workload"));
    assert!(on(&["--change", "cache.L2.bytes=1000", "--describe"]).contains("L2"));
    assert!(on(&["--change", "cache.L9.bytes=1000", "--describe"]).contains("L2"));
    assert!(on(&["--workload", "sort"]).contains("hash_join"));
    assert!(on(&["--workload", "hash_join", "--set", "rows"]).contains("KEY=VALUE"));
    assert!(on(&["--workload", "hash_join", "--set", "colour=red"]).contains("colour"));
    assert!(on(&["--workload", "hash_join", "--set", "results=whole"]).contains("model"));
    let truncated = place.path("machine.toml");
    std::fs::write(&truncated, "name = \"half\"\ntitle = ").unwrap();
    let words = ["simulate", "--machine", truncated.to_str().unwrap(), "--describe"];
    assert!(place.fails(&words, 2).contains("line 2"));
}
