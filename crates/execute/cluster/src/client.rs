//! The client: a session whose queries run on the workers, or here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::prelude::SessionContext;
use datafusion_distributed::{
    BytesCounterMetric, DistributedExec, DistributedExt, DistributedMetricsFormat,
    SessionStateBuilderExt, rewrite_distributed_plan_with_metrics,
};
use workahead_datafusion::{WorkaheadCodec, WorkaheadOptions};
use workahead_sql::session::{
    self, Answer, Environment, Joiner, Joins, Options, Session, SessionError, environment,
};

use crate::channels::Channels;
use crate::planner::ChoosingPlanner;
use crate::service::WorkerState;
use crate::workers::{Alive, Resolver, Workers};
use crate::{ClusterError, ClusterOptions, ClusterUrl};

/// Build sides up to this size are sent to every worker instead of both sides being exchanged, and
/// up to this part of the least memory limit of a worker.
const BROADCAST_BYTES: usize = 64 << 20;
const BROADCAST_PART: usize = 8;
/// Taken for a row where only the number of rows is estimated, as of a join's output.
const ROW_BYTES: usize = 64;
/// Received bytes that wait for an operator, from each worker that sends to a task, are at most
/// this part of a worker's limit.
const RECEIVED_PART: usize = 32;
const RECEIVED_BYTES: usize = 64 << 20;
const WATCH_INTERVAL: Duration = Duration::from_millis(500);
/// The time for the counts of a query that has ended.
const COUNTS_TIMEOUT: Duration = Duration::from_secs(5);
/// How often it looks whether it has to stop.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Options of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The workers.
    pub url: ClusterUrl,
    /// For what runs here; its implementation of joins is that of the workers too.
    pub here: Options,
    /// The time without an answer after which a worker counts as dead.
    pub dead_after: Duration,
    /// Once it is set, no worker is waited for.
    pub stop: &'static AtomicBool,
}

/// The state of a worker, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its current work; `None` if it does not answer.
    pub state: Option<WorkerState>,
}

/// A connection to a cluster.
pub struct Client {
    workers: Arc<Workers>,
    runtime: tokio::runtime::Runtime,
    stop: &'static AtomicBool,
}

/// Waits until a client has to stop.
async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// A look at the workers; ends when it is dropped.
#[derive(Debug)]
pub struct Watch(tokio::task::JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Client {
    /// A session whose queries run on the workers, or here where that is as fast. Files have the
    /// same paths everywhere.
    ///
    /// # Errors
    /// When no worker answers, one is of another version, or it has to stop.
    pub fn session(options: &ClientOptions) -> Result<(Self, Session), ClusterError> {
        let channels = Channels::new(options.url.token().clone(), options.dead_after);
        let workers = Arc::new(Workers::new(options.url.clone(), channels.clone()));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(ClusterError::Threads)?;
        let client = Self { workers: Arc::clone(&workers), runtime, stop: options.stop };
        let alive = client.ask()?;
        let least_limit = client.least_limit()?;
        let each = alive.iter().map(|worker| worker.threads).max().unwrap_or(1);
        // Stages are cut where rows are repartitioned, which one partition never needs.
        let partitions = options.here.threads.get().max(each).max(2);
        let mut config = session::config()
            .with_option_extension(WorkaheadOptions::default())
            .with_option_extension(ClusterOptions::default())
            .with_target_partitions(partitions)
            .with_distributed_worker_resolver(Resolver(Arc::clone(&workers)))
            .with_distributed_channel_resolver(channels)
            .with_distributed_user_codec(WorkaheadCodec::default());
        let optimizer = &mut config.options_mut().optimizer;
        let broadcast_bytes = least_limit
            .map_or(BROADCAST_BYTES, |limit| BROADCAST_BYTES.min(limit / BROADCAST_PART));
        optimizer.hash_join_single_partition_threshold = broadcast_bytes;
        optimizer.hash_join_single_partition_threshold_rows = broadcast_bytes / ROW_BYTES;
        if let Some(limit) = least_limit {
            let budget = RECEIVED_BYTES.min(limit / RECEIVED_PART);
            config
                .set_distributed_worker_connection_buffer_budget_bytes(budget)
                .map_err(ClusterError::of_datafusion)?;
        }
        if alive.iter().all(|worker| worker.address.ip().is_loopback()) {
            // Packing costs more than memory.
            config.set_distributed_compression(None).map_err(ClusterError::of_datafusion)?;
        }
        if let Some(joins) = config.options_mut().extensions.get_mut::<WorkaheadOptions>() {
            joins.enabled = options.here.joiner == Joiner::Ours;
        }
        let Environment { runtime, spill_folder } = environment(&options.here)?;
        let mut builder = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_distributed_planner();
        let distributed = builder.query_planner().take().expect("it was just set");
        let threads = options.here.threads.get();
        let planner = ChoosingPlanner { workers, distributed, partitions, threads };
        let state = builder.with_query_planner(Arc::new(planner)).build();
        let context = SessionContext::new_with_state(state);
        let session = Session::over(context, options.here.threads, spill_folder)?;
        Ok((client, session))
    }

    /// The cluster.
    #[must_use]
    pub fn url(&self) -> &ClusterUrl {
        &self.workers.url
    }

    /// Which workers of a cluster answer.
    ///
    /// # Errors
    /// When none does, or one is of another version.
    pub fn status(
        url: &ClusterUrl,
        dead_after: Duration,
    ) -> Result<Vec<WorkerStatus>, ClusterError> {
        let channels = Channels::new(url.token().clone(), dead_after);
        let workers = Workers::new(url.clone(), channels);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(ClusterError::Threads)?.block_on(async {
            workers.ask().await?;
            let states = workers.states().await;
            let status = |address| {
                let answered = states.iter().find(|worker| worker.address == address);
                WorkerStatus { address, state: answered.and_then(|worker| worker.state) }
            };
            Ok(url.addresses().into_iter().map(status).collect())
        })
    }

    /// Shows twice a second what the workers that were there before a query are doing, until the
    /// watch is dropped.
    #[must_use]
    pub fn watch(&self, show: impl Fn(&[WorkerStatus]) + Send + Sync + 'static) -> Watch {
        let workers = Arc::clone(&self.workers);
        Watch(self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(WATCH_INTERVAL).await;
                show(&workers.states().await);
            }
        }))
    }

    /// Waits for what workers answer, until it has to stop.
    fn wait<T>(&self, answers: impl Future<Output = T>) -> Result<T, ClusterError> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = stopped(self.stop) => Err(SessionError::Stopped.into()),
                answers = answers => Ok(answers),
            }
        })
    }

    /// The least memory limit of a worker.
    fn least_limit(&self) -> Result<Option<usize>, ClusterError> {
        let states = self.wait(self.workers.states())?;
        let limits = states.iter().filter_map(|worker| Some(worker.state?.limit_bytes as usize));
        Ok(limits.min())
    }

    fn ask(&self) -> Result<Vec<Alive>, ClusterError> {
        self.wait(self.workers.ask())?
    }

    /// Asks the workers who of them is there, before a query.
    ///
    /// # Errors
    /// When no worker answers, or it has to stop.
    pub fn refresh(&self) -> Result<usize, ClusterError> {
        Ok(self.ask()?.len())
    }

    /// Asks all workers; whether one that was there before a query is gone.
    fn has_lost_a_worker(&self) -> bool {
        let before = self.workers.alive();
        let now = self.ask().unwrap_or_default();
        before.iter().any(|worker| !now.contains(worker))
    }

    /// Whether any worker answered when they were last asked.
    #[must_use]
    pub fn has_workers(&self) -> bool {
        !self.workers.alive().is_empty()
    }

    /// The joins of an answer, after its last row.
    #[must_use]
    pub fn joins(&self, answer: &Answer) -> Joins {
        let Some(plan) = distributed(answer.plan()) else { return answer.joins() };
        let counted = self.wait(async {
            let counts =
                rewrite_distributed_plan_with_metrics(plan, DistributedMetricsFormat::Aggregated);
            tokio::time::timeout(COUNTS_TIMEOUT, counts).await
        });
        let counted = counted.ok().and_then(Result::ok).and_then(Result::ok);
        counted.map_or_else(Joins::default, |plan| Joins {
            exchanged_bytes: exchanged_bytes(&plan),
            ..Joins::of(&plan)
        })
    }

    /// The error of a failed query, with the state of the cluster taken into account. After
    /// [`ClusterError::WorkerLost`] the query can be run on those that were just found, if any.
    #[must_use]
    pub fn explain(&self, error: SessionError) -> ClusterError {
        let url = self.workers.url.clone();
        match error {
            SessionError::Query(_)
                if !error.is_of_the_query()
                    && (self.has_lost_a_worker() || is_of_a_connection(&error)) =>
            {
                let dead_after = self.workers.channels.dead_after();
                ClusterError::WorkerLost { url, dead_after }
            }
            error => error.into(),
        }
    }
}

/// Whether a connection between two processes broke, and not a value of a query. A worker that has
/// no time for pings is taken for dead by another one, and answers the client's next request. What
/// a worker says of it comes to the client as a text.
fn is_of_a_connection(error: &SessionError) -> bool {
    // As tonic begins them, or shows them within a status.
    let words = ["h2 protocol error: ", "message: \"transport error\"", "message: \"h2 protocol"];
    let text = error.to_string();
    // These show the value that they could not read.
    let of_values = ["Cast error", "Parser error"];
    let has = |words: &&str| text.contains(words);
    words.iter().any(has) && !of_values.iter().any(has)
}

/// Bytes that exchanges of a plan received from other processes.
fn exchanged_bytes(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let metrics = plan.metrics().unwrap_or_default();
    let bytes = metrics.iter().filter_map(|metric| match metric.value() {
        MetricValue::Custom { value, .. } => value.as_any().downcast_ref::<BytesCounterMetric>(),
        _ => None,
    });
    // A plan's own bytes are counted in its root, which is not an exchange.
    let own: usize = match plan.name().starts_with("Network") {
        true => bytes.map(BytesCounterMetric::value).sum(),
        false => 0,
    };
    own + plan.children().into_iter().map(exchanged_bytes).sum::<usize>()
}

/// The part of a plan that runs on workers.
fn distributed(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let mut found = None;
    let walked = plan.apply(|node| {
        if node.is::<DistributedExec>() {
            found = Some(Arc::clone(node));
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.ok().and(found)
}

#[cfg(test)]
mod tests {
    use datafusion::error::DataFusionError;

    use super::*;

    #[test]
    fn a_broken_connection_is_not_a_value_that_says_so() {
        let of = |says: &str| {
            let error = DataFusionError::External(says.to_owned().into());
            is_of_a_connection(&SessionError::Query(error))
        };
        assert!(of("h2 protocol error: error reading a body from connection: broken pipe"));
        assert!(of("status: Unavailable, message: \"transport error\", details: []"));
        assert!(!of("Arrow error: Cast error: Cannot cast 'h2 protocol error: x' to Int32"));
        assert!(!of("Parser error: Error parsing timestamp from 'h2 protocol error: x': no date"));
        assert!(!of("Resources exhausted: transport"));
    }
}
