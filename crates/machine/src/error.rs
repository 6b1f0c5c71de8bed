//! The one error type of this crate: each message is one line that names the remedy.

use crate::cpus::CpuSet;

/// Why something about this machine could not be read, set or measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A list of CPUs in another form than `0-3,8`.
    #[error("bad CPU list {text:?}: write numbers and ranges, such as 0-3,8")]
    CpuList {
        /// The text that was given.
        text: String,
    },
    /// A CPU outside the set this process may use.
    #[error("CPU {cpu} is not allowed: choose one of {allowed}")]
    CpuNotAllowed {
        /// The requested CPU.
        cpu: usize,
        /// The CPUs that may be used.
        allowed: CpuSet,
    },
    /// The system refused to move the thread.
    #[error("the system refused to pin a thread to CPU {cpu} ({source}): choose another CPU")]
    Pin {
        /// The requested CPU.
        cpu: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// The system refused to keep a thread on some CPUs.
    #[error("the system refused to keep a thread on CPUs {cpus} ({source}): choose others")]
    StayOn {
        /// The requested CPUs.
        cpus: CpuSet,
        /// The system's error.
        source: std::io::Error,
    },
    /// The affinity of this thread could not be read.
    #[error("the system does not tell which CPUs this thread may use ({0})")]
    Affinity(std::io::Error),
    /// The system refused a thread.
    #[error("the system has no more threads ({0}): raise `ulimit -u`, or end other programs")]
    Thread(std::io::Error),
    /// More threads than CPUs they could be pinned to.
    #[error("{threads} threads need as many CPUs, and only {allowed} are allowed: use fewer")]
    TooManyThreads {
        /// The requested threads.
        threads: usize,
        /// The CPUs that may be used.
        allowed: CpuSet,
    },
    /// A described machine that is not there.
    #[error("no directory {}: give one that holds proc/ and sys/", directory.display())]
    Sysroot {
        /// The requested directory.
        directory: std::path::PathBuf,
    },
    /// The user requested a stop while limits were measured.
    #[error("measuring the limits was interrupted, nothing is saved: run it again")]
    Stopped,
    /// Measured limits could not be saved.
    #[error("can't save the limits as {} ({source}): set XDG_CACHE_HOME to a directory that can \
             be written", path.display())]
    Save {
        /// The file.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// There is no place to save limits.
    #[error("no place to save the limits: set XDG_CACHE_HOME (an absolute path) or HOME")]
    NoCache,
    /// Memory could not be allocated.
    #[error(transparent)]
    Allocation(#[from] crate::pages::AllocationError),
}
