//! `--cluster`: statements that run on a cluster.

use std::num::NonZero;
use std::sync::atomic::AtomicBool;

use workahead_cluster::{Address, Client, ClientOptions, ClusterError, ExecutorWatch};
use workahead_sql::session::{Answer, Joiner, Joins, Session, SessionError, Statement};

use super::failed;
use crate::errors::WrongUse;

/// The cluster that runs the statements; none if this process does.
pub(crate) struct Remote(Option<Client>);

impl Remote {
    /// Statements run in this process.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// The cluster at an address, and a session with it.
    pub(crate) fn session(
        url: &str,
        joiner: Joiner,
        partitions: Option<NonZero<usize>>,
    ) -> anyhow::Result<(Self, Session)> {
        let address: Result<Address, ClusterError> = url.parse();
        let address = address.map_err(|error| WrongUse::error(error.to_string()))?;
        let (client, session) = Client::session(&ClientOptions { address, joiner, partitions })?;
        Ok((Self(Some(client)), session))
    }

    /// Runs a statement, and watches the cluster's executors meanwhile.
    pub(crate) fn run(
        &self,
        session: &Session,
        statement: &Statement,
        stop: &'static AtomicBool,
    ) -> anyhow::Result<(Answer, Watch)> {
        let count = self.0.as_ref().map(Client::count).transpose()?;
        let answer = session.run(statement, stop).map_err(failed)?;
        let watch = count.map(|count| count.watch(&answer)).transpose()?;
        Ok((answer, Watch(watch)))
    }

    /// The joins of an answer that was read to its end.
    pub(crate) fn joins(&self, answer: &Answer) -> anyhow::Result<Joins> {
        Ok(match &self.0 {
            Some(client) => client.joins(answer)?,
            None => answer.joins(),
        })
    }

    /// The error of an answer that failed; cancels it in the cluster.
    pub(crate) fn failed(&self, error: SessionError, answer: &Answer) -> anyhow::Error {
        let Some(client) = &self.0 else { return failed(error) };
        // Fails if the query is over already; the error is explained below.
        let _ = client.cancel(answer);
        if matches!(error, SessionError::Stopped | SessionError::TooLong { .. }) {
            return failed(error);
        }
        match client.explain(error) {
            ClusterError::Session(error) => failed(error),
            error => error.into(),
        }
    }
}

/// Watches the executors of an answer until it is dropped.
pub(crate) struct Watch(Option<ExecutorWatch>);

impl Watch {
    /// Whether the cluster failed and not the statement, which can then be run again.
    pub(crate) fn lost_an_executor(&self, error: &SessionError) -> bool {
        match (error, &self.0) {
            (SessionError::Abandoned, _) => true,
            (SessionError::Query(_), Some(watch)) if !error.is_of_the_query() => watch.lost(),
            _ => false,
        }
    }
}
