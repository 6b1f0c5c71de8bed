//! `workahead counters stat|profile` by a processor's own counters, of a program whose instructions
//! are known. Where there is no counter nothing is shown, except where one is required: in the
//! guest of `vm/guest-arm64.sh`, whose clock gives every instruction the same number of cycles.

mod process;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use process::{Place, text};
use serde_json::Value;

/// Instructions of a round of `examples/loops.rs`, without the two calls' own.
const ROUND: f64 = 16_000.0;

/// Whether this machine counts.
fn counts(place: &Place) -> bool {
    let output = place.run(&["counters", "stat", "--json", "-o", "-", "--", "true"]);
    let facts: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let lacks = &facts["lacks"];
    let is_required = std::env::var_os("WORKAHEAD_COUNTERS").is_some();
    assert!(lacks.is_null() || !is_required, "no counters: {lacks}");
    if !lacks.is_null() {
        eprintln!("not shown here: {lacks}");
    }
    lacks.is_null()
}

/// The program of known instructions, an example beside the command.
fn loops() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_workahead")).with_file_name("examples/loops");
    assert!(path.exists(), "cargo build -p workahead-cli --example loops");
    path
}

fn word(path: &Path) -> &str {
    path.to_str().expect("a path of letters")
}

/// The program, running for longer than any test.
struct Running(Child);

impl Running {
    fn start(threads: u32) -> Self {
        let mut command = Command::new(loops());
        command.args(["1000000000", &threads.to_string()]).stdin(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// The record of a run: counts by privilege and event, of all slots and CPUs together.
struct RecordedCounts {
    counts: BTreeMap<(String, String), f64>,
    slots: usize,
    thrown_away: usize,
    running_ns: f64,
}

impl RecordedCounts {
    fn read(place: &Place, name: &str) -> Self {
        let file = fs::read_to_string(place.path(name)).expect("a recording");
        let mut lines = file.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let header = lines.next().expect("a header");
        let mut read = Self { counts: BTreeMap::new(), slots: 0, thrown_away: 0, running_ns: 0.0 };
        for slot in lines {
            read.slots += 1;
            if !slot["spoilt"].is_null() {
                read.thrown_away += 1;
                continue;
            }
            let group = &header["groups"][slot["group"].as_u64().unwrap() as usize];
            for cpu in slot["cpus"].as_array().unwrap() {
                read.running_ns += cpu["running_ns"].as_f64().unwrap();
                for (event, value) in group["events"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .zip(cpu["values"].as_array().unwrap())
                {
                    let name = event["name"].as_str().unwrap().to_owned();
                    let key = (group["privilege"].as_str().unwrap().to_owned(), name);
                    *read.counts.entry(key).or_default() += value.as_f64().unwrap();
                }
            }
        }
        read
    }

    /// Instructions by privilege; the event has a name of each vendor's.
    fn instructions(&self, privilege: &str) -> f64 {
        let is_it = |(side, event): &&(String, String)| {
            side == privilege
                && (event.starts_with("INST_RETIRED") || event.contains("RETIRED_INSTR"))
        };
        let key = self.counts.keys().find(is_it).unwrap_or_else(|| panic!("{:?}", self.counts));
        self.counts[key]
    }
}

/// Counts a command by these options and reads what was recorded.
fn recorded(place: &Place, options: &[&str], command: &[&str]) -> RecordedCounts {
    let words = [&["counters", "stat", "--record", "r.jsonl"], options, &["--"], command].concat();
    succeeds(&place.run(&words));
    RecordedCounts::read(place, "r.jsonl")
}

/// A metric's value in the JSON of `stat`.
fn metric(facts: &Value, name: &str, privilege: &str) -> Option<f64> {
    let is_it = |one: &&Value| {
        one["metric"]["name"] == name && one["privilege"] == privilege && one["cpu"].is_null()
    };
    facts["metrics"].as_array().unwrap().iter().find(is_it)?["value"].as_f64()
}

/// Cycles per instruction, where the clock gives each the same.
fn known_cpi() -> Option<f64> {
    std::env::var("WORKAHEAD_CYCLES_PER_INSTRUCTION").ok()?.parse().ok()
}

fn near(value: f64, wanted: f64, share: f64) -> bool {
    (value - wanted).abs() <= wanted * share
}

#[test]
fn known_instructions_are_counted() {
    let place = Place::new();
    if !counts(&place) {
        return;
    }
    let loops = loops();
    let of = |rounds: &str| recorded(&place, &[], &[word(&loops), rounds]).instructions("both");
    let (once, four_times) = (of("1000"), of("4000"));
    let more = four_times - once;
    println!("1000 rounds {once}, 3000 more {more}: {} a round", more / 3000.0);
    // The kernel's timer is in it: the guest's ticks are a per cent.
    assert!(near(more, 3000.0 * ROUND, 0.02), "{more} instructions of 3000 rounds");
    // A thread is counted with the process that makes it.
    let by_three = recorded(&place, &[], &[word(&loops), "4000", "3"]).instructions("both");
    println!("4000 rounds {four_times}, of three threads {by_three}");
    assert!(near(by_three - four_times, 8000.0 * ROUND, 0.02), "{by_three} of three threads");
}

#[test]
fn cycles_follow_the_clock() {
    let place = Place::new();
    if !counts(&place) {
        return;
    }
    let loops = loops();
    for options in [
        &[][..],
        &["--sides", "--slot", "0.05"],
        &["--metrics", "all", "--slot", "0.05", "--per-cpu"],
    ] {
        let words = [&["counters", "stat", "--json", "-o", "-"], options, &["--", word(&loops)]];
        let output = place.run(&[&words.concat()[..], &["4000"]].concat());
        succeeds(&output);
        let facts: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let side = if options.contains(&"--sides") { "user" } else { "both" };
        let cpi = metric(&facts, "cpi", side).unwrap_or_else(|| panic!("no CPI: {facts}"));
        println!("{options:?}: CPI {cpi}");
        assert!(cpi > 0.1);
        if let Some(known) = known_cpi() {
            assert!(near(cpi, known, 0.01), "CPI {cpi}, not {known}");
        }
    }
}

#[test]
fn user_and_kernel_are_apart() {
    let place = Place::new();
    if !counts(&place) {
        return;
    }
    let loops = loops();
    let options = ["--sides", "--slot", "0.05"];
    let of_loops = recorded(&place, &options, &[word(&loops), "8000"]);
    let (user, kernel) = (of_loops.instructions("user"), of_loops.instructions("kernel"));
    println!("loops: user {user}, kernel {kernel}, {} slots", of_loops.slots);
    assert!(kernel < user * 0.1, "the loops are user code: {user}, {kernel} in the kernel");
    // A byte at a time: system calls, and little else.
    let copies = "dd if=/dev/zero of=/dev/null bs=1 count=100000 2>/dev/null";
    let of_calls = recorded(&place, &options, &["sh", "-c", copies]);
    let (user, kernel) = (of_calls.instructions("user"), of_calls.instructions("kernel"));
    println!("system calls: user {user}, kernel {kernel}, {} slots", of_calls.slots);
    assert!(kernel > user, "system calls are the kernel's: {user}, {kernel} in the kernel");
}

#[test]
fn a_running_process_its_group_and_the_machine_are_counted() {
    let place = Place::new();
    if !counts(&place) {
        return;
    }
    let running = Running::start(2);
    let pid = running.pid();
    let mut targets = vec![vec!["--pid", &pid], vec!["--all"]];
    let group = Path::new("/sys/fs/cgroup/counted");
    // Nobody else's are touched: only the guest has none.
    if known_cpi().is_some() {
        fs::create_dir(group).unwrap();
        fs::write(group.join("cgroup.procs"), &pid).unwrap();
        let facts = place.json(&["counters", "stat", "--seconds", "0.1", "--cgroup", word(group)]);
        let lacks = facts["lacks"].as_str().expect("a reason");
        assert!(lacks.contains("cgroup.subtree_control"), "{lacks}");
        fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+pids").unwrap();
        targets.push(vec!["--cgroup", word(group)]);
    }
    for target in targets {
        let options = ["counters", "stat", "--seconds", "0.5", "--record", "r.jsonl", "--json"];
        let facts: Value = {
            let output = place.run(&[&options[..], &target].concat());
            succeeds(&output);
            serde_json::from_slice(&output.stdout).expect("JSON")
        };
        let read = RecordedCounts::read(&place, "r.jsonl");
        let (instructions, cpi) = (read.instructions("both"), metric(&facts, "cpi", "both"));
        println!("{target:?}: {instructions} in {} ns, CPI {cpi:?}", read.running_ns);
        assert_eq!(read.thrown_away, 0, "{facts}");
        // A nanosecond of the guest's is a cycle of its processor.
        if let Some(known) = known_cpi() {
            assert!(near(instructions, read.running_ns / known, 0.05), "{instructions}");
            assert!(near(cpi.expect("a value"), known, 0.02), "CPI {cpi:?}");
        }
        assert!(instructions > 1e6);
    }
}

#[test]
fn counters_that_others_take_spoil_slots_and_never_values() {
    let place = Place::new();
    if !counts(&place) || known_cpi().is_none() {
        return;
    }
    let running = Running::start(1);
    let pid = running.pid();
    let of = |seconds| {
        let options = ["counters", "stat", "--metrics", "all", "--slot", "0.05", "--json"];
        place.start(&[&options[..], &["--seconds", seconds, "--pid", &pid]].concat())
    };
    // The general counters of three are more than there are. Whose turn it is in a slot is up to
    // the kernel; two of them leave before the third ends, which then has its own.
    let [first, others @ ..] = [of("4"), of("1"), of("1")];
    let mut thrown_away = 0;
    for (must, child) in [(true, first)].into_iter().chain(others.map(|other| (false, other))) {
        let output = child.wait_with_output().unwrap();
        succeeds(&output);
        let facts: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let (cpi, spoilt) = (metric(&facts, "cpi", "both"), &facts["slots_thrown_away"]);
        println!("{spoilt} of {} slots thrown away, CPI {cpi:?}", facts["slots"]);
        thrown_away += spoilt.as_u64().expect("a number");
        match cpi {
            Some(cpi) => assert!(near(cpi, known_cpi().unwrap(), 0.01), "{cpi}: {facts}"),
            None => assert!(!must, "no CPI of slots that were not thrown away: {facts}"),
        }
    }
    assert!(thrown_away > 0, "all had their counters");
}

/// Output of `counters profile` for a command, as stacks with their samples.
fn folded(place: &Place, options: &[&str], command: &[&str]) -> Vec<(String, f64)> {
    let first = ["counters", "profile", "--folded", "stacks.txt", "-o", "said.txt"];
    succeeds(&place.run(&[&first[..], options, &["--"], command].concat()));
    println!("{}", fs::read_to_string(place.path("said.txt")).unwrap());
    let stacks = fs::read_to_string(place.path("stacks.txt")).unwrap();
    let stack = |line: &str| {
        let (frames, samples) = line.rsplit_once(' ').expect("frames and samples");
        (frames.to_owned(), samples.parse().expect("a number"))
    };
    stacks.lines().map(stack).collect()
}

/// The samples in stacks that match, of all.
fn share(stacks: &[(String, f64)], of: impl Fn(&str) -> bool) -> f64 {
    let matching = stacks.iter().filter(|(frames, _)| of(frames));
    let sum = |samples: &mut dyn Iterator<Item = f64>| samples.sum::<f64>();
    sum(&mut matching.map(|one| one.1)) / sum(&mut stacks.iter().map(|one| one.1))
}

#[test]
fn a_profile_has_the_shares_and_the_stacks_of_a_known_program() {
    let place = Place::new();
    if !counts(&place) {
        return;
    }
    let loops = loops();
    let event = ["INST_RETIRED", "INST_RETIRED.ANY"];
    let known = place.run(&["counters", "list", "--events"]);
    let known = text(&known.stdout);
    let event = event.iter().find(|name| known.contains(**name));
    let mut clocks: Vec<Vec<&str>> = vec![vec![]];
    clocks.extend(event.map(|event| vec!["--event", *event]));
    for clock in clocks {
        let stacks =
            folded(&place, &[&clock[..], &["-F", "499"]].concat(), &[word(&loops), "20000"]);
        let said = fs::read_to_string(place.path("said.txt")).unwrap();
        let by = clock.last().copied().unwrap_or("cycles");
        assert!(said.contains(by), "by {by}: {said}");
        let three = share(&stacks, |frames| frames.contains("loops::three_parts"));
        let one = share(&stacks, |frames| frames.contains("loops::one_part"));
        println!("by {by}: {three:.3} and {one:.3}");
        assert!((three - 0.75).abs() < 0.05 && (one - 0.25).abs() < 0.05, "{three} and {one}");
        let called = share(&stacks, |frames| {
            let at = |name| frames.find(name).unwrap_or(usize::MAX);
            at("loops::main") < at("loops::rounds") && at("loops::rounds") < at("_part")
        });
        assert!(called > 0.95, "{called} of the samples lead to main: {stacks:?}");
    }
    // The kernel's part of system calls, with the program that makes them below.
    let copies = "dd if=/dev/zero of=/dev/null bs=1 count=100000 2>/dev/null";
    let stacks = folded(&place, &["-F", "499"], &["sh", "-c", copies]);
    let kernel = share(&stacks, |frames| frames.contains("_[k]"));
    let [reads, writes] = ["read", "write"]
        .map(|call| share(&stacks, |frames| frames.contains(&format!("ksys_{call}_[k]"))));
    println!("kernel {kernel:.3}, reads {reads:.3}, writes {writes:.3}");
    assert!(kernel > 0.5 && reads > 0.05 && writes > 0.05, "{kernel}, {reads}, {writes}");
}

#[test]
fn an_event_that_the_processor_lacks_is_one_line() {
    let place = Place::new();
    // Only there is it known what the processor lacks.
    if !counts(&place) || known_cpi().is_none() {
        return;
    }
    let loops = loops();
    let words = ["counters", "profile", "--event", "L2D_CACHE_REFILL", "--", word(&loops), "1000"];
    let said = place.fails(&words, 1);
    assert!(said.contains("L2D_CACHE_REFILL"), "{said}");
    let words = ["counters", "stat", "--metrics", "l2,cpi", "--json", "-o", "-", "--"];
    let output = place.run(&[&words[..], &[word(&loops), "1000"]].concat());
    succeeds(&output);
    let facts: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(metric(&facts, "cpi", "both").is_some(), "{facts}");
    assert_eq!(metric(&facts, "l2_mpki", "both"), None, "not counted is not zero: {facts}");
    let l2 = facts["metrics"].as_array().unwrap().iter();
    let why =
        l2.filter(|one| one["metric"]["name"] == "l2_mpki").find_map(|one| one["why"].as_str());
    assert!(why.is_some_and(|why| why.contains("L2D_CACHE_REFILL")), "{why:?}");
}
