//! One stage of the test run: a command whose output passes through while its tests are counted.

use std::io::{BufRead, BufReader, IsTerminal};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::counts::Counts;
use crate::test::ProgramRun;

/// A command that runs longer than this hangs. Unattended, the run ends there and says so, instead
/// of being ended from outside without a word.
pub(crate) const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Says what begins, and when: a run that is ended from outside has no summary.
pub(crate) fn head(name: &str) {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    println!("\n== {name}, after {} s", BEGIN.get_or_init(Instant::now).elapsed().as_secs());
}

/// How a stage went.
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    /// Not run, and why.
    Skipped(String),
}

/// The summary of one stage.
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) outcome: Outcome,
    pub(crate) counts: Counts,
    pub(crate) took: Duration,
    /// Test programs that it ran, where they were run one by one.
    pub(crate) programs: Vec<ProgramRun>,
}

impl Stage {
    pub(crate) fn skipped(name: &'static str, why: impl Into<String>) -> Self {
        let outcome = Outcome::Skipped(why.into());
        Self {
            name,
            outcome,
            counts: Counts::default(),
            took: Duration::ZERO,
            programs: Vec::new(),
        }
    }

    /// A stage that could not begin.
    pub(crate) fn failed_early(name: &'static str, why: String) -> Self {
        Self { outcome: Outcome::Failed(why), ..Self::skipped(name, "") }
    }

    /// A stage that is a function of this program.
    pub(crate) fn check(name: &'static str, check: impl FnOnce() -> Result<bool>) -> Self {
        head(name);
        let start = Instant::now();
        let outcome = match check() {
            Ok(true) => Outcome::Passed,
            Ok(false) => Outcome::Failed("see above".into()),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        Self { outcome, took: start.elapsed(), ..Self::skipped(name, "") }
    }

    /// A stage that is one or more commands, run in turn up to the first that fails.
    pub(crate) fn commands(name: &'static str, commands: Vec<Command>) -> Self {
        head(name);
        let start = Instant::now();
        let mut counts = Counts::default();
        let mut outcome = Outcome::Passed;
        for command in commands {
            println!("$ {}", spelled(&command));
            match passed_through(command, &mut counts) {
                Ok(None) => {}
                Ok(Some(why)) => outcome = Outcome::Failed(why),
                Err(error) => outcome = Outcome::Failed(format!("{error:#}")),
            }
            if matches!(outcome, Outcome::Failed(_)) {
                break;
            }
        }
        Self { outcome, counts, took: start.elapsed(), ..Self::skipped(name, "") }
    }

    /// The same for a stage that consists of tests: none at all is a failure, not a success.
    pub(crate) fn tests(name: &'static str, commands: Vec<Command>) -> Self {
        let mut stage = Self::commands(name, commands);
        if !stage.failed() && stage.counts.passed == 0 {
            stage.outcome = Outcome::Failed("no test ran".into());
        }
        stage
    }

    pub(crate) fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }

    /// `passed  tests       412 passed, 0 failed     81 s`
    pub(crate) fn line(&self) -> String {
        let (word, why) = match &self.outcome {
            Outcome::Passed => ("passed", String::new()),
            Outcome::Failed(why) => ("FAILED", format!("  ({why})")),
            Outcome::Skipped(why) => return format!("  skipped  {:<22} ({why})", self.name),
        };
        let counts = match self.counts {
            none if none == Counts::default() => String::new(),
            some => some.to_string(),
        };
        let took_s = self.took.as_secs_f64();
        format!("  {word}   {:<22} {took_s:>7.1} s  {counts}{why}", self.name)
    }
}

/// Runs a command, shows its standard output as it comes, and counts the tests in it.
/// Returns why it failed, or `None`.
fn passed_through(command: Command, counts: &mut Counts) -> Result<Option<String>> {
    let mut command = limited(command, LIMIT);
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    let stdout = child.stdout.take().context("the child has no output")?;
    let (start, mut last) = (Instant::now(), String::new());
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("reading the child's output")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        if let Some(more) = Counts::from_closing_line(&line) {
            counts.add(more);
        }
        if !line.trim().is_empty() {
            last = line.trim().to_owned();
        }
    }
    let status = child.wait().context("waiting for the child")?;
    let failure = ending(status, LIMIT.min(start.elapsed()));
    // A log that keeps only the summary loses the last line of a program that was ended.
    Ok(failure.map(|why| match status.code() {
        Some(124) => format!("{why}; its last line: {last}"),
        _ => why,
    }))
}

/// Why a program under a limit failed, or `None`. Some have a limit of their own.
pub(crate) fn ending(status: ExitStatus, limit: Duration) -> Option<String> {
    match status.code() {
        Some(0) => None,
        Some(124) if limit.as_secs() < 60 => Some(format!("ran longer than {} s", limit.as_secs())),
        Some(124) => Some(format!("ran longer than {} minutes", limit.as_secs() / 60)),
        Some(code) => Some(format!("exit status {code}")),
        None => Some(status.to_string()),
    }
}

/// Puts an unattended command under `timeout`, which also ends what the command started. At a
/// terminal Ctrl-C does that, and `timeout` would stand in its way.
pub(crate) fn limited(command: Command, limit: Duration) -> Command {
    if std::io::stdout().is_terminal() || std::io::stdin().is_terminal() {
        return command;
    }
    let mut limited = Command::new("timeout");
    limited.arg("--kill-after=10").arg(limit.as_secs().to_string());
    limited.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}

/// The command as one would type it, for the log.
pub(crate) fn spelled(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            let value = value.to_string_lossy();
            words.push(format!("{}=\"{value}\"", name.to_string_lossy()));
        }
    }
    let program = std::path::Path::new(command.get_program());
    words.push(program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into());
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn counts_come_from_the_output_and_failure_from_the_status() {
        let line = "test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured";
        let good = Stage::commands("good", vec![shell(&format!("echo '{line}'"))]);
        assert!(!good.failed());
        assert_eq!(good.counts.passed, 4);
        let ended = Stage::commands("ended", vec![shell("echo 'test 7 runs'; echo; exit 124")]);
        assert!(ended.line().contains("its last line: test 7 runs"), "{}", ended.line());
        let bad = Stage::commands("bad", vec![shell("exit 3"), shell("echo 'never run'")]);
        assert!(bad.failed());
        assert!(bad.line().contains("exit status 3"), "{}", bad.line());
    }

    #[test]
    fn tests_that_did_not_run_have_not_passed() {
        let line = |count: u32| format!("echo 'test result: ok. {count} passed; 0 failed'");
        assert!(!Stage::tests("some", vec![shell(&line(2))]).failed());
        let none = Stage::tests("none", vec![shell(&line(0))]);
        assert!(none.line().contains("no test ran"), "{}", none.line());
    }

    #[test]
    fn a_missing_program_is_a_failure_in_words() {
        let none = Stage::commands("none", vec![Command::new("no-such-program-here")]);
        assert!(none.failed());
    }

    #[test]
    fn a_skipped_stage_says_why() {
        let stage = Stage::skipped("miri", "`cargo miri` does not run here");
        assert!(!stage.failed());
        assert!(stage.line().contains("does not run here"));
    }
}
