//! `--cluster`: statements that run on a cluster, or here where that is as fast.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use workahead_cluster::{Client, ClientOptions, ClusterError};
use workahead_sql::session::{Answer, Joins, Options, Session, SessionError, Statement};

use super::failed;
use crate::commands::cluster::cluster_url;
use crate::errors::WrongUse;

/// The cluster that runs the statements; none if this process does.
pub(crate) struct Remote(Option<Client>);

impl Remote {
    /// Statements run in this process.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// The cluster at a URL, and a session with it.
    pub(crate) fn session(
        url: &str,
        here: &Options,
        dead_after: Duration,
    ) -> anyhow::Result<(Self, Session)> {
        let url = cluster_url(url).map_err(|error| WrongUse::error(format!("{error:#}")))?;
        let here = here.clone();
        let (client, session) = Client::session(&ClientOptions { url, here, dead_after })?;
        Ok((Self(Some(client)), session))
    }

    /// The URL without its token, for reports.
    pub(crate) fn url(&self) -> Option<String> {
        self.0.as_ref().map(|client| client.url().public())
    }

    /// Starts a statement, on the workers that are there.
    pub(crate) fn run(
        &self,
        session: &Session,
        statement: &Statement,
        stop: &'static AtomicBool,
    ) -> anyhow::Result<Answer> {
        if let Some(client) = &self.0 {
            client.refresh()?;
        }
        session.run(statement, stop).map_err(failed)
    }

    /// The joins of an answer that was read to its end.
    pub(crate) fn joins(&self, answer: &Answer) -> Joins {
        self.0.as_ref().map_or_else(|| answer.joins(), |client| client.joins(answer))
    }

    /// The error of an answer that failed, and whether it is the cluster's: the statement can then
    /// be run again.
    pub(crate) fn failed(&self, error: SessionError) -> (anyhow::Error, bool) {
        let Some(client) = &self.0 else { return (failed(error), false) };
        match client.explain(error) {
            ClusterError::Session(error) => (failed(error), false),
            error => (error.into(), true),
        }
    }
}
