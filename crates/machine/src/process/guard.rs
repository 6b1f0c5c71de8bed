//! Stops a process, or a group, when this one ends, whatever ends it: also SIGKILL, which no
//! handler sees.
//!
//! A shell waits for the end of a pipe whose other end only this process holds. The system's own
//! way (`PR_SET_PDEATHSIG`, prctl(2)) follows the thread that started the process, which may be one
//! that only set its CPUs, and reaches nothing that the process starts.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};

/// Waits for the end of its input, then sends a signal; to what stays for half a minute, SIGQUIT,
/// which ends all processes of a server without another word.
const SCRIPT: &str = "read -r _; kill -s \"$0\" -- \"$1\"; n=0; while [ $n -lt 300 ]; do \
                      kill -s 0 -- \"$1\" || exit; n=$((n + 1)); sleep 0.1; done; \
                      kill -s QUIT -- \"$1\"";

/// A shell that waits for this process's end.
#[derive(Debug)]
pub struct Guard {
    shell: Option<Child>,
}

impl Guard {
    /// Of a process that has not been waited for. Without a shell there is none.
    #[must_use]
    pub fn over(pid: Pid, signal: Signal) -> Guard {
        Self::of(&pid.as_raw_nonzero().to_string(), signal)
    }

    /// Of a group whose first process has not been waited for.
    #[must_use]
    pub fn over_group(group: Pid, signal: Signal) -> Guard {
        Self::of(&format!("-{}", group.as_raw_nonzero()), signal)
    }

    fn of(target: &str, signal: Signal) -> Guard {
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
        Guard { shell: command.spawn().ok() }
    }

    /// The process has ended: its number may be another's from now on.
    pub fn dismiss(&mut self) {
        if let Some(mut shell) = self.shell.take() {
            // Killed before its input ends, so that it signals nobody.
            let _ = shell.kill();
            let _ = shell.wait();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.dismiss();
    }
}
