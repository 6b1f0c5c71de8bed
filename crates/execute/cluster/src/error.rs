//! Errors of a cluster, each in one line.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use datafusion::error::DataFusionError;
use workahead_sql::session::SessionError;

use crate::ClusterUrl;

/// A cluster or its client has failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// Not a cluster's URL. It isn't repeated: it may have a token in it.
    #[error(
        "this is not a cluster's URL: give the line that `workahead cluster` prints, \
         workahead://TOKEN@HOST:PORT,…, or a file with it"
    )]
    Url,
    /// Not a token.
    #[error("a cluster's token is 64 hexadecimal digits: `workahead cluster token` makes one")]
    Token,
    /// No worker answers.
    #[error("no worker answers at {url}: is `workahead cluster` running there?")]
    Unreachable {
        /// The workers.
        url: ClusterUrl,
    },
    /// The workers have another token.
    #[error("the workers at {url} have another token: give the URL that this cluster printed")]
    Refused {
        /// The workers.
        url: ClusterUrl,
    },
    /// Another version answers.
    #[error("the worker at {address} is {version}, not {own}: use the same version everywhere")]
    Version {
        /// The worker.
        address: SocketAddr,
        /// Its version.
        version: String,
        /// This program.
        own: String,
    },
    /// A query's worker died or stopped answering, and the query could not be run again.
    #[error(
        "a worker of {url} ended or did not answer for {dead_after:?} during the query: run the \
         query again"
    )]
    WorkerLost {
        /// The workers.
        url: ClusterUrl,
        /// The time after which it counts as dead.
        dead_after: Duration,
    },
    /// A port is in use or not allowed.
    #[error("can't listen on {address}: {source}; choose another port, or 0 for any free one")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A directory can't be used.
    #[error("can't use the directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system can't start threads.
    #[error("can't start threads: {0}")]
    Threads(#[source] io::Error),
    /// A worker ended by itself.
    #[error("the worker stopped: {why}")]
    Stopped {
        /// The reason.
        why: String,
    },
    /// An error of the client's session.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl ClusterError {
    pub(crate) fn of_datafusion(error: DataFusionError) -> Self {
        Self::Session(SessionError::Query(error))
    }
}
