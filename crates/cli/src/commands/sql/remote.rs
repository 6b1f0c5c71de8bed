//! `--cluster`: statements that a cluster's executors answer.

use std::num::NonZero;
use std::sync::atomic::AtomicBool;

use workahead_cluster::{Address, Client, ClientOptions, ClusterError, ExecutorWatch};
use workahead_sql::session::{Answer, Joiner, Joins, Session, SessionError, Statement};

use super::failed;
use crate::errors::WrongUse;

/// Who answers: a cluster, or nobody but this process.
pub(crate) struct Remote(Option<Client>);

impl Remote {
    /// This process answers.
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

    /// Runs a statement, whose answer is watched over.
    pub(crate) fn run(
        &self,
        session: &Session,
        statement: &Statement,
        stop: &'static AtomicBool,
    ) -> anyhow::Result<(Answer, Watched)> {
        let counted = self.0.as_ref().map(Client::count).transpose()?;
        let answer = session.run(statement, stop).map_err(failed)?;
        let watch = counted.map(|counted| counted.watch(&answer)).transpose()?;
        Ok((answer, Watched(watch)))
    }

    /// The joins of an answer that was read to its end.
    pub(crate) fn joins(&self, answer: &Answer) -> anyhow::Result<Joins> {
        Ok(match &self.0 {
            Some(client) => client.joins(answer)?,
            None => answer.joins(),
        })
    }

    /// What to say of an answer that breaks off; its cluster need not go on.
    pub(crate) fn failed(&self, error: SessionError, answer: &Answer) -> anyhow::Error {
        let Some(client) = &self.0 else { return failed(error) };
        // Where it is over already there is nothing to cancel, and why is told below.
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

/// An answer that is watched over while this lives.
pub(crate) struct Watched(Option<ExecutorWatch>);

impl Watched {
    /// Whether the same statement may do better: what failed was the cluster.
    pub(crate) fn lost_an_executor(&self, error: &SessionError) -> bool {
        match (error, &self.0) {
            (SessionError::Abandoned, _) => true,
            (SessionError::Query(_), Some(watch)) if !error.is_of_the_query() => watch.lost(),
            _ => false,
        }
    }
}
