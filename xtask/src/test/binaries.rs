//! Test programs: built by one call of Cargo, then run by us, so that the time of each is known,
//! two that wait run beside each other, and one that fails hides none.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::counts::Counts;
use crate::packages::Packages;
use crate::stage::{LIMIT, ending, limited, spelled};
use crate::workspace::Workspace;

/// A test above this moves to `--full`.
const SLOW_S: u64 = 60;

/// A program of tests, or a bench that is run small.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    /// The package's name.
    pub(crate) package: String,
    /// `lib`, `bin`, `test`, `bench`, `example`.
    pub(crate) kind: String,
    pub(crate) target: String,
    program: PathBuf,
    /// The package's folder, in which Cargo runs tests.
    folder: PathBuf,
}

impl Binary {
    /// `join lib`, `cli test usage`.
    fn title(&self) -> String {
        let package = self.package.strip_prefix("workahead-").unwrap_or(&self.package);
        match self.kind.as_str() {
            "lib" => format!("{package} lib"),
            kind => format!("{package} {kind} {}", self.target),
        }
    }
}

/// How one went.
#[derive(Clone, Debug)]
pub(crate) struct ProgramRun {
    pub(crate) title: String,
    pub(crate) counts: Counts,
    pub(crate) took: Duration,
    pub(crate) failure: Option<String>,
    /// Tests and their seconds: of all where they ran one by one, else those above a minute.
    pub(crate) tests: Vec<(String, f64)>,
}

/// How programs are run.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    /// Number of programs run at the same time.
    pub(crate) beside: usize,
    /// Of one program: beyond it, it hangs.
    pub(crate) limit: Duration,
    /// One test at a time, so that each is timed.
    pub(crate) one_by_one: bool,
    /// Inputs of a property test, where it is not the usual number.
    pub(crate) cases: Option<u32>,
    /// Mutants of each kind of file, likewise.
    pub(crate) mutants: Option<u32>,
    /// How often a command is killed, likewise.
    pub(crate) kills: Option<u32>,
    /// Histories of each kind of index, likewise.
    pub(crate) histories: Option<u32>,
    /// Scales of TPC-DS, likewise.
    pub(crate) tpcds: Option<&'static str>,
    /// Whether each cell of the catalogue's studies is run, or each value of a setting.
    pub(crate) every_cell: bool,
}

/// The test programs that were built, and why not all of them were.
pub(crate) struct TestBinaries {
    pub(crate) binaries: Vec<Binary>,
    pub(crate) failure: Option<String>,
}

/// Runs Cargo with `--message-format`, and keeps what it says of programs.
pub(crate) fn build(
    workspace: &Workspace,
    packages: &Packages,
    words: &[String],
) -> Result<TestBinaries> {
    let mut command = workspace.cargo(&[]);
    command.args(words).arg("--message-format=json-render-diagnostics");
    println!("$ {}", spelled(&command));
    let mut child = limited(command, LIMIT)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo does not start")?;
    let stdout = child.stdout.take().context("cargo has no output")?;
    let mut binaries = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.context("reading what Cargo says")?;
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        binaries.extend(binary(workspace, packages, &message));
    }
    let failure = ending(child.wait().context("waiting for Cargo")?, LIMIT);
    // In an order that does not depend on what was compiled first.
    let order = |binary: &Binary| {
        let package = packages.all.iter().position(|package| package.name == binary.package);
        (package, binary.kind != "lib" && binary.kind != "bin", binary.target.clone())
    };
    binaries.sort_by_key(order);
    Ok(TestBinaries { binaries, failure })
}

/// The program in a message of Cargo's, if it is one of tests.
fn binary(workspace: &Workspace, packages: &Packages, message: &Value) -> Option<Binary> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let program = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let path = folder.strip_prefix(workspace.root()).ok()?.to_str()?;
    let package = packages.all.iter().find(|package| package.path == path)?.name.clone();
    let kind = match message["target"]["kind"][0].as_str()? {
        kind @ ("bin" | "test" | "bench" | "example") => kind.to_owned(),
        _ => "lib".to_owned(),
    };
    let target = message["target"]["name"].as_str()?.to_owned();
    Some(Binary { package, kind, target, program, folder })
}

/// Tests that observe servers, and wait for most of their time: run beside those that compute.
const WAITING: [&str; 3] = ["capacity", "capture", "hostile_servers"];

/// Runs them all, and says a line of each that passes, everything of one that fails.
pub(crate) fn run(binaries: &[Binary], running: &Running) -> Vec<ProgramRun> {
    let waits = |(_, binary): &(usize, &Binary)| {
        running.beside > 1 && WAITING.contains(&binary.target.as_str())
    };
    let (waiting, computing): (Vec<_>, Vec<_>) = binaries.iter().enumerate().partition(waits);
    let [waiting, computing] = [waiting, computing].map(|all| Mutex::new(all.into_iter()));
    let lanes = std::iter::repeat_n(&computing, running.beside.max(1)).chain([&waiting]);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for next in lanes {
            let done = &done;
            scope.spawn(move || {
                loop {
                    let taken = next.lock().expect("nobody panics with it").next();
                    let Some((index, binary)) = taken else { break };
                    let (ran, output) = run_one(binary, running);
                    let mut done = done.lock().expect("nobody panics with it");
                    say(&ran, &output);
                    done.push((index, ran));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("nobody panics with it");
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, ran)| ran).collect()
}

fn say(ran: &ProgramRun, output: &[u8]) {
    let mut out = std::io::stdout().lock();
    if ran.failure.is_some() {
        let _ = writeln!(out, "---- {}", ran.title);
        let _ = out.write_all(output);
    }
    let _ = writeln!(out, "{}", line(ran));
}

/// `  ok      join lib     212 passed, 0 failed   3.1 s`
pub(crate) fn line(ran: &ProgramRun) -> String {
    let word = if ran.failure.is_some() { "FAILED" } else { "ok" };
    let counts = match ran.counts {
        none if none == Counts::default() => String::new(),
        some => some.to_string(),
    };
    let why = ran.failure.as_ref().map(|why| format!("  ({why})")).unwrap_or_default();
    let took_s = ran.took.as_secs_f64();
    format!("  {word:<7} {:<32} {took_s:>6.1} s  {counts}{why}", ran.title)
}

fn run_one(binary: &Binary, running: &Running) -> (ProgramRun, Vec<u8>) {
    let start = Instant::now();
    let mut ran = ProgramRun {
        title: binary.title(),
        counts: Counts::default(),
        took: Duration::ZERO,
        failure: None,
        tests: Vec::new(),
    };
    let mut output = Vec::new();
    match read_through(binary, running, &mut ran, &mut output) {
        Ok(failure) => ran.failure = failure,
        Err(error) => ran.failure = Some(format!("{error:#}")),
    }
    ran.took = start.elapsed();
    (ran, output)
}

/// Runs one to its end; returns why it failed, or `None`.
fn read_through(
    binary: &Binary,
    running: &Running,
    ran: &mut ProgramRun,
    output: &mut Vec<u8>,
) -> Result<Option<String>> {
    let mut command = Command::new(&binary.program);
    // As `cargo test` has it.
    command.current_dir(&binary.folder);
    command.env("CARGO_MANIFEST_DIR", &binary.folder);
    command.env("CARGO_MANIFEST_PATH", binary.folder.join("Cargo.toml"));
    command.env("CARGO_PKG_NAME", &binary.package);
    if running.one_by_one && binary.kind != "bench" {
        command.arg("--test-threads=1");
    }
    let numbers = [
        ("PROPTEST_CASES", running.cases),
        ("WORKAHEAD_MUTANTS", running.mutants),
        ("WORKAHEAD_KILLS", running.kills),
        ("LOOKUP_CASES", running.histories),
    ];
    for (name, number) in numbers {
        command.envs(number.map(|number| (name, number.to_string())));
    }
    command.envs(running.tpcds.map(|scales| ("WORKAHEAD_TPCDS", scales)));
    command.envs(running.every_cell.then_some(("WORKAHEAD_CELLS", "all")));
    let mut command = limited(command, running.limit);
    let (reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child =
        command.spawn().with_context(|| format!("cannot start {}", binary.program.display()))?;
    // Ours of the writing ends: without it the pipe would never end.
    drop(command);
    let mut clock = Instant::now();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.context("reading a test's output")?;
        output.extend_from_slice(&line);
        output.push(b'\n');
        let line = String::from_utf8_lossy(&line);
        // The last one counts: before it, a test may show the output of tests that it ran itself.
        if let Some(closing) = Counts::from_closing_line(&line) {
            ran.counts = closing;
        }
        if let Some(test) = slow_test(&line) {
            ran.tests.push((test.to_owned(), SLOW_S as f64));
        }
        if running.one_by_one && line.starts_with("running ") {
            clock = Instant::now();
        }
        if running.one_by_one
            && let Some(test) = finished_test(&line)
        {
            ran.tests.retain(|(name, _)| name != test);
            ran.tests.push((test.to_owned(), clock.elapsed().as_secs_f64()));
            clock = Instant::now();
        }
    }
    Ok(ending(child.wait().context("waiting for a test")?, running.limit))
}

/// `test NAME has been running for over 60 seconds`, which libtest says by itself.
fn slow_test(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" has been running for over ")?;
    rest.ends_with("seconds").then_some(name)
}

/// `test NAME ... ok`
fn finished_test(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ... ")?;
    // Text that a test prints past libtest may stand between.
    (rest.ends_with("ok") || rest.ends_with("FAILED")).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::io::IsTerminal;

    use super::*;

    fn shell(script: &str) -> (Binary, PathBuf) {
        use std::os::unix::fs::PermissionsExt;
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("workahead-binary-{}-{number}", std::process::id());
        let program = std::env::temp_dir().join(name);
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let binary = Binary {
            package: "workahead-shell".into(),
            kind: "test".into(),
            target: "it".into(),
            program: program.clone(),
            folder: std::env::temp_dir(),
        };
        (binary, program)
    }

    fn ran(scripts: &[&str], running: &Running) -> Vec<ProgramRun> {
        let (binaries, programs): (Vec<Binary>, Vec<PathBuf>) =
            scripts.iter().map(|script| shell(script)).unzip();
        let ran = run(&binaries, running);
        programs.iter().for_each(|program| std::fs::remove_file(program).unwrap());
        ran
    }

    const USUAL: Running = Running {
        beside: 2,
        limit: LIMIT,
        one_by_one: false,
        cases: None,
        mutants: None,
        kills: None,
        histories: None,
        tpcds: None,
        every_cell: false,
    };

    #[test]
    fn one_that_fails_hides_none() {
        let passes = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored'";
        let fails = "echo 'test result: FAILED. 1 passed; 2 failed'; exit 101";
        let all = ran(&[fails, passes, "kill -9 $$"], &USUAL);
        let counts: Vec<(u64, u64)> =
            all.iter().map(|ran| (ran.counts.passed, ran.counts.failed)).collect();
        assert_eq!(counts, [(1, 2), (3, 0), (0, 0)]);
        assert_eq!(all[0].failure.as_deref(), Some("exit status 101"));
        assert!(all[1].failure.is_none() && all[2].failure.is_some());
        assert!(line(&all[0]).contains("shell test it"), "{}", line(&all[0]));
    }

    #[test]
    fn one_that_hangs_is_ended_and_shows_what_it_said() {
        if std::io::stdin().is_terminal() || std::io::stdout().is_terminal() {
            return;
        }
        let running = Running { limit: Duration::from_secs(1), ..USUAL };
        let (binary, program) = shell("echo before; exec sleep 60");
        let (ran, output) = run_one(&binary, &running);
        std::fs::remove_file(program).unwrap();
        assert!(ran.failure.is_some_and(|why| why.starts_with("ran longer")));
        assert_eq!(output, b"before\n");
    }

    #[test]
    fn tests_run_as_cargo_runs_them() {
        let all = ran(
            &["[ \"$CARGO_MANIFEST_DIR\" = \"$PWD\" ] && \
               [ \"$PROPTEST_CASES $WORKAHEAD_MUTANTS $WORKAHEAD_KILLS\" = '9 7 5' ] && \
               [ \"$LOOKUP_CASES $WORKAHEAD_TPCDS $WORKAHEAD_CELLS\" = '3 0.1,1 all' ]"],
            &Running {
                cases: Some(9),
                mutants: Some(7),
                kills: Some(5),
                histories: Some(3),
                tpcds: Some("0.1,1"),
                every_cell: true,
                ..USUAL
            },
        );
        assert!(all[0].failure.is_none());
    }

    #[test]
    fn slow_tests_are_found() {
        let says = "test a::b has been running for over 60 seconds";
        let all = ran(&[&format!("echo '{says}'; echo 'test a::b ... ok'")], &USUAL);
        assert_eq!(all[0].tests, [("a::b".to_owned(), 60.0)]);
        let one_by_one = Running { one_by_one: true, ..USUAL };
        let script = "[ $1 = --test-threads=1 ]; echo 'running 2 tests'; sleep 0.3; \
                      echo 'test a ... ok'; echo 'test b ... ok'";
        let tests = &ran(&[script], &one_by_one)[0].tests;
        assert!(tests[0].1 >= 0.3 && tests[1].1 < 0.3, "{tests:?}");
    }
}
