//! `--cluster`: statements that run on a cluster, or here where that is as fast.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use indicatif::{HumanBytes, ProgressBar};
use workahead_cluster::{Client, ClientOptions, ClusterError, Watch, WorkerState};
use workahead_sql::session::{Answer, Joins, Options, Session, SessionError};

use super::failed;
use crate::commands::cluster::cluster_url;
use crate::errors::WrongUse;
use crate::progress;

/// The cluster that runs the statements; none if this process does.
pub(crate) struct Remote(Option<Client>);

/// A line that shows what the workers are doing.
pub(crate) struct WorkersProgress {
    _watch: Watch,
    bar: ProgressBar,
}

impl Drop for WorkersProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

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
        stop: &'static AtomicBool,
    ) -> anyhow::Result<(Self, Session)> {
        let url = cluster_url(url).map_err(|error| WrongUse::error(format!("{error:#}")))?;
        let here = here.clone();
        let options = ClientOptions { url, here, dead_after, stop };
        let (client, session) = Client::session(&options)?;
        Ok((Self(Some(client)), session))
    }

    /// The URL without its token, for reports.
    pub(crate) fn url(&self) -> Option<String> {
        self.0.as_ref().map(|client| client.url().public())
    }

    /// Looks which workers are there, before a statement.
    pub(crate) fn refresh(&self) -> anyhow::Result<()> {
        if let Some(client) = &self.0 {
            client.refresh()?;
        }
        Ok(())
    }

    /// Shows on a terminal what the workers are doing, until that is dropped.
    pub(crate) fn progress(&self) -> Option<WorkersProgress> {
        let client = self.0.as_ref()?;
        let bar = progress::spinner()?;
        let shown = bar.clone();
        let watch = client.watch(move |workers| {
            let states: Vec<_> = workers.iter().filter_map(|worker| worker.state).collect();
            let sum = |of: fn(&WorkerState) -> u64| states.iter().map(of).sum::<u64>();
            shown.set_message(format!(
                "{} workers, {} tasks, {} of {} reserved, {} spilled",
                states.len(),
                sum(|state| state.tasks),
                HumanBytes(sum(|state| state.reserved_bytes)),
                HumanBytes(sum(|state| state.limit_bytes)),
                HumanBytes(sum(|state| state.spilled_bytes)),
            ));
        });
        Some(WorkersProgress { _watch: watch, bar })
    }

    /// The joins of an answer that was read to its end.
    pub(crate) fn joins(&self, answer: &Answer) -> Joins {
        self.0.as_ref().map_or_else(|| answer.joins(), |client| client.joins(answer))
    }

    /// The error of an answer that failed, and whether it is the cluster's: the statement can then
    /// be run again on those that are left.
    pub(crate) fn failed(&self, error: SessionError) -> (anyhow::Error, bool) {
        let Some(client) = &self.0 else { return (failed(error), false) };
        match client.explain(error) {
            ClusterError::Session(error) => (failed(error), false),
            error => (error.into(), client.has_workers()),
        }
    }
}
