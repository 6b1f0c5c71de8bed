//! The client: a session whose queries run in a cluster.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::execution_plans::DistributedQueryExec;
use ballista_core::extension::SessionStateExt;
use ballista_core::serde::protobuf::operator_metric::Metric;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::protobuf::{
    CancelJobParams, ExecutorStoppedParams, GetJobMetricsParams, OperatorWithMetrics,
};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion_proto::protobuf::LogicalPlanNode;
use workahead_datafusion::WorkaheadOptions;
use workahead_sql::session::{Answer, Joiner, Joins, Session, SessionError};

use crate::executor_watch::ExecutorCount;
use crate::session::config;
use crate::{Address, ClusterError, ClusterOptions, push_semi_join, readiness};

/// The client reads rows and the schemas of tables; the executors do the work.
const THREADS: NonZero<usize> = NonZero::new(2).unwrap();
/// The scheduler answers requests about a query from memory.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// A gauge that our joins have and DataFusion's do not.
const OUR_GAUGE: &str = "table_bytes";

/// Options of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The scheduler's address.
    pub address: Address,
    /// The implementation of hash joins in the executors.
    pub joiner: Joiner,
    /// Partitions of plans; by default the number of the cluster's slots.
    pub partitions: Option<NonZero<usize>>,
}

/// A connection to a cluster.
#[derive(Debug, Clone)]
pub struct Client {
    address: Address,
}

impl Client {
    /// Of the scheduler at an address. It does not connect yet.
    #[must_use]
    pub fn new(address: Address) -> Self {
        Self { address }
    }

    /// A session whose queries are planned by the scheduler and executed by its executors. Files
    /// of tables are read there too: their paths must mean the same everywhere.
    ///
    /// # Errors
    /// When no scheduler answers, or it has no executors.
    pub fn session(options: &ClientOptions) -> Result<(Self, Session), ClusterError> {
        let client = Self::new(options.address.clone());
        client.check()?;
        let mut config = config();
        let extensions = &mut config.options_mut().extensions;
        if let Some(cluster) = extensions.get_mut::<ClusterOptions>() {
            cluster.partitions = options.partitions.map_or(0, NonZero::get);
        }
        if let Some(joins) = extensions.get_mut::<WorkaheadOptions>() {
            joins.enabled = options.joiner == Joiner::Ours;
        }
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_default_features()
            .with_optimizer_rules(push_semi_join::rules())
            .build();
        let state = state.upgrade_for_ballista(client.address.http());
        let state = state.map_err(ClusterError::of_datafusion)?;
        let session = Session::over(SessionContext::new_with_state(state), THREADS)?;
        Ok((client, session))
    }

    fn check(&self) -> Result<(), ClusterError> {
        match readiness::executors(&self.address)? {
            0 => Err(ClusterError::NoExecutors { address: self.address.clone() }),
            _ => Ok(()),
        }
    }

    /// Counts the executors before a query, for [`ExecutorCount::watch`].
    ///
    /// # Errors
    /// When the scheduler does not answer.
    pub fn count(&self) -> Result<ExecutorCount, ClusterError> {
        ExecutorCount::now(self.address.clone())
    }

    /// The joins that the executors did for an answer, after its last row.
    ///
    /// # Errors
    /// When the scheduler does not answer.
    pub fn joins(&self, answer: &Answer) -> Result<Joins, ClusterError> {
        let Some(job_id) = job(answer.plan()) else { return Ok(answer.joins()) };
        let counted = self.call(async |mut scheduler| {
            scheduler.get_job_metrics(GetJobMetricsParams { job_id }).await
        })?;
        let mut joins = Joins::default();
        let operators = counted.stages.iter().flat_map(|stage| &stage.operators);
        operators.for_each(|operator| count(operator, &mut joins));
        Ok(joins)
    }

    /// Cancels a query.
    ///
    /// # Errors
    /// When the scheduler can't be reached.
    pub fn cancel(&self, answer: &Answer) -> Result<(), ClusterError> {
        let Some(job_id) = job(answer.plan()) else { return Ok(()) };
        self.call(async |mut scheduler| scheduler.cancel_job(CancelJobParams { job_id }).await)?;
        Ok(())
    }

    /// Reports to the scheduler that an executor has ended, so that it need not wait for missing
    /// heartbeats.
    ///
    /// # Errors
    /// When the scheduler can't be reached.
    pub fn executor_lost(&self, name: &str, reason: &str) -> Result<(), ClusterError> {
        let lost =
            ExecutorStoppedParams { executor_id: name.to_owned(), reason: reason.to_owned() };
        self.call(async |mut scheduler| scheduler.executor_stopped(lost).await)?;
        Ok(())
    }

    /// The error of a failed query, with the state of the cluster taken into account.
    #[must_use]
    pub fn explain(&self, error: SessionError) -> ClusterError {
        let address = self.address.clone();
        let inner = match &error {
            SessionError::Abandoned => match self.check() {
                Ok(()) => return ClusterError::ExecutorLost { address },
                Err(ClusterError::Unreachable { .. }) => {
                    return ClusterError::SchedulerLost { address };
                }
                Err(error) => return error,
            },
            SessionError::Query(inner) => inner,
            _ => return error.into(),
        };
        if error.is_of_the_query() {
            return error.into();
        }
        match self.check() {
            Err(ClusterError::Unreachable { address, .. }) => {
                ClusterError::SchedulerLost { address }
            }
            Err(none @ ClusterError::NoExecutors { .. }) => none,
            _ => ClusterError::Query(without_layers(&inner.strip_backtrace())),
        }
    }

    fn call<T, F>(&self, request: F) -> Result<T, ClusterError>
    where
        F: AsyncFnOnce(Scheduler) -> Result<tonic::Response<T>, tonic::Status>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ClusterError::Threads)?;
        let lost = || ClusterError::SchedulerLost { address: self.address.clone() };
        runtime.block_on(async {
            let call = async {
                let scheduler = SchedulerGrpcClient::connect(self.address.http()).await;
                let answer = request(scheduler.map_err(|_| lost())?).await;
                let answer = answer.map_err(|status| ClusterError::Query(status.message().into()));
                Ok(answer?.into_inner())
            };
            tokio::time::timeout(REQUEST_TIMEOUT, call).await.unwrap_or_else(|_| Err(lost()))
        })
    }
}

type Scheduler = SchedulerGrpcClient<tonic::transport::Channel>;

/// The name of a query, once the scheduler has named it.
fn job(plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
    match plan.downcast_ref::<DistributedQueryExec<LogicalPlanNode>>() {
        Some(query) => query.job_id().map(|id| id.to_string()),
        None => plan.children().into_iter().find_map(job),
    }
}

fn count(operator: &OperatorWithMetrics, joins: &mut Joins) {
    let metrics = || operator.metrics.iter().filter_map(|metric| metric.metric.as_ref());
    // The names are those of the scheduler's plan, with DataFusion's joins.
    let named = ["HashJoinExec", "SortMergeJoinExec", "WorkaheadJoinExec"];
    if !named.contains(&operator.operator_type.as_str()) {
        return;
    }
    if !metrics().any(|metric| matches!(metric, Metric::Gauge(gauge) if gauge.name == OUR_GAUGE)) {
        joins.stock += 1;
        return;
    }
    joins.ours += 1;
    let sum = |of: fn(&Metric) -> Option<u64>| metrics().filter_map(of).sum::<u64>() as usize;
    let files = sum(|metric| match metric {
        Metric::SpillCount(files) => Some(*files),
        _ => None,
    });
    joins.spilled += usize::from(files > 0);
    joins.spill_files += files;
    joins.spilled_bytes += sum(|metric| match metric {
        Metric::SpilledBytes(bytes) => Some(*bytes),
        _ => None,
    });
}

/// Ballista's message without the prefixes that every task's error has.
fn without_layers(text: &str) -> String {
    let mut rest = text;
    for layer in ["Execution error: ", "DataFusion error: "] {
        rest = rest.strip_prefix(layer).unwrap_or(rest);
    }
    rest.to_owned()
}
