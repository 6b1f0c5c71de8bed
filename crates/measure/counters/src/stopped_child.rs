//! A command that is started, stopped before its first instruction, and resumed when the counters
//! are in place.
//!
//! A shell stops itself and then becomes the command, so that the process has its number before the
//! command runs.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use workahead_machine::Sysroot;
use workahead_machine::process::Tree;

use crate::source::CountError;

/// Stops the shell, which then becomes the command.
const SCRIPT: &str = "kill -STOP $$; exec \"$@\"";

/// How long a command has to end after SIGTERM: enough to write a last buffer.
const GRACE: Duration = Duration::from_secs(2);

/// How often its end is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A command stopped before its first instruction.
#[derive(Debug)]
pub struct StoppedChild {
    child: Child,
    pid: Pid,
}

impl StoppedChild {
    /// Starts a command, which then waits. It inherits input and outputs.
    ///
    /// # Errors
    /// If there is no shell to start it, no such program, or one that may not be run.
    pub fn start(words: &[OsString]) -> Result<Self, CountError> {
        let program = words.first().ok_or_else(|| failed("no command is given"))?;
        check(program)?;
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(SCRIPT).arg("sh").args(words);
        let child =
            shell.spawn().map_err(|error| failed(&format!("/bin/sh can't be started: {error}")))?;
        let pid = Pid::from_child(&child);
        let stopped = waitpid(Some(pid), WaitOptions::UNTRACED);
        match stopped {
            Ok(Some((_, status))) if status.stopped() => Ok(Self { child, pid }),
            Ok(_) => Err(failed("the command ended before it began")),
            Err(error) => Err(failed(&format!("the command can't be waited for: {error}"))),
        }
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Resumes it.
    ///
    /// # Errors
    /// If it is no longer there.
    pub fn resume(&mut self) -> Result<(), CountError> {
        kill_process(self.pid, Signal::CONT)
            .map_err(|error| failed(&format!("the command can't be continued: {error}")))
    }

    /// Whether and how it ended.
    ///
    /// # Errors
    /// If the system refuses the query.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, CountError> {
        self.child
            .try_wait()
            .map_err(|error| failed(&format!("the command can't be waited for: {error}")))
    }
}

/// Ends a command that still runs, and its descendants: SIGTERM first, SIGKILL after a grace
/// period. Processes that an ended command left running are not touched.
impl Drop for StoppedChild {
    fn drop(&mut self) {
        let Ok(None) = self.child.try_wait() else { return };
        let mut tree = Tree::of(self.id());
        signal(&mut tree, Signal::TERM);
        // One that was never resumed is stopped and would not see the signal.
        signal(&mut tree, Signal::CONT);
        let signalled = Instant::now();
        while signalled.elapsed() < GRACE {
            let has_ended = !matches!(self.child.try_wait(), Ok(None));
            if has_ended && tree.look(&Sysroot::live()).running() == 0 {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        signal(&mut tree, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process and its descendants; errors of ended ones are ignored.
fn signal(tree: &mut Tree, signal: Signal) {
    let pids = tree.look(&Sysroot::live()).pids();
    let pids = pids.into_iter().filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    for pid in pids {
        let _ = kill_process(pid, signal);
    }
}

/// Whether a shell would find a program, and may run it.
fn check(program: &OsStr) -> Result<(), CountError> {
    let name = program.to_string_lossy();
    let found = places(program).into_iter().filter(|place| place.is_file()).collect::<Vec<_>>();
    let may_run = |place: &PathBuf| {
        place.metadata().is_ok_and(|about| about.permissions().mode() & 0o111 != 0)
    };
    match found.first() {
        _ if found.iter().any(may_run) => Ok(()),
        Some(place) => Err(CountError::NoProgram(format!(
            "`{name}` may not be run: `chmod +x {}` allows it",
            place.display()
        ))),
        None => Err(CountError::NoProgram(format!(
            "there is no program `{name}`: give its path, or add its directory to PATH"
        ))),
    }
}

/// Where a shell looks for a program.
fn places(program: &OsStr) -> Vec<PathBuf> {
    let path = Path::new(program);
    if program.as_encoded_bytes().contains(&b'/') {
        return vec![path.to_owned()];
    }
    let directories = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&directories).map(|directory| directory.join(path)).collect()
}

fn failed(says: &str) -> CountError {
    CountError::Failed(says.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn nothing_happens_before_it_is_resumed() {
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("made");
        let mut child = StoppedChild::start(&words(&["touch", made.to_str().unwrap()])).unwrap();
        assert!(!made.exists() && child.ended().unwrap().is_none());
        child.resume().unwrap();
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.ended().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(status.success() && made.exists());
    }

    #[test]
    fn a_command_that_can_not_start_is_named() {
        let says = StoppedChild::start(&words(&["no-such-program"])).unwrap_err().to_string();
        assert!(says.starts_with("there is no program `no-such-program`: "), "{says}");
        assert!(StoppedChild::start(&[]).is_err());
        let dir = tempfile::tempdir().unwrap();
        let text = dir.path().join("text");
        std::fs::write(&text, "no program").unwrap();
        let says = StoppedChild::start(&words(&[text.to_str().unwrap()])).unwrap_err().to_string();
        assert!(says.contains("chmod +x"), "{says}");
    }

    #[test]
    fn its_descendants_end_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        // The first shell waits for another that ignores SIGTERM.
        let script = format!(
            "sh -c 'trap \"\" TERM; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 1; done'; :",
            file.display()
        );
        let mut child = StoppedChild::start(&words(&["sh", "-c", &script])).unwrap();
        child.resume().unwrap();
        let begun = Instant::now();
        while !file.exists() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
        let stubborn: u32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        drop(child);
        // Killed; the process that adopts it reaps it.
        let running = || Tree::of(stubborn).look(&Sysroot::live()).running();
        let begun = Instant::now();
        while running() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn one_that_is_dropped_is_gone() {
        let child = StoppedChild::start(&words(&["sleep", "1000"])).unwrap();
        let process = format!("/proc/{}", child.id());
        assert!(std::path::Path::new(&process).exists());
        drop(child);
        assert!(!std::path::Path::new(&process).exists());
    }
}
