//! The system's scheduling policies for ordinary programs (sched(7)).

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

/// A policy that needs no rights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The usual one: fair, with regard to who waits for an answer.
    #[default]
    Other,
    /// Fair, for work that nobody waits for: a thread that wakes does not interrupt another.
    Batch,
    /// For what is to run only where nothing else does.
    Idle,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 3] = [Policy::Other, Policy::Batch, Policy::Idle];

    /// As studies spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Policy::Other => "other",
            Policy::Batch => "batch",
            Policy::Idle => "idle",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Puts the calling thread, and what it starts from now on, under a policy. A way back from
/// [`Policy::Idle`] is not given to everyone: let a thread that ends do it.
///
/// # Errors
/// When the system refuses.
pub fn adopt(policy: Policy) -> io::Result<()> {
    let number = match policy {
        Policy::Other => libc::SCHED_OTHER,
        Policy::Batch => libc::SCHED_BATCH,
        Policy::Idle => libc::SCHED_IDLE,
    };
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: reads one `sched_param`, which outlives the call; 0 is the calling thread.
    let status = unsafe { libc::sched_setscheduler(0, number, &raw const priority) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Field 41 of `/proc/thread-self/stat` (proc_pid_stat(5)).
    fn own() -> u32 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split_whitespace().nth(38).unwrap().parse().unwrap()
    }

    #[test]
    fn what_a_thread_starts_has_its_policy() {
        for (policy, number) in [(Policy::Other, 0), (Policy::Batch, 3), (Policy::Idle, 5)] {
            let seen = std::thread::spawn(move || {
                adopt(policy).unwrap();
                (own(), std::thread::spawn(own).join().unwrap())
            });
            assert_eq!(seen.join().unwrap(), (number, number), "{policy}");
        }
        assert_eq!(own(), 0, "this thread keeps its own");
    }
}
