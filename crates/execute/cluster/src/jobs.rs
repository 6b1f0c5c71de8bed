//! Ballista's queries, and the clients that wait for them.
//!
//! A client learns its query's name from the query's first state, which Ballista sends at the end:
//! until then the query can't be cancelled. Here the first state is sent as soon as there is a
//! plan. A query whose client has gone would run on; it is detected by the closed channel of its
//! states.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ballista_core::error::Result;
use ballista_core::serde::protobuf::{JobStatus, job_status::Status};
use ballista_core::{JobId, JobStatusSubscriber};
use ballista_scheduler::cluster::memory::InMemoryJobState;
use ballista_scheduler::cluster::{JobState, JobStateEventStream};
use ballista_scheduler::state::execution_graph::ExecutionGraphBox;
use datafusion::prelude::{SessionConfig, SessionContext};

/// Queries in memory, and their clients.
pub(crate) struct Jobs {
    jobs: InMemoryJobState,
    clients: Mutex<HashMap<JobId, JobStatusSubscriber>>,
}

impl Jobs {
    pub(crate) fn new(jobs: InMemoryJobState) -> Self {
        Self { jobs, clients: Mutex::default() }
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<JobId, JobStatusSubscriber>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Running queries without a client; each is returned once.
    pub(crate) fn abandoned(&self) -> Vec<JobId> {
        let mut clients = self.clients();
        let gone = clients.extract_if(|_, client| client.is_closed());
        gone.map(|(job, _)| job).collect()
    }
}

fn is_over(status: &JobStatus) -> bool {
    matches!(status.status, Some(Status::Successful(_) | Status::Failed(_)))
}

#[async_trait::async_trait]
impl JobState for Jobs {
    async fn submit_job(
        &self,
        job: JobId,
        graph: &ExecutionGraphBox,
        client: Option<JobStatusSubscriber>,
    ) -> Result<()> {
        if let Some(client) = &client {
            // The channel has room: this is the first state.
            let _ = client.try_send(graph.status().clone());
            self.clients().insert(job.clone(), client.clone());
        }
        self.jobs.submit_job(job, graph, client).await
    }

    async fn save_job(&self, job: &JobId, graph: &ExecutionGraphBox) -> Result<()> {
        if is_over(graph.status()) {
            self.clients().remove(job);
        }
        self.jobs.save_job(job, graph).await
    }

    async fn remove_job(&self, job: &JobId) -> Result<()> {
        self.clients().remove(job);
        self.jobs.remove_job(job).await
    }

    fn accept_job(&self, job: &JobId, name: &str, queued_at: u64) -> Result<()> {
        self.jobs.accept_job(job, name, queued_at)
    }

    fn pending_job_number(&self) -> usize {
        self.jobs.pending_job_number()
    }

    async fn get_jobs(&self) -> Result<HashSet<JobId>> {
        self.jobs.get_jobs().await
    }

    async fn get_all_jobs(&self) -> Result<HashSet<JobId>> {
        self.jobs.get_all_jobs().await
    }

    async fn get_job_status(&self, job: &JobId) -> Result<Option<JobStatus>> {
        self.jobs.get_job_status(job).await
    }

    async fn get_execution_graph(&self, job: &JobId) -> Result<Option<ExecutionGraphBox>> {
        self.jobs.get_execution_graph(job).await
    }

    async fn fail_unscheduled_job(&self, job: &JobId, reason: String) -> Result<()> {
        self.jobs.fail_unscheduled_job(job, reason).await
    }

    async fn try_acquire_job(&self, job: &JobId) -> Result<Option<ExecutionGraphBox>> {
        self.jobs.try_acquire_job(job).await
    }

    async fn job_state_events(&self) -> Result<JobStateEventStream> {
        self.jobs.job_state_events().await
    }

    async fn create_or_update_session(
        &self,
        session: &str,
        config: &SessionConfig,
    ) -> Result<Arc<SessionContext>> {
        self.jobs.create_or_update_session(session, config).await
    }

    async fn remove_session(&self, session: &str) -> Result<()> {
        self.jobs.remove_session(session).await
    }

    fn produce_config(&self) -> SessionConfig {
        self.jobs.produce_config()
    }
}
