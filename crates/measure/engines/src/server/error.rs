//! Errors of private servers: one line each with the remedy; if the server printed the reason, its
//! last lines follow.

use std::io;
use std::path::{Path, PathBuf};

use workahead_machine::CpuSet;
use workahead_machine::scheduling::Policy;
use workahead_study::engine::EngineError;
use workahead_workloads::session::SessionError;

/// Why a server could not be found, started, filled, queried or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its programs are missing.
    #[error(
        "{product} is not installed ({program} is nowhere to be found): install it with {install}"
    )]
    Missing {
        /// PostgreSQL, MariaDB.
        product: &'static str,
        /// The program that was looked for.
        program: String,
        /// The command that installs it.
        install: &'static str,
    },
    /// Its programs are older than the studies support.
    #[error("{product} {found} is too old, {needed} or newer is needed: install it with {install}")]
    Old {
        /// PostgreSQL, MariaDB.
        product: &'static str,
        /// The version that was found.
        found: String,
        /// The oldest that will do.
        needed: &'static str,
        /// The command that installs it.
        install: &'static str,
    },
    /// Another run uses the directory now.
    #[error("{} is in use by another run: wait for its end, or give another directory",
            directory.display())]
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// The directory holds files of others.
    #[error("{} is not empty, and not a directory of Workahead's {product}: give another",
            directory.display())]
    NotOurs {
        /// PostgreSQL, MariaDB.
        product: &'static str,
        /// The directory.
        directory: PathBuf,
    },
    /// The server's user can't reach the directory.
    #[error("the server runs as `{user}`, which may not enter {}: give a directory it can reach",
            closed.display())]
    Closed {
        /// The user the server runs as.
        user: String,
        /// The first directory on the way that it may not enter.
        closed: PathBuf,
    },
    /// There is no user to run the server as.
    #[error("servers refuse to run as root, and there is no user among {tried}: add one")]
    NoUser {
        /// The users that were looked for.
        tried: String,
    },
    /// No room.
    #[error("the disk is full where {} is: make room, or give another directory", path.display())]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
    },
    /// The program ended, or did not answer.
    #[error("{what} ({how}); the end of {}:\n{tail}", log.display())]
    Start {
        /// The program, and what it failed to do.
        what: String,
        /// How it ended.
        how: String,
        /// Its log.
        log: PathBuf,
        /// The log's last lines, indented.
        tail: String,
    },
    /// CPUs that a server can't be kept on.
    #[error("the server can't be kept on CPUs {cpus}: {source}")]
    Cpus {
        /// The requested CPUs.
        cpus: CpuSet,
        /// The system's error.
        source: workahead_machine::Error,
    },
    /// A scheduling policy that a server can't have.
    #[error("the server can't be scheduled as `{policy}`: {source}")]
    Policy {
        /// The requested policy.
        policy: Policy,
        /// The system's error.
        source: std::io::Error,
    },
    /// The system refused.
    #[error("can't {doing} ({source})")]
    System {
        /// The operation.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// The server's error for one of our own statements.
    #[error("{doing}: {source}")]
    Session {
        /// The operation.
        doing: String,
        /// The server's error.
        source: SessionError,
    },
    /// An invalid setting of any server.
    #[error("{0}")]
    Setting(String),
    /// An invalid URL, or another server than it names.
    #[error("{0}")]
    Url(String),
    /// Stopped by request.
    #[error("stopped")]
    Stopped,
}

impl Error {
    /// The system's refusal while `doing` something to `path`.
    pub(crate) fn system(doing: &str, path: &Path, source: io::Error) -> Error {
        if is_full(&source) {
            return Error::DiskFull { path: path.to_owned() };
        }
        Error::System { doing: format!("{doing} {}", path.display()), source }
    }

    /// A statement of our own that was refused.
    pub(crate) fn session(doing: &str, source: SessionError) -> Error {
        Error::Session { doing: doing.to_owned(), source }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl From<Error> for EngineError {
    fn from(error: Error) -> EngineError {
        match error {
            Error::Stopped => EngineError::Stopped,
            other => EngineError::failed(other),
        }
    }
}
