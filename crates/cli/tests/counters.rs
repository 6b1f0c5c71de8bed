//! `workahead counters list|papers` and `stat --recorded` as a process: nothing here counts
//! anything, so every machine says the same.

mod process;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use process::{Place, text};
use serde_json::Value;

/// Machines that nobody here has.
const RECORDINGS: [&str; 3] = ["intel-skylake-sp", "intel-sapphire-rapids", "amd-zen4"];

fn recording(name: &str) -> String {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests");
    format!("{manifest}/../measure/counters/recordings/{name}.jsonl")
}

fn printed(place: &Place, arguments: &[&str]) -> String {
    let output = place.run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    assert!(output.stderr.is_empty(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

#[test]
fn every_metric_of_every_table_has_a_formula_or_a_reason() {
    let place = Place::new();
    let tables = place.json(&["counters", "list", "--table", "all"]);
    assert!(list(&tables).iter().filter(|table| table["here"] == true).count() <= 1);
    let report = printed(&place, &["counters", "list", "--table", "all"]);
    for table in list(&tables) {
        let name = table["table"].as_str().unwrap();
        assert!(report.contains(name), "{name}");
        let metrics = place.json(&["counters", "list", "--table", name]);
        let lines = printed(&place, &["counters", "list", "--table", name]);
        assert!(list(&metrics).len() > 50, "{name}");
        for metric in list(&metrics) {
            let is = |key: &str| metric[key].as_str().is_some_and(|words| !words.is_empty());
            assert!(is("formula") != is("why"), "{name}: {metric}");
            assert!(is("unit") && !list(&metric["groups"]).is_empty(), "{name}: {metric}");
            assert!(lines.contains(metric["name"].as_str().unwrap()));
        }
        let events = place.json(&["counters", "list", "--table", name, "--events"]);
        let lines = printed(&place, &["counters", "list", "--table", name, "--events"]);
        for event in list(&events) {
            assert!(lines.contains(event["name"].as_str().unwrap()) && !event["code"].is_null());
        }
    }
    let lines = printed(&place, &["counters", "list", "--table", "intel/skylake-sp", "--events"]);
    let misses = lines.lines().find(|line| line.contains(" MEM_LOAD_RETIRED.L2_MISS ")).unwrap();
    assert!(misses.contains("cpu/config=0x10d1/"), "{misses}");
}

#[test]
fn a_group_has_its_metrics_only() {
    let place = Place::new();
    let metrics = place.json(&["counters", "list", "--group", "l2"]);
    let is_of_l2 = |metric: &Value| list(&metric["groups"]).contains(&"l2".into());
    assert!(!list(&metrics).is_empty() && list(&metrics).iter().all(is_of_l2));
}

#[test]
fn unknown_names_are_wrong_use_with_those_that_there_are() {
    let place = Place::new();
    let fails = |arguments: &[&str], remedy: &str| {
        let said = place.fails(arguments, 2);
        assert!(said.contains(remedy), "{arguments:?}: {said}");
    };
    fails(&["counters", "list", "--table", "intel/80486"], "`intel/skylake-sp`");
    fails(&["counters", "list", "--group", "l4"], "`l2`");
    fails(&["counters", "list", "--group", "l2", "--events"], "--events");
    fails(&["counters", "list", "--table", "all", "--events"], "one of them");
    fails(&["counters", "stat", "--metrics", "l4", "--all"], "`l2`");
    fails(&["counters", "stat", "--metrics", "l4", "--recorded", "x.jsonl"], "`l2`");
    fails(&["counters", "profile", "--event", "NO.SUCH", "--", "true"], "list --events");
    fails(&["counters", "papers", "A99"], "A17");
}

#[test]
fn recordings_give_every_metric_or_its_reason() {
    let place = Place::new();
    for name in RECORDINGS {
        let path = recording(name);
        let facts = place.json(&["counters", "stat", "--recorded", &path]);
        assert!(facts["constructed"].as_str().unwrap().contains("no such machine was counted"));
        let (slots, thrown) = (facts["slots"].as_u64(), facts["slots_thrown_away"].as_u64());
        assert!(slots > Some(100) && thrown > Some(0) && thrown < Some(10), "{name}");
        for metric in list(&facts["metrics"]) {
            let value = metric["value"].as_f64();
            assert!(value.is_some() != metric["why"].is_string(), "{name}: {metric}");
            assert_eq!(value.is_some(), metric["slots"].as_u64() > Some(0), "{name}: {metric}");
        }
        let counted = |metric: &&Value| metric["value"].is_f64();
        assert!(list(&facts["metrics"]).iter().filter(counted).count() > 900, "{name}");
        let report = printed(&place, &["counters", "stat", "--recorded", &path]);
        assert!(report.contains("constructed, not counted") && report.contains("thrown away"));
        assert_eq!(
            report.contains(" ~"),
            report.contains("\n~ scatters by more"),
            "{name}: {report}"
        );
        assert!(
            report.contains("not counted: ") && !report.contains("NaN") && !report.contains("inf")
        );
    }
}

#[test]
fn tables_of_recordings_are_full_or_say_why_not() {
    let place = Place::new();
    for name in RECORDINGS {
        let path = recording(name);
        let facts = place.json(&["counters", "stat", "--recorded", &path, "--tables"]);
        let report = printed(&place, &["counters", "stat", "--recorded", &path, "--tables"]);
        let mut full = Vec::new();
        for table in list(&facts["tables"]) {
            let id = table["id"].as_str().unwrap();
            assert!(report.contains(id), "{name}: {id}");
            let rows = list(&table["rows"]);
            let cells = || rows.iter().flat_map(|row| list(&row["cells"]));
            for cell in cells().filter(|cell| cell["paper"].is_string()) {
                assert!(cell["ours"].is_f64() != cell["why"].is_string(), "{name}, {id}: {cell}");
            }
            if cells().all(|cell| cell["ours"].is_f64()) {
                full.push(id);
            }
        }
        assert_eq!(full, ["Table 10", "Figure 2", "Figure 3"], "{name}");
        // Where a figure stands twice it is the same, and the metric itself.
        let of = |id: &str, row: &str, column: usize| {
            let table = list(&facts["tables"]).iter().find(|table| table["id"] == id).unwrap();
            let row = list(&table["rows"]).iter().find(|of| of["name"] == row).unwrap();
            row["cells"][column]["ours"].as_f64().unwrap()
        };
        let cpi = list(&facts["metrics"]).iter().find(|metric| {
            let Value::String(name) = &metric["metric"]["name"] else { return false };
            name == "cpi" && metric["privilege"] == "user" && metric["cpu"].is_null()
        });
        let cpi = cpi.unwrap()["value"].as_f64().unwrap();
        assert_eq!(of("Table 10", "Measured, CPI", 0), cpi, "{name}");
        assert_eq!(of("Figure 3", "Measured CPI", 0), cpi, "{name}");
        let parts = ["Resource stalls", "Instruction-related stalls", "Computation"];
        for (unit, column) in [("CPI", 0), ("CPI", 1), ("CPµ", 0), ("CPµ", 1)] {
            let row = |part: &str| of("Table 10", &format!("{part}, {unit}"), column);
            let sum: f64 = parts.iter().map(|part| row(part)).sum();
            assert!((sum / row("Computed") - 1.0).abs() < 1e-9, "{name}, {unit}, {column}");
        }
    }
}

#[test]
fn only_the_requested_part_of_a_recording_is_shown() {
    let place = Place::new();
    let path = recording("intel-skylake-sp");
    let of = |more: &[&str]| {
        let arguments = [&["counters", "stat", "--recorded", &path], more].concat();
        printed(&place, &arguments)
    };
    let few = of(&["--metrics", "cpi,branch"]);
    assert!(few.contains("uops per cycle") && few.contains("mispredicted"), "{few}");
    assert!(!few.contains("L2 misses") && of(&[]).contains("L2 misses"));
    assert!(!few.contains("CPU 33") && of(&["--per-cpu"]).contains("user, CPU 33"));
    let all: Vec<String> = [of(&["-o", "-"]), of(&[])].into();
    assert_eq!(all[0], all[1]);
    assert_eq!(of(&["-o", "figures.txt"]), "");
    assert_eq!(fs::read_to_string(place.path("figures.txt")).unwrap(), all[0]);
    assert_eq!(place.names(), ["figures.txt"]);
    for more in ["--all", "--sides", "--slot=2", "--seconds=3", "--cgroup=/x", "--pid=1"] {
        let said = place.fails(&["counters", "stat", "--recorded", &path, more], 2);
        assert!(said.contains("--recorded"), "{said}");
    }
    place.fails(&["counters", "stat", "--recorded", &path, "--", "true"], 2);
}

/// Their JSON names no file, so that these may have any name.
#[test]
fn names_of_recordings_need_not_be_utf_8() {
    let place = Place::new();
    let name = OsStr::from_bytes(b"re\xffcorded");
    fs::copy(recording("amd-zen4"), place.directory.path().join(name)).unwrap();
    for option in ["-o", "--out"] {
        let out = OsStr::from_bytes(b"fi\xffgures");
        let mut command = place.command(&["counters", "stat", "--json", "--recorded"]);
        let output = command.arg(name).arg(option).arg(out).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let figures = fs::read(place.directory.path().join(out)).unwrap();
        let facts: Value = serde_json::from_slice(&figures).unwrap();
        assert!(!list(&facts["metrics"]).is_empty());
    }
}

#[test]
fn damaged_recordings_are_one_line() {
    let place = Place::new();
    let whole = fs::read_to_string(recording("amd-zen4")).unwrap();
    let fails = |bytes: &[u8], words: &str| {
        fs::write(place.path("x.jsonl"), bytes).unwrap();
        let said = place.fails(&["counters", "stat", "--recorded", "x.jsonl", "--tables"], 1);
        assert!(said.contains("x.jsonl") && said.contains(words), "{words}: {said}");
        assert!(!said.contains("panicked") && said.len() < 1000, "{said}");
    };
    fails(b"", "empty");
    fails(b"\n", "line 1");
    fails(b"\x7fELF\xff\xfe", "UTF-8");
    fails(&whole.as_bytes()[..whole.len() / 2], "line ");
    fails(&whole.as_bytes()[..whole.len() - 3], "EOF");
    fails(whole.lines().nth(1).unwrap().as_bytes(), "line 1");
    fails("[".repeat(100_000).as_bytes(), "line 1");
    let lines = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        whole.replacen(from, to, 1)
    };
    fails(lines("\"group\":", "\"group\":999,\"was\":").as_bytes(), "no group 999");
    fails(lines("\"values\":[", "\"values\":[1,").as_bytes(), "values");
    fails(lines("\"values\":[", "\"values\":[-1,").as_bytes(), "line ");
    fails(lines("\"wall_s\":", "\"wall_s\":1e999,\"was\":").as_bytes(), "line ");
    for nothing in ["0.0", "-1.0"] {
        let text = lines("\"wall_s\":", &format!("\"wall_s\":{nothing},\"was\":"));
        fails(text.as_bytes(), "seconds");
    }
    let said = place.fails(&["counters", "stat", "--recorded", "missing.jsonl"], 1);
    assert!(said.contains("missing.jsonl"), "{said}");
    // Five gigabytes of nothing, which take no disk.
    fs::File::create(place.path("sparse.jsonl")).unwrap().set_len(5 << 30).unwrap();
    let said = place.fails(&["counters", "stat", "--recorded", "sparse.jsonl"], 1);
    assert!(said.contains("line 1 is not a recording's: it has more than 4 MiB"), "{said}");
    // The text up to the end of a line is a recording.
    let ten: String = whole.lines().take(10).map(|line| format!("{line}\n")).collect();
    fs::write(place.path("x.jsonl"), ten).unwrap();
    let facts = place.json(&["counters", "stat", "--recorded", "x.jsonl"]);
    assert_eq!(facts["slots"], 9);
    let why = |metric: &Value| metric["why"].as_str().is_some_and(|why| why.contains("turn"));
    assert!(list(&facts["metrics"]).iter().any(why), "most events had no turn");
}

#[test]
fn the_arithmetic_of_the_papers_is_shown() {
    let place = Place::new();
    let facts = place.json(&["counters", "papers"]);
    let papers = list(&facts["papers"]);
    let names: Vec<&str> = papers.iter().map(|paper| paper["paper"].as_str().unwrap()).collect();
    let (keeton, hassanein) = ("Keeton, Patterson, He, Raphael, Baker 1998", "Hassanein, Rashid");
    assert!(names[0] == keeton && names[1].starts_with(hassanein) && names[2] == "Chang 2013");
    let figures = || papers.iter().flat_map(|paper| list(&paper["figures"]));
    for row in ["A10", "A17", "A18", "A20", "A21"] {
        assert!(figures().any(|figure| figure["row"] == row), "{row}");
    }
    let of = |says: &str| figures().find(|figure| figure["says"] == says).expect("a figure");
    let mixed = of("CPIs mixed by time (Table 10, Measured, CPI, Overall)");
    assert!((mixed["ours"].as_f64().unwrap() - 2.91).abs() < 0.005, "{mixed}");
    assert_eq!(
        (&mixed["prints"], &mixed["agreement"]),
        (&"2.90".into(), &"within-rounding".into())
    );
    assert!((mixed["difference"].as_f64().unwrap() - 0.01).abs() < 0.005, "{mixed}");
    let disagree = figures().filter(|figure| figure["agreement"] == "disagrees").count();
    // Two more are words that lead nowhere.
    assert_eq!(list(&facts["contradictions"]).len(), disagree + 2);
    assert!(disagree > 0);

    let report = printed(&place, &["counters", "papers"]);
    for words in [keeton, hassanein, "Chang 2013", "within rounding", "contradicts itself"] {
        assert!(report.contains(words), "{words}");
    }
    assert!(!report.contains("-0.000"));
    let chang = printed(&place, &["counters", "papers", "A10"]);
    assert!(chang.contains("how much faster with HT, %") && chang.contains("23.79"), "{chang}");
    assert!(!chang.contains("Keeton") && !chang.contains("contradicts"), "{chang}");
}
