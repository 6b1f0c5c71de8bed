//! Stops a process, or a group, when this one ends, whatever ends it: also SIGKILL, which no
//! handler sees.
//!
//! ```text
//! waiting ─► a shell, waits for a line ──── a line ─► it becomes the program
//!   over ──► a shell, waits for the end of a pipe        │
//!               └─ this process ended ─► signal ─────────┘
//! ```
//!
//! Only this process holds the other ends of both pipes, so that a program whose guard isn't set
//! yet never begins. The system's own way (`PR_SET_PDEATHSIG`, prctl(2)) follows the thread that
//! started the process, which may be one that only set its CPUs, and reaches nothing that the
//! process starts.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::Signal;

/// Waits for a line, then becomes the program, to which the rest of the input is left.
const WAITING: &str = "read -r _ || exit; exec \"$@\"";

/// Waits for the end of its input, then sends a signal; to what stays for half a minute, SIGQUIT,
/// which ends all processes of a server without another word.
const SCRIPT: &str = "read -r _; kill -s \"$0\" -- \"$1\"; n=0; while [ $n -lt 300 ]; do \
                      kill -s 0 -- \"$1\" || exit; n=$((n + 1)); sleep 0.1; done; \
                      kill -s QUIT -- \"$1\"";

/// A shell that waits for this process's end.
///
/// ```
/// use std::process::Stdio;
///
/// use rustix::process::Signal;
/// use workahead_machine::process::Guard;
///
/// let mut child = Guard::waiting("cat").stdout(Stdio::piped()).spawn()?;
/// let mut guard = Guard::over(&mut child, Signal::TERM)?;
/// guard.begin(b"its input");
/// assert_eq!(child.wait_with_output()?.stdout, b"its input");
/// guard.dismiss();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Guard {
    shell: Child,
    /// Of a program that has not begun.
    input: Option<ChildStdin>,
}

impl Guard {
    /// The command of a program that waits for its guard to let it [begin](Self::begin). Its input
    /// is the guard's.
    #[must_use]
    pub fn waiting(program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WAITING, "sh"]).arg(program).stdin(Stdio::piped());
        command
    }

    /// Of a process that has not been waited for.
    ///
    /// # Errors
    ///
    /// When there is no shell; then the process has been killed.
    pub fn over(child: &mut Child, signal: Signal) -> io::Result<Guard> {
        let target = child.id().to_string();
        Self::of(child, &target, signal)
    }

    /// Of the group whose first process this is.
    ///
    /// # Errors
    ///
    /// As [`over`](Self::over).
    pub fn over_group(child: &mut Child, signal: Signal) -> io::Result<Guard> {
        let target = format!("-{}", child.id());
        Self::of(child, &target, signal)
    }

    fn of(child: &mut Child, target: &str, signal: Signal) -> io::Result<Guard> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", SCRIPT, &signal.as_raw().to_string(), target])
            .env_clear()
            .current_dir("/")
            // Ctrl-C is for this process, which stops the other itself.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match command.spawn() {
            Ok(shell) => Ok(Guard { shell, input: child.stdin.take() }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Lets the program begin, with this input. One whose guard is dropped before never does.
    pub fn begin(&mut self, input: &[u8]) {
        if let Some(mut to) = self.input.take() {
            // One that has ended already says why by itself.
            let _ = to.write_all(b"\n").and_then(|()| to.write_all(input));
        }
    }

    /// The process has ended: its number may be another's from now on.
    pub fn dismiss(&mut self) {
        // Killed before its input ends, so that it signals nobody.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.dismiss();
    }
}
