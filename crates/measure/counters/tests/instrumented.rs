//! Real programs under valgrind: the counts are those computed by hand.

use std::hint::black_box;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use workahead_counters::instrumented::{
    Environment, Error, Geometry, InstrumentedRun, Outcome, Processes, Program, ProgramCounts,
    Quantity, Span, Tool,
};

const LINE: usize = 64;
const ARRAY: usize = 1 << 20;
const LINES: i64 = (ARRAY / LINE) as i64;
/// The variable with the number of passes over the array.
const PASSES: &str = "WORKAHEAD_TEST_PASSES";
/// In the process that is killed: the file that its program writes.
const KILLED: &str = "WORKAHEAD_TEST_KILLED";

/// One load per line of the array.
#[inline(never)]
fn walk_lines(array: &[u8]) -> u64 {
    // No iterator: its loop may stay a function of its own, and would get the counts.
    let (mut sum, mut at) = (0, 0);
    while at < array.len() {
        sum += u64::from(black_box(array[at]));
        at += LINE;
    }
    sum
}

/// The program that the others count: this test itself, in a process of its own. Zeroes of the
/// system's own are touched by nobody before.
#[test]
fn walker() {
    let passes = std::env::var(PASSES).ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let array = vec![0; ARRAY];
    let sum: u64 = (0..passes).map(|_| walk_lines(black_box(&array))).sum();
    assert_eq!(sum, 0);
}

fn walks(passes: u32) -> Program {
    let mut program =
        Program::new(std::env::current_exe().unwrap(), ["walker", "--exact", "--test-threads=1"]);
    let passes = (PASSES.into(), passes.to_string().into());
    program.environment = Environment::OursAnd(vec![passes]);
    program
}

fn caches(last: &str) -> Geometry {
    let first = "32768,8,64".parse().unwrap();
    Geometry { l1i: first, l1d: first, last: last.parse().unwrap() }
}

fn run(of: &InstrumentedRun, program: &Program) -> Outcome {
    of.run(program, &AtomicBool::new(false)).unwrap()
}

/// Totals are the sums of the functions: of what a tool really wrote.
fn assert_adds_up(counted: &ProgramCounts) {
    for (at, total) in counted.totals.iter().enumerate() {
        let sum: i64 = counted.functions.iter().map(|one| one.counts[at]).sum();
        assert_eq!(sum, *total, "{}", counted.events[at]);
    }
}

fn assert_near(found: Option<i64>, expected: i64) {
    let found = found.unwrap();
    // The walk also drives out what the rest of the program had in the first level, and will miss
    // again: up to its 512 lines, with some more for what only the longer run does.
    assert!((found - expected).abs() <= 1024, "{found}, not {expected}");
}

/// An array of 1 MiB touched once per line of 64 bytes misses 16384 times in 32 KiB: each pass
/// again, whatever the last level is. The last level's misses are of the first pass only where it
/// holds the array.
#[test]
fn a_walk_misses_as_often_as_it_has_lines() {
    let counts = |tool, last| {
        let of = InstrumentedRun::new(tool, caches(last));
        let [none, two] = [0, 2].map(|passes| run(&of, &walks(passes)).counted);
        assert_adds_up(&two);
        assert_eq!(two.geometry, Some(of.geometry));
        two.minus(&none).unwrap()
    };
    let roomy = counts(Tool::Cachegrind, "4MiB,16,64");
    assert_near(roomy.total(Quantity::L1dLoadMisses), 2 * LINES);
    assert_near(roomy.total(Quantity::LastLevelLoadMisses), LINES);
    let narrow = counts(Tool::Callgrind, "512KiB,16,64");
    assert_near(narrow.total(Quantity::L1dLoadMisses), 2 * LINES);
    assert_near(narrow.total(Quantity::LastLevelLoadMisses), 2 * LINES);

    // And nearly all of them are one function's.
    for counted in [roomy, narrow] {
        let top = counted.top(3, Quantity::L1dMisses).unwrap();
        assert!(top[0].name.contains("walk_lines") && top[0].share > 0.95, "{top:?}");
        assert!(counted.measures()["l1d_load_mpki"] > 0.0);
    }
}

#[test]
fn the_same_run_counts_the_same() {
    let of = InstrumentedRun::new(Tool::Cachegrind, caches("1MiB,16,64"));
    let mut sort = Program::new("sort", ["-n"]);
    sort.input = (0..500).rev().map(|n| format!("{n}\n")).collect::<String>().into_bytes();
    let first = run(&of, &sort);
    assert!(first.output.starts_with(b"0\n1\n2\n") && first.output.ends_with(b"499\n"));
    assert_eq!(first.errors, "", "valgrind's messages are not the program's");
    assert_adds_up(&first.counted);
    let (first, second) = (first.counted.measures(), run(&of, &sort).counted.measures());
    assert!(first["instructions"] > 100_000.0, "{first:?}");
    // The address of the stack, and with it how strings are copied, may differ a little.
    let change = (second["instructions"] / first["instructions"] - 1.0).abs();
    assert!(change < 0.01, "{first:?} {second:?}");
}

#[test]
fn only_requested_functions_are_counted() {
    let mut of = InstrumentedRun::new(Tool::Callgrind, caches("1MiB,16,64"));
    of.span = Span::Inside(vec!["*walk_lines*".to_owned()]);
    let counted = run(&of, &walks(3)).counted;
    assert_adds_up(&counted);
    assert_near(counted.total(Quantity::L1dLoadMisses), 3 * LINES);
    let instructions = counted.total(Quantity::Instructions).unwrap();
    assert!((3 * LINES..100 * LINES).contains(&instructions), "{instructions}");

    of.span = Span::Inside(vec!["no_such_function".to_owned()]);
    let error = of.run(&walks(1), &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.contains("inside of no_such_function"), "{error}");
    of.tool = Tool::Cachegrind;
    let error = of.run(&walks(1), &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.contains("only callgrind"), "{error}");
}

#[test]
fn children_are_counted_on_request() {
    let mut of = InstrumentedRun::new(Tool::Cachegrind, caches("1MiB,16,64"));
    let shell = Program::new("sh", ["-c", "true | /bin/true; /bin/true; exit 0"]);
    let alone = run(&of, &shell).counted;
    assert_eq!(alone.processes, 1);
    of.processes = Processes::All;
    let all = run(&of, &shell).counted;
    assert_adds_up(&all);
    assert!(all.processes >= 3, "{}", all.processes);
    assert!(all.totals[0] > alone.totals[0]);
}

/// Its user may change everything in the folder, and root reads what it finds.
#[test]
fn a_replaced_output_file_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "secret").unwrap();
    let script = format!(
        "exec 3>&1; d=$(dirname \"$(readlink /proc/self/fd/3)\"); \
         rm \"$d/output\" \"$d/errors\" || exit 9; \
         ln -s {0} \"$d/output\"; ln -s {0} \"$d/errors\"; echo said; echo why >&2; exit $1",
        secret.display()
    );
    let program = |status: &str| Program::new("/bin/sh", ["-c", &script, "sh", status]);
    let of = InstrumentedRun::new(Tool::Callgrind, caches("1048576,16,64"));
    let outcome = run(&of, &program("0"));
    assert_eq!(outcome.output, b"said\n");
    assert!(outcome.errors.ends_with("why"), "{}", outcome.errors);
    let error = of.run(&program("1"), &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.contains("why") && !error.contains("secret"), "{error}");
}

#[test]
fn a_program_that_fails_says_why() {
    let of = InstrumentedRun::new(Tool::Cachegrind, caches("1MiB,16,64"));
    let failing = Program::new("sh", ["-c", "echo out of luck >&2; exit 3"]);
    let error = of.run(&failing, &AtomicBool::new(false)).unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, Error::Ended { .. }), "{message}");
    assert_eq!(message, "sh under cachegrind ended with 3: out of luck");
    let absent = Program::new("no-such-program-here", [""; 0]);
    let error = of.run(&absent, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.contains("no-such-program-here"), "{error}");
}

/// It ends though it would run for a minute, though it ignores the first request, and with what
/// it started.
#[test]
fn a_stop_ends_the_program_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mark: PathBuf = folder.path().join("started");
    let path = mark.display();
    let script =
        format!("trap '' TERM; sleep 61 & echo $! > {path}.new; mv {path}.new {path}; wait");
    let of = InstrumentedRun::new(Tool::Cachegrind, caches("1MiB,16,64"));
    let stop = AtomicBool::new(false);
    let error = std::thread::scope(|scope| {
        let run = scope.spawn(|| of.run(&Program::new("sh", ["-c", &script]), &stop));
        while !mark.exists() && !run.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        run.join().unwrap().unwrap_err()
    });
    assert!(matches!(error, Error::Stopped), "{error}");
    assert_ends(&std::fs::read_to_string(&mark).unwrap());
}

/// Also the other half of itself: a process that counts a program and is killed meanwhile.
#[test]
fn a_program_ends_with_a_killed_process() {
    if let Some(mark) = std::env::var_os(KILLED).map(PathBuf::from) {
        let path = mark.display();
        let script = format!("echo $$ > {path}.new; mv {path}.new {path}; sleep 61; :");
        let of = InstrumentedRun::new(Tool::Cachegrind, caches("1MiB,16,64"));
        run(&of, &Program::new("sh", ["-c", &script]));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mark: PathBuf = folder.path().join("started");
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_program_ends_with_a_killed_process"])
        .env(KILLED, &mark)
        // What it leaves of its files goes with the folder.
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !mark.exists() {
        assert!(process.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert_ends(&std::fs::read_to_string(&mark).unwrap());
}

/// Killed children of a killed parent are reaped by the system's first process, in its time.
fn assert_ends(pid: &str) {
    let lives = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    for _ in 0..500 {
        if !lives() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("process {pid} still runs");
}
