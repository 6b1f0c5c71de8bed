//! A scheduler that is another program: started, waited for until it has the tasks, and stopped.
//!
//! ```text
//!   start ─► the program runs ─► the kernel names its scheduler ─► … ─► stop, drop: SIGINT,
//!               │ ends before, takes too long, or nobody waits any more  the kernel's own again
//!               └─► its last words
//! ```
//!
//! The programs of the scx project (`scx_cosmos`, `scx_lavd`, …) attach when they are started and
//! leave on SIGINT. The kernel takes the tasks back from one that is killed. One whose starter is
//! killed is stopped by a guard.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use workahead_machine::process::Guard;
use workahead_machine::search_path;

use crate::error::Error;
use crate::kernel::{attachable, enabled, running};

/// Verifying the largest of them takes seconds, in an emulated guest tens of them.
const START_MAX: Duration = Duration::from_secs(120);
/// After this SIGKILL.
const STOP_MAX: Duration = Duration::from_secs(20);
/// The same of one that has no tasks yet: libbpf tries again what a signal interrupts, so that one
/// whose programs are being verified may hear nothing for long.
const LEAVE_MAX: Duration = Duration::from_millis(500);
/// How long the kernel may take to have its tasks again.
const VACANT_MAX: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);
/// Lines of what it said last, for an error.
const LINES: usize = 6;

/// A scheduler of another program, attached until this is dropped.
#[derive(Debug)]
pub struct External {
    program: String,
    child: Child,
    guard: Guard,
    said: Arc<Mutex<VecDeque<String>>>,
    name: String,
}

/// The program of this name: a path, or in an absolute directory of `PATH`.
///
/// # Errors
///
/// [`Error::NoProgram`], with how to install one of the scx project.
pub fn program(name: &str) -> Result<PathBuf, Error> {
    if name.contains('/') {
        let path = PathBuf::from(name);
        return if path.is_file() { Ok(path) } else { Err(Error::NoProgram(name.to_owned())) };
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    search_path::program(&folders, name).ok_or_else(|| Error::NoProgram(name.to_owned()))
}

impl External {
    /// Starts a program and waits until the kernel schedules by it, or the wait is to end.
    ///
    /// # Errors
    ///
    /// [`Error::NoSchedExt`], [`Error::Taken`], [`Error::NotAllowed`]; [`Error::External`] with its
    /// last words when it ends or isn't attached within two minutes; [`Error::Stopped`].
    pub fn start(
        program: &Path,
        words: &[&str],
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        attachable()?;
        let mut started = Self::launch(program, words)?;
        started.name = started.attached(is_stopped)?;
        Ok(started)
    }

    /// Starts a program, which has no tasks yet.
    fn launch(program: &Path, words: &[&str]) -> Result<Self, Error> {
        let name = program.file_name().unwrap_or(program.as_os_str());
        let name = name.to_string_lossy().into_owned();
        let failed = |says: String| Error::External { program: name.clone(), says };
        let mut command = Guard::waiting(program);
        command.args(words).stdout(Stdio::null()).stderr(Stdio::piped());
        // Ctrl-C is for this process, which stops the other itself.
        let mut child =
            command.process_group(0).spawn().map_err(|error| failed(error.to_string()))?;
        let guard = Guard::over(&mut child, Signal::INT);
        let mut guard = guard.map_err(|error| failed(error.to_string()))?;
        guard.begin(b"");
        let said = Arc::default();
        if let Some(stderr) = child.stderr.take() {
            let said = Arc::clone(&said);
            // Ends with the program.
            std::thread::spawn(move || keep_last(BufReader::new(stderr), &said));
        }
        Ok(Self { program: name, child, guard, said, name: String::new() })
    }

    /// Waits until it has the tasks, and returns its name. One that nobody waits for is stopped.
    fn attached(&mut self, is_stopped: &dyn Fn() -> bool) -> Result<String, Error> {
        let start = Instant::now();
        loop {
            if is_stopped() {
                self.end(LEAVE_MAX)?;
                return Err(Error::Stopped { program: self.program.clone() });
            }
            if let Some(name) = enabled()? {
                return Ok(name);
            }
            if let Some(status) = self.child.try_wait().map_err(|error| self.failed(&error))? {
                // The reader may not have read all of it.
                std::thread::sleep(LOOK);
                return Err(self.failed(&format!("it ended with {status}")));
            }
            if start.elapsed() > START_MAX {
                return Err(self.failed(&format!("not attached in {} s", START_MAX.as_secs())));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn failed(&self, what: &dyn std::fmt::Display) -> Error {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let last: Vec<&str> = said.iter().map(String::as_str).collect();
        let says = format!("{what}; {}", last.join(" | "));
        Error::External { program: self.program.clone(), says }
    }

    /// The name by which the kernel knows it, often with its version.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks that it still has the tasks.
    ///
    /// # Errors
    ///
    /// [`Error::External`] with its last words.
    pub fn check(&self) -> Result<(), Error> {
        match enabled()? {
            Some(name) if name == self.name => Ok(()),
            _ => Err(self.failed(&"the kernel took the tasks back")),
        }
    }

    /// Stops it; the kernel's own scheduler has the tasks then.
    ///
    /// # Errors
    ///
    /// [`Error::External`] when the kernel doesn't have them in time.
    pub fn stop(mut self) -> Result<(), Error> {
        self.end(STOP_MAX)
    }

    /// Stops it within a time, and kills it after that.
    fn end(&mut self, most: Duration) -> Result<(), Error> {
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        if !within(most, || !matches!(self.child.try_wait(), Ok(None))) {
            // It isn't to be reasoned with.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
        self.guard.dismiss();
        match within(VACANT_MAX, || !matches!(running(), Ok(Some(_)))) {
            true => Ok(()),
            false => Err(self.failed(&"it is still attached after its end")),
        }
    }
}

impl Drop for External {
    fn drop(&mut self) {
        // After `stop` there is nobody: a process that was waited for isn't signalled.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.end(STOP_MAX);
        }
    }
}

/// Waits until something is so; false when it takes too long.
fn within(most: Duration, so: impl FnMut() -> bool) -> bool {
    let (start, mut so) = (Instant::now(), so);
    while !so() {
        if start.elapsed() > most {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

fn keep_last(lines: impl BufRead, said: &Mutex<VecDeque<String>>) {
    for line in lines.lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() == LINES {
            said.pop_front();
        }
        said.push_back(line.chars().take(300).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_or_named_with_the_remedy() {
        assert!(program("sh").unwrap().is_absolute());
        assert!(program("/nonexistent/scx_none").is_err());
        let said = program("scx_none").unwrap_err().to_string();
        assert!(said.contains("cargo install scx_none"), "{said}");
    }

    #[test]
    fn one_that_nobody_waits_for_is_gone() {
        // The second may hear no signal but the last.
        for script in ["exec sleep 60", "trap '' INT; exec sleep 60"] {
            let mut started = External::launch(Path::new("/bin/sh"), &["-c", script]).unwrap();
            let stopped = started.attached(&|| true).unwrap_err();
            assert_eq!(stopped.to_string(), "interrupted: sh was stopped before it had the tasks");
            assert!(started.child.try_wait().unwrap().is_some(), "{script}");
        }
    }

    #[test]
    fn the_last_lines_are_kept() {
        let said = Mutex::default();
        keep_last("1\n2\n\n3\n4\n5\n6\n7\n8\n".as_bytes(), &said);
        assert_eq!(said.into_inner().unwrap(), ["3", "4", "5", "6", "7", "8"]);
    }
}
