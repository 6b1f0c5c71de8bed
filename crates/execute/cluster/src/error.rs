//! What goes wrong with a cluster, in one line.

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
    /// No place where a scheduler could be.
    #[error(
        "{text:?} names no cluster: give the line that `workahead cluster` prints, df://HOST:PORT"
    )]
    Address {
        /// What was given.
        text: String,
    },
    /// No scheduler answers there.
    #[error("no scheduler answers at {address}: {source}; is `workahead cluster` running there?")]
    Unreachable {
        /// Where it was looked for.
        address: Address,
        /// The system's error.
        source: io::Error,
    },
    /// Another program answers there.
    #[error(
        "{address} is not a scheduler of Ballista 55: give the line that `workahead cluster` prints"
    )]
    NotAScheduler {
        /// Where it was looked for.
        address: Address,
    },
    /// The cluster has no executors.
    #[error("the cluster at {address} has no executors: start it again")]
    NoExecutors {
        /// Its scheduler.
        address: Address,
    },
    /// A query's executor died, and it could not be begun anew.
    #[error(
        "an executor of the cluster at {address} was lost in the middle of the query: run it again"
    )]
    ExecutorLost {
        /// Its scheduler.
        address: Address,
    },
    /// The scheduler has ended.
    #[error(
        "the scheduler at {address} has gone in the middle of a query: start the cluster again"
    )]
    Gone {
        /// Where it was.
        address: Address,
    },
    /// A port is taken, or not for us.
    #[error("can't listen on {address}: {source}; choose another port, or 0 for any that is free")]
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
    /// Less memory than tasks.
    #[error("{bytes} bytes are too little for {slots} slots: give --memory-limit more")]
    Memory {
        /// Of all slots.
        bytes: usize,
        /// Tasks at a time.
        slots: usize,
    },
    /// The system starts no more threads.
    #[error("can't start threads: {0}")]
    Threads(#[source] io::Error),
    /// A server of ours ended by itself.
    #[error("the {what} stopped: {why}")]
    Stopped {
        /// Which.
        what: &'static str,
        /// What Ballista said.
        why: String,
    },
    /// A session on this side.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A query, in Ballista's words.
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
