//! Where counts come from: the machine, a recording, or a mock that fails on purpose.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::event::{Event, Privilege};

/// The threads and CPUs to count.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A process by its main thread, with the threads and children that it makes from now on: all
    /// of a command that is about to begin.
    Process(u32),
    /// A process and its descendants, on all CPUs together, by process accounting.
    Tree(u32),
    /// One thread while it is on one CPU, with the threads and children that it makes from now on:
    /// what a server does, by logical CPU, where no control group can be made for it.
    ThreadOnCpu {
        /// The thread.
        thread: u32,
        /// The logical CPU.
        cpu: u32,
    },
    /// A logical CPU, whatever runs there.
    Cpu(u32),
    /// A logical CPU while a control group runs there: the per-processor columns of Hassanein et
    /// al. (2008) for one server only.
    CpuOfGroup {
        /// The logical CPU.
        cpu: u32,
        /// The control group's directory.
        group: PathBuf,
    },
}

impl Target {
    /// The logical CPU, unless it is all of them.
    #[must_use]
    pub fn cpu(&self) -> Option<u32> {
        match self {
            Target::Process(_) | Target::Tree(_) => None,
            Target::ThreadOnCpu { cpu, .. } | Target::Cpu(cpu) | Target::CpuOfGroup { cpu, .. } => {
                Some(*cpu)
            }
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Process(pid) => write!(out, "process {pid}"),
            Target::Tree(pid) => write!(out, "process {pid} and its descendants"),
            Target::ThreadOnCpu { thread, cpu } => write!(out, "thread {thread} on CPU {cpu}"),
            Target::Cpu(cpu) => write!(out, "CPU {cpu}"),
            Target::CpuOfGroup { cpu, group } => {
                write!(out, "control group {} on CPU {cpu}", group.display())
            }
        }
    }
}

/// Opens groups of events.
pub trait Source {
    /// Takes counters for a group without starting them. All of the group counts at the same time
    /// or none of it.
    ///
    /// # Errors
    /// If the machine does not have an event, has no counter left, or forbids it.
    fn open(
        &mut self,
        group: &[Event],
        privilege: Privilege,
        target: &Target,
    ) -> Result<Box<dyn Counting>, CountError>;
}

/// A group that has its counters.
pub trait Counting {
    /// Resets the group and starts it.
    ///
    /// # Errors
    /// If the system refuses.
    fn begin(&mut self) -> Result<(), CountError>;

    /// Stops it.
    ///
    /// # Errors
    /// If the counters can't be read.
    fn end(&mut self) -> Result<Reading, CountError>;
}

/// The counts of a group between begin and end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Nanoseconds in which it was to count: for a process, those on a CPU.
    pub enabled_ns: u64,
    /// Nanoseconds in which it had its counters. Less than `enabled_ns` means that the kernel gave
    /// them to another program in between, and that the values do not cover the whole time.
    pub running_ns: u64,
    /// One value per event of the group, in its order.
    pub values: Vec<u64>,
}

/// Why nothing was counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// The machine has no such event, or shows none to a virtual machine (ENOENT, EOPNOTSUPP,
    /// ENXIO).
    #[error("this machine does not count {event}: {why}")]
    NoSuchEvent {
        /// The event.
        event: String,
        /// The system's error.
        why: String,
    },
    /// The system forbids it (EACCES, EPERM).
    #[error(
        "counting {event} is forbidden: write 0 to /proc/sys/kernel/perf_event_paranoid, or grant \
         CAP_PERFMON"
    )]
    Forbidden {
        /// The event.
        event: String,
    },
    /// The group has more events than counters (EINVAL of a group's member, ENOSPC).
    #[error("{events} events do not fit the counters of this machine at once")]
    DoesNotFit {
        /// How many were requested.
        events: usize,
    },
    /// No more files may be open (EMFILE, ENFILE).
    #[error("too many open files: raise the limit with `ulimit -n`")]
    TooManyFiles,
    /// Another program holds the counters (EBUSY).
    #[error("another program holds the counters: end it, or try again later")]
    Busy,
    /// The target is gone (ESRCH).
    #[error("{0} is gone")]
    Gone(String),
    /// The command that was to be counted can't be run.
    #[error("{0}")]
    NoProgram(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}
