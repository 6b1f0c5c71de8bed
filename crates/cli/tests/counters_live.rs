//! `workahead counters stat|profile` of what runs: output, exit status, and processes left behind.
//! Software events need no hardware; where even they are forbidden, only refusals are tested. No
//! test looks at the counts.

mod process;

use std::fs;
use std::process::{Child, Command, Output, Stdio};

use process::{Place, interrupt, signal, text, wait_until};
use serde_json::Value;

/// Whether this machine allows counting and sampling; prints why not.
fn counts(place: &Place) -> bool {
    let output = place.run(&["counters", "stat", "--json", "-o", "-", "--", "true"]);
    let facts: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let counts = facts["slots"].as_u64() > Some(0);
    if !counts {
        eprintln!("not shown here: {}", facts["lacks"]);
    }
    counts
}

/// Runs `counters stat` on a command.
fn stat(place: &Place, options: &[&str], command: &[&str]) -> Output {
    place.run(&[&["counters", "stat"], options, &["--"], command].concat())
}

/// A process that is not counted from its start.
struct Running(Child);

impl Running {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().expect("it starts"))
    }

    fn busy() -> Self {
        Self::start("sh", &["-c", "while :; do :; done"])
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

/// Whether a process still runs.
fn is_there(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, after)| after.chars().next());
    state.is_some_and(|state| state != 'Z')
}

/// Waits until `workahead` listens to signals and the file is there.
fn wait_for(child: &Child, place: &Place, file: &str) {
    wait_until("the command", || place.path(file).exists());
    let status = format!("/proc/{}/status", child.id());
    let caught = || {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        u64::from_str_radix(mask.trim(), 16).unwrap_or(0) & 2 != 0
    };
    wait_until("the handler of Ctrl-C", caught);
}

/// Writes its process id to a file.
const TELLS: &str = "echo $$ > pid.new; mv pid.new pid; ";

#[test]
fn the_status_of_a_command_is_passed_on() {
    let place = Place::new();
    let of = |script: &str| stat(&place, &[], &["sh", "-c", script]).status.code();
    assert_eq!(of("exit 0"), Some(0));
    assert_eq!(of("exit 3"), Some(3));
    assert_eq!(of("kill -KILL $$"), Some(128 + 9));
    assert_eq!(of("kill -SEGV $$"), Some(128 + 11));
}

#[test]
fn a_command_has_standard_output_for_itself() {
    let place = Place::new();
    let command = ["sh", "-c", "read line; echo \"its $line\"; echo words >&2"];
    let fed = |options: &[&str]| {
        let arguments = [&["counters", "stat"], options, &["--"], &command].concat();
        let mut child = Command::new(env!("CARGO_BIN_EXE_workahead"));
        child.args(arguments).current_dir(place.directory.path());
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"input\n").unwrap();
        let output = child.wait_with_output().unwrap();
        (text(&output.stdout), text(&output.stderr))
    };
    let (out, err) = fed(&[]);
    assert_eq!(out, "its input\n");
    assert!(err.starts_with("words\n") && err.contains("the command and its children"), "{err}");
    let (out, err) = fed(&["--json"]);
    assert_eq!(out, "its input\n");
    let facts: Value = serde_json::from_str(err.strip_prefix("words\n").unwrap()).expect("JSON");
    assert_eq!(facts["target"], "the command and its children");
    let (out, err) = fed(&["--json", "-o", "facts.json"]);
    assert_eq!((out.as_str(), err.as_str()), ("its input\n", "words\n"));
    let facts = fs::read(place.path("facts.json")).unwrap();
    assert!(serde_json::from_slice::<Value>(&facts).is_ok());
    let (out, err) = fed(&["--out", "-"]);
    assert!(out.starts_with("its input\n") && out.contains("the command"), "{out}");
    assert_eq!(err, "words\n");
    let (out, err) = fed(&["--out", "/dev/null"]);
    assert_eq!((out.as_str(), err.as_str()), ("its input\n", "words\n"));
    assert!(!fs::metadata("/dev/null").unwrap().is_file(), "a device still");
    assert_eq!(place.names(), ["facts.json"]);
}

#[test]
fn every_value_has_its_unit_or_its_reason() {
    let place = Place::new();
    for options in [&["--metrics", "all", "--slot", "0.02", "--sides"][..], &["--per-cpu"]] {
        let options = [options, &["--json", "-o", "-"]].concat();
        let output = stat(&place, &options, &["sleep", "0.2"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let facts: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        for metric in facts["metrics"].as_array().unwrap() {
            let has_reason = metric["why"].as_str().is_some_and(|why| !why.is_empty());
            assert!(metric["value"].is_f64() != has_reason, "{metric}");
            assert!(metric["metric"]["unit"].is_string(), "{metric}");
        }
    }
}

#[test]
fn a_recording_says_what_was_said_when_it_was_made() {
    let place = Place::new();
    for how in [&["--metrics", "cpi,l2"][..], &["--metrics", "all", "--sides"], &["--tables"]] {
        let options = [how, &["--slot", "0.02", "--record", "r.jsonl", "-o", "live.txt"]].concat();
        assert!(stat(&place, &options, &["sleep", "0.1"]).status.success());
        let live = fs::read_to_string(place.path("live.txt")).unwrap();
        let tables: &[&str] = if how == ["--tables"] { how } else { &[] };
        let again = place.run(&[&["counters", "stat", "--recorded", "r.jsonl"], tables].concat());
        assert_eq!(text(&again.stdout), live, "{how:?}");
    }
    assert_eq!(place.names(), ["live.txt", "r.jsonl"]);
}

#[test]
fn uncountable_targets_are_refused_in_one_line() {
    let place = Place::new();
    fs::write(place.path("text"), "no program").unwrap();
    let fails = |arguments: &[&str], status, words: &str| {
        for command in ["stat", "profile"] {
            let said = place.fails(&[&["counters", command], arguments].concat(), status);
            assert!(said.contains(words), "{command} {arguments:?}: {said}");
        }
    };
    fails(&["--", "no-such-program"], 2, "PATH");
    fails(&["--", "./no-such-program"], 2, "`./no-such-program`");
    fails(&["--", "./text"], 2, "chmod +x");
    fails(&[], 2, "--pid");
    fails(&["--pid", "1", "--", "true"], 2, "--pid");
    fails(&["--pid", "1", "--all"], 2, "--pid");
    fails(&["--seconds", "0", "--pid", "1"], 2, "--seconds");
    fails(&["--pid", "4194305"], 1, "ps -e");
    fails(&["--pid", "0"], 1, "ps -e");
    fails(&["--cgroup", "/no/such"], 1, "/sys/fs/cgroup");
    fails(&["--out", "no/such", "--", "touch", "made"], 1, "no directory no");
    fails(&["--out", ".", "--", "touch", "made"], 1, "a directory");
    let said = place.fails(&["counters", "stat", "--record", "no/r", "--", "touch", "made"], 1);
    assert!(said.contains("no directory no"), "{said}");
    let said = place.fails(&["counters", "stat", "--slot", "0", "--", "touch", "made"], 2);
    assert!(said.contains("--slot"), "{said}");
    for option in ["--html", "--folded"] {
        let said = place.fails(&["counters", "profile", option, "no/r", "--", "touch", "made"], 1);
        assert!(said.contains("no directory no"), "{said}");
    }
    let said = place.fails(&["counters", "profile", "--all"], 2);
    assert!(said.contains("--pid"), "{said}");
    let said = place.fails(&["counters", "profile", "-F", "0", "--", "touch", "made"], 2);
    assert!(said.contains("--frequency") && said.contains("1..="), "{said}");
    assert_eq!(place.names(), ["text"], "no command was run");
}

#[test]
fn a_process_is_counted_while_it_is_there() {
    let place = Place::new();
    if !counts(&place) {
        return;
    }
    let busy = Running::busy();
    let arguments = ["counters", "stat", "--pid", &busy.pid(), "--slot", "0.05", "--seconds"];
    let facts = place.json(&[&arguments[..], &["0.3"]].concat());
    assert!(facts["slots"].as_u64() > Some(0), "{facts}");
    assert!(facts["metrics"].as_array().unwrap().iter().any(|metric| metric["value"].is_f64()));
    assert!(is_there(&busy.pid()), "it goes on");

    // It is a zombie: nobody waits for it, so it keeps its number.
    let short = Running::start("sleep", &["0.3"]);
    let facts = place.json(&["counters", "stat", "--pid", &short.pid(), "--slot", "0.05"]);
    assert!(facts["slots"].as_u64() > Some(0), "{facts}");
    let said = place.fails(&["counters", "stat", "--pid", &short.pid()], 1);
    assert!(said.contains("no process"), "{said}");
}

#[test]
fn an_idle_process_has_no_zeros() {
    let place = Place::new();
    let idle = Running::start("sleep", &["1000"]);
    let arguments = ["counters", "stat", "--pid", &idle.pid(), "--seconds", "0.2"];
    for metric in place.json(&arguments)["metrics"].as_array().unwrap() {
        assert!(metric["value"].is_null() && metric["why"].is_string(), "{metric}");
    }
}

#[test]
fn an_interruption_shows_what_was_counted_and_leaves_nothing() {
    let place = Place::new();
    if !counts(&place) {
        return;
    }
    for (name, script) in [
        ("INT", "exec sleep 1000"),
        ("TERM", "sleep 1000; :"),
        // It ignores the signals.
        ("INT", "trap '' INT TERM; while :; do sleep 1; done"),
    ] {
        let script = format!("{TELLS}{script}");
        let options = ["counters", "stat", "--slot", "0.02", "--record", "r.jsonl", "--"];
        let child = place.start(&[&options[..], &["sh", "-c", &script]].concat());
        wait_for(&child, &place, "pid");
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{script}: {said}");
        assert!(said.contains("the command and its children"), "{script}: {said}");
        assert!(output.stdout.is_empty());
        let pid = fs::read_to_string(place.path("pid")).unwrap();
        assert!(!is_there(&pid), "{script}: {pid} is left");
        let facts = place.json(&["counters", "stat", "--recorded", "r.jsonl"]);
        assert!(facts["slots"].as_u64() > Some(0), "{facts}");
        assert_eq!(place.names(), ["pid", "r.jsonl"], "{script}");
        fs::remove_file(place.path("pid")).unwrap();
        fs::remove_file(place.path("r.jsonl")).unwrap();
    }
}

#[test]
fn a_command_is_ended_when_its_time_is_over() {
    let place = Place::new();
    // It may handle the signal.
    let script = format!("trap 'echo ended; exit 7' TERM; {TELLS}while :; do sleep 0.01; done");
    let output = stat(&place, &["--seconds", "0.5"], &["sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(0), "the time limit is not a failure");
    assert_eq!(text(&output.stdout), "ended\n");
    let pid = fs::read_to_string(place.path("pid")).unwrap();
    assert!(!is_there(&pid));
}

#[test]
fn an_interrupted_profile_is_one() {
    let place = Place::new();
    if !counts(&place) {
        return;
    }
    let busy = Running::busy();
    let files = ["--html", "page.html", "--folded", "stacks.txt"];
    let arguments = [&["counters", "profile", "-F", "499", "--pid", &busy.pid()], &files[..]];
    let child = place.start(&arguments.concat());
    fs::write(place.path("at-once"), "").unwrap();
    wait_for(&child, &place, "at-once");
    // Samples are by the busy process's time: a second of it has some.
    std::thread::sleep(std::time::Duration::from_secs(1));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(out.contains(" samples at 499 Hz") && err.is_empty(), "{out}{err}");
    assert!(is_there(&busy.pid()), "it goes on");
    assert_eq!(place.names(), ["at-once", "page.html", "stacks.txt"]);
    assert!(fs::read_to_string(place.path("page.html")).unwrap().contains("</html>"));
    let stacks = fs::read_to_string(place.path("stacks.txt")).unwrap();
    let is_stack =
        |line: &str| line.rsplit_once(' ').is_some_and(|(_, n)| n.parse::<u64>().is_ok());
    assert!(!stacks.is_empty() && stacks.lines().all(is_stack), "{stacks}");
}

#[test]
fn a_profile_of_a_command_says_where_its_time_went() {
    let place = Place::new();
    if !counts(&place) {
        return;
    }
    let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; exit 5";
    let command = ["sh", "-c", script];
    let run = |options: &[&str], command: &[&str]| {
        let output = place.run(&[&["counters", "profile"], options, &["--"], command].concat());
        assert_eq!(output.status.code(), Some(5), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    let of = |options: &[&str]| run(options, &command);
    let (out, err) = of(&["--top", "3"]);
    assert_eq!(out, "done\n");
    assert!(err.contains("other functions") && err.contains("samples at 99 Hz"), "{err}");
    let (out, err) = of(&["--json", "-o", "profile.json", "-F", "499"]);
    assert_eq!((out.as_str(), err.as_str()), ("done\n", ""));
    let facts = fs::read(place.path("profile.json")).unwrap();
    let facts: Value = serde_json::from_slice(&facts).unwrap();
    assert!(facts["samples"].as_u64() > Some(0) && facts["frequency-hz"] == 499, "{facts}");
    assert!(facts["unresolved"].as_f64() <= Some(1.0), "{facts}");
    // Processes are what faults come from.
    let forks = "i=0; while [ $i -lt 300 ]; do (:); i=$((i+1)); done; exit 5";
    let (_, err) = run(&["--event", "page_faults", "-F", "1000"], &["sh", "-c", forks]);
    assert!(err.contains("by page_faults"), "{err}");
}
