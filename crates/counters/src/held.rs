//! A command that waits until it is counted: started, stopped before its first instruction, and
//! let go when the counters are in place.
//!
//! A shell stops itself and then becomes the command, so that the process is there, by its number,
//! before anything of the command has run.

use std::ffi::OsString;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::source::CountError;

/// Stops the shell, then is the command.
const SCRIPT: &str = "kill -STOP $$; exec \"$@\"";

/// A command that waits.
#[derive(Debug)]
pub struct Held {
    child: Child,
    pid: Pid,
}

impl Held {
    /// Starts a command, which then waits. Its input and outputs are ours.
    ///
    /// # Errors
    /// If there is no shell to start it, or no such program.
    pub fn start(words: &[OsString]) -> Result<Self, CountError> {
        let program = words.first().ok_or_else(|| failed("no command is given"))?;
        if !is_there(program) {
            return Err(failed(&format!("there is no program `{}`", program.to_string_lossy())));
        }
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

    /// Its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Lets it go.
    ///
    /// # Errors
    /// If it is no longer there.
    pub fn go(&mut self) -> Result<(), CountError> {
        kill_process(self.pid, Signal::CONT)
            .map_err(|error| failed(&format!("the command can't be continued: {error}")))
    }

    /// Whether and how it ended.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, CountError> {
        self.child
            .try_wait()
            .map_err(|error| failed(&format!("the command can't be waited for: {error}")))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Nothing of it is left behind when counting fails; one that has ended can't be killed.
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether a shell would find a program.
fn is_there(program: &OsString) -> bool {
    let path = std::path::Path::new(program);
    if path.components().count() > 1 {
        return path.is_file();
    }
    let places = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&places).any(|place| place.join(path).is_file())
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
    fn nothing_happens_before_it_is_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("made");
        let mut held = Held::start(&words(&["touch", made.to_str().unwrap()])).unwrap();
        assert!(!made.exists() && held.ended().unwrap().is_none());
        held.go().unwrap();
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = held.ended().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(status.success() && made.exists());
    }

    #[test]
    fn what_can_not_be_started_is_named() {
        let says = Held::start(&words(&["no-such-program"])).unwrap_err().to_string();
        assert_eq!(says, "there is no program `no-such-program`");
        assert!(Held::start(&[]).is_err());
    }

    #[test]
    fn one_that_is_dropped_is_gone() {
        let held = Held::start(&words(&["sleep", "1000"])).unwrap();
        let process = format!("/proc/{}", held.id());
        assert!(std::path::Path::new(&process).exists());
        drop(held);
        assert!(!std::path::Path::new(&process).exists());
    }
}
