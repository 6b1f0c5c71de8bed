//! `workahead simulate` as a process: machines, their figures, a run, bad input.

mod process;

use std::time::{Duration, Instant};

use process::{Place, cpu_ticks, interrupt, text, wait_closely};

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
    let cycles = |run: &serde_json::Value| run["measures"]["cycles_per_tuple"].as_f64().unwrap();
    let helped = run(&["--set", "technique=work-ahead"]);
    assert_eq!(helped["rows"], sequential["rows"]);
    assert!(cycles(&helped) < cycles(&sequential));
    let larger = run(&["--change", "cache.L2.bytes=67108864"]);
    assert!(cycles(&larger) < cycles(&sequential));
}

#[test]
fn wrong_use_is_one_line() {
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

/// The output of `simulate` as text, and the measures of the same run as JSON.
fn shown(place: &Place, words: &[&str]) -> (String, serde_json::Value) {
    let words = [&["simulate", "--machine"], words].concat();
    let output = place.run(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    (text(&output.stdout).to_owned(), place.json(&words)["measures"].clone())
}

/// The figures of the first row with this prefix, below the header with this prefix.
fn row(shown: &str, header: &str, name: &str) -> Vec<String> {
    let mut lines = shown.lines().map(str::trim).skip_while(|line| !line.starts_with(header));
    let found = lines.find_map(|line| line.strip_prefix(name));
    let found = found.unwrap_or_else(|| panic!("{name} below {header}:\n{shown}"));
    found.split_whitespace().filter(|word| *word != "%").map(str::to_owned).collect()
}

fn printed(value: f64) -> String {
    if value.abs() < 1000.0 { format!("{value:.3}") } else { format!("{value:.0}") }
}

const HELPED: [&str; 9] = [
    "p4-ht-512k",
    "--workload",
    "hash_join",
    "--set",
    "rows=20000",
    "--set",
    "probe_rows=5000",
    "--set",
    "technique=work-ahead",
];

/// Zhou's split of misses and Keeton's breakdown of cycles have the figures of the JSON.
#[test]
fn a_walks_tables_are_its_figures() {
    let place = Place::new();
    let (shown, measures) = shown(&place, &HELPED);
    let of = |name: &str| measures[name].as_f64().unwrap();
    assert!(shown.lines().next().unwrap().contains("modelled (tier E"), "{shown}");
    let (accesses, missed) = (of("l1d_load_misses_per_tuple"), of("l2_load_misses_per_tuple"));
    let helper = of("l2_load_misses_per_tuple_helper");
    let said = row(&shown, "misses, each probe", "L2, loads");
    let percent = |part: f64| format!("{:.1}", 100.0 * part);
    let main = of("l2_load_misses_per_tuple_main");
    let [accesses, missed, ratio, main, part] = [
        printed(accesses),
        printed(missed),
        percent(missed / accesses),
        printed(main),
        percent(helper / missed),
    ];
    assert_eq!(said, [accesses, missed, ratio, main, printed(helper), part]);
    let all = row(&shown, "cycles, each instruction", "all ");
    let hidden = of("non_overlapped_cpi") - of("cpi");
    assert_eq!(
        all,
        [printed(of("cpi")), "100.0".into(), printed(of("non_overlapped_cpi")), printed(hidden)]
    );
    // Figures of other tables are not repeated.
    let (_, rest) = shown.split_once("modelled  ").unwrap();
    assert!(!rest.contains("l2 load misses") && rest.contains("helper waits"), "{shown}");
}

/// Every cycle of an instruction has its row, and every figure a place.
#[test]
fn a_workloads_tables_are_its_figures() {
    let place = Place::new();
    let of = |machine: &str, more: &[&str]| {
        let words = [
            machine,
            "--workload",
            "order-entry",
            "--set",
            "transactions=2",
            "--set",
            "warmup=1",
            "--set",
            "items=500",
            "--set",
            "customers=30",
            "--set",
            "buffer_mib=1.0",
        ];
        shown(&place, &[&words, more].concat())
    };
    let (four, measures) = of("ppro-quad", &[]);
    let value = |name: &str| measures[name].as_f64().unwrap();
    let state = row(&four, "last cache, state before", "load");
    let states = ["m", "e", "s", "i"].map(|of| value(&format!("state_load_{of}")));
    assert_eq!(state, states.map(|share| format!("{:.1}", 100.0 * share)));
    assert_eq!(row(&four, "bus, in all", "reads"), [printed(value("bus_reads"))]);
    let taken = row(&four, "bus, in all", "of lines that another cache had changed");
    assert_eq!(taken[0], printed(value("dirty_reads")));
    let l2 = row(&four, "misses, of 1000 instructions", "L2 ");
    assert_eq!(l2[..2], [printed(value("l2_apki")), printed(value("l2_mpki"))]);
    let of_cpus = row(&four, "each logical CPU", "instructions share");
    let shares = (0..4).map(|cpu| printed(value(&format!("instructions_share_p{cpu}"))));
    assert_eq!(of_cpus, shares.collect::<Vec<_>>());

    let first = |line: &str| -> f64 { line.parse().unwrap() };
    let (_, stalls) = four.split_once("cycles, each instruction").unwrap();
    let (stalls, _) = stalls.split_once("\n all ").unwrap();
    let measured = stalls.lines().skip(2).filter_map(|line| {
        let mut figures = line.split_whitespace().filter(|word| word.contains('.'));
        figures.next().map(first)
    });
    let sum: f64 = measured.sum();
    assert!((sum - value("cpi")).abs() < 0.01, "{sum} of {}:\n{four}", value("cpi"));

    // Coherence needs several CPUs: the states of a single one are among the other figures.
    let (one, _) = of("ppro-quad/1p-1m", &["--set", "cpus=1"]);
    assert!(!one.contains("last cache, state before") && one.contains("state load m"), "{one}");
}

/// Of one thread, whose turn lasts to its end.
#[test]
fn a_run_ends_when_it_is_interrupted() {
    let place = Place::new();
    let words = ["simulate", "--machine", "ppro-quad", "--workload", "sysbench-memory"];
    let child = place.start(&[&words[..], &["--set", "passes=5000"]].concat());
    // It has begun, and is far from done.
    wait_closely("its run", Duration::from_millis(10), || cpu_ticks(child.id()) >= 20);
    let start = Instant::now();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(2), "it went on for {:?}", start.elapsed());
    assert_eq!(text(&output.stderr), "error: interrupted\n");
    assert_eq!(output.status.code(), Some(1));
}

/// Runs that would never end, or take all memory, are refused before they begin.
#[test]
fn machines_without_end_are_refused() {
    let place = Place::new();
    let key = vec!["a"; 75].join(".");
    let deep = (0..75).fold("1".to_owned(), |value, _| format!("{{{key}={value}}}"));
    std::fs::write(place.path("deep.toml"), format!("title = \"t\"\n[variant]\nx = {deep}\n"))
        .unwrap();
    let said = place.fails(&["simulate", "--machine", "deep.toml", "--describe"], 2);
    assert!(said.contains("nested more than a hundred deep"), "{said}");
    let study = format!("title = 't'\nquestion = 'q'\nengine = 'native'\n[axes]\nx = {deep}\n");
    std::fs::write(place.path("study.toml"), study).unwrap();
    let said = place.fails(&["study", "plan", "study.toml"], 1);
    assert!(said.contains("nested more than a hundred deep"), "{said}");
    let fails = |words: &[&str], says: &str| {
        let said = place.fails(&[&["simulate", "--machine"], words].concat(), 2);
        assert!(said.contains(says), "{said}");
    };
    let memory = ["ppro-quad", "--workload", "sysbench-memory", "--set"];
    fails(&[&memory[..], &["time_scale=1000000"]].concat(), "over before a switch is");
    let gang = ["scheduler=gang", "--set", "slot_ms=0"];
    fails(&[&memory[..], &gang].concat(), "over before a switch is");
    let large = ["p4-ht-512k", "--change", "cores=64", "--change", "cache.L2.bytes=4294967296"];
    fails(&[&large[..], &["--workload", "uss"]].concat(), "MiB are available");
}
