//! Errors of a cluster, each in one line.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use ballista_core::error::BallistaError;
use datafusion::error::DataFusionError;
use workahead_sql::session::SessionError;

use crate::Address;

/// A cluster or its client has failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// Not the address of a scheduler.
    #[error(
        "{text:?} is not a cluster's address: give the line that `workahead cluster` prints, \
         df://HOST:PORT"
    )]
    Address {
        /// The argument.
        text: String,
    },
    /// No scheduler answers there.
    #[error("no scheduler answers at {address}: {source}; is `workahead cluster` running there?")]
    Unreachable {
        /// The address.
        address: Address,
        /// The system's error.
        source: io::Error,
    },
    /// Another program answers there.
    #[error(
        "{address} is not a scheduler of Ballista 55: give the line that `workahead cluster` prints"
    )]
    NotAScheduler {
        /// The address.
        address: Address,
    },
    /// The cluster has no executors.
    #[error("the cluster at {address} has no executors: start it again")]
    NoExecutors {
        /// Its scheduler.
        address: Address,
    },
    /// A query's executor died, and the query could not be restarted.
    #[error(
        "an executor of the cluster at {address} was lost during the query: run the query again"
    )]
    ExecutorLost {
        /// Its scheduler.
        address: Address,
    },
    /// The scheduler has ended.
    #[error("the scheduler at {address} ended during a query: start the cluster again")]
    SchedulerLost {
        /// Its address.
        address: Address,
    },
    /// A port is in use or not allowed.
    #[error("can't listen on {address}: {source}; choose another port, or 0 for any free one")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A directory can't be written to.
    #[error("can't write to the directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The memory limit is too low for the number of tasks.
    #[error("{bytes} bytes are too few for {slots} slots: raise --memory-limit")]
    Memory {
        /// For all slots.
        bytes: usize,
        /// Concurrent tasks.
        slots: usize,
    },
    /// The system can't start threads.
    #[error("can't start threads: {0}")]
    Threads(#[source] io::Error),
    /// A scheduler or an executor ended by itself.
    #[error("the {what} stopped: {why}")]
    Stopped {
        /// Which of them.
        what: &'static str,
        /// Ballista's message.
        why: String,
    },
    /// An error of the client's session.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// An error of a query, as Ballista reports it.
    #[error("{0}")]
    Query(String),
}

impl ClusterError {
    pub(crate) fn stopped(what: &'static str, error: BallistaError) -> Self {
        Self::Stopped { what, why: error.to_string() }
    }

    pub(crate) fn of_datafusion(error: DataFusionError) -> Self {
        Self::Session(SessionError::Query(error))
    }
}
