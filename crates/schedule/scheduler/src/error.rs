//! Errors and their remedies.

/// The scheduler can't be attached, queried or set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel has no sched_ext.
    #[error(
        "this kernel has no sched_ext: it needs Linux 6.12 or newer with CONFIG_SCHED_CLASS_EXT \
         (Debian: linux-image-cloud-amd64 or linux-image-amd64 from trixie-backports)"
    )]
    NoSchedExt,
    /// There is one already.
    #[error("another sched_ext scheduler runs ({name}): stop it first")]
    Taken {
        /// Its name.
        name: String,
    },
    /// It isn't allowed.
    #[error("attaching a scheduler needs root (CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN)")]
    NotAllowed,
    /// None of ours runs.
    #[error("the scheduler isn't running: start it with `workahead scheduler run`")]
    NotRunning,
    /// It ended by itself.
    #[error("the kernel schedules by itself again ({reason}): {message}")]
    TakenOver {
        /// The kernel's reason.
        reason: String,
        /// Its message.
        message: String,
    },
    /// The kernel refuses.
    #[error("the kernel refuses to {what}: {says}")]
    Refused {
        /// The operation.
        what: &'static str,
        /// Its words, on one line.
        says: String,
    },
    /// The kernel has sched_ext and lacks a part of it.
    #[error(
        "this kernel lacks {part}, which the scheduler needs: Linux 6.12 or newer has it \
         (7.2.12 of Debian's backports doesn't: use 7.2.13)"
    )]
    Lacks {
        /// Its name.
        part: &'static str,
    },
    /// A scheduler's program isn't there.
    #[error("there is no program {0} in PATH: install it (`cargo install {0}`), or give its path")]
    NoProgram(String),
    /// The scheduler of another program can't be used.
    #[error("{program}: {says}")]
    External {
        /// The program.
        program: String,
        /// The failure, and the program's last words, on one line.
        says: String,
    },
    /// The user requested a stop while another program was waited for.
    #[error("interrupted: {program} was stopped before it had the tasks")]
    Stopped {
        /// The program.
        program: String,
    },
    /// The counts can't be offered.
    #[error("can't offer metrics at {address}: {source}; choose another address or port")]
    Metrics {
        /// Where.
        address: std::net::SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The service manager doesn't listen.
    #[error("can't report to the service manager at {socket} (NOTIFY_SOCKET): {source}")]
    Notify {
        /// Where.
        socket: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The user requested a stop.
    #[error("interrupted: bonus and limit are as they were before")]
    Interrupted,
    /// A setting out of range.
    #[error("{0}")]
    Setting(String),
}
