//! The scheduler process, which plans queries and places their tasks: Ballista's, in memory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::serde::protobuf::UpdateTaskStatusParams;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpc;
use ballista_core::utils::default_session_builder;
use ballista_scheduler::cluster::memory::InMemoryJobState;
use ballista_scheduler::cluster::{BallistaCluster, ClusterState};
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use ballista_scheduler::scheduler_server::{SchedulerServer, SessionBuilder};
use ballista_scheduler::state::session_manager::share_file_statistics_cache;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use futures::FutureExt;
use tonic::Request;

use crate::jobs::Jobs;
use crate::session::{codec, config};
use crate::slots::Slots;
use crate::{Address, ClusterError, ClusterOptions};

/// Planning is most of its work, and some plans are deep.
const STACK_BYTES: usize = 16 << 20;
const THREADS: usize = 2;
/// As in executors.
const MESSAGE_BYTES_MAX: u32 = 256 << 20;
/// The interval at which waiting tasks are placed.
const PLACING_INTERVAL: Duration = Duration::from_millis(100);
/// How long a query's files are kept after its end: clients still read those of the last stage.
const KEEP_FILES_S: u64 = 60;
/// How long a finished query's state is kept: its metrics are requested after the rows.
const KEEP_JOBS_S: u64 = 300;

/// Options of a scheduler.
#[derive(Debug, Clone)]
pub struct SchedulerOptions {
    /// The address it listens on; port 0 for any free one.
    pub listen: SocketAddr,
    /// The host name by which others reach it.
    pub host: String,
    /// An executor without a heartbeat for this long is considered dead, and its tasks are given to
    /// others.
    pub dead_after: Duration,
}

/// Runs a scheduler until it fails. `ready` is called with its address once it listens.
///
/// # Errors
/// When it can't listen, or its server ends.
pub fn scheduler(
    options: &SchedulerOptions,
    ready: impl FnOnce(&Address),
) -> Result<(), ClusterError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .map_err(ClusterError::Threads)?;
    runtime.block_on(async {
        let failed = |source| ClusterError::Listen { address: options.listen, source };
        let listener = tokio::net::TcpListener::bind(options.listen).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let stopped = |error| ClusterError::stopped("scheduler", error);
        let (state, settings) = configure(options, port);
        let cluster =
            BallistaCluster::new(Arc::clone(&state.executors) as _, Arc::clone(&state.jobs) as _);
        let server: Server =
            create_scheduler(cluster, Arc::new(settings)).await.map_err(stopped)?;
        tokio::spawn(maintain(server.clone(), state));
        ready(&Address::new(options.host.clone(), port));
        start_grpc_service_with_listener(listener, server).await.map_err(stopped)
    })
}

type Server = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// The executors and queries of a scheduler.
struct State {
    executors: Arc<Slots>,
    jobs: Arc<Jobs>,
}

/// Cancels queries whose clients have gone, and places tasks. Ballista places them only on events,
/// and not on all: after the end of a query that held all slots, or after an error, the tasks that
/// wait for a slot would wait for ever.
async fn maintain(server: Server, State { executors, jobs }: State) {
    let mut clock = tokio::time::interval(PLACING_INTERVAL);
    loop {
        clock.tick().await;
        for job in jobs.abandoned() {
            // It fails only when the server has stopped.
            let _ = server.cancel_job(job).await;
        }
        if server.running_job_number() == 0 {
            continue;
        }
        if let Some(executor) = executors.registered_executor_metadata().await.pop() {
            // An empty update changes no task, and places those that wait.
            let none = UpdateTaskStatusParams { executor_id: executor.id, task_status: Vec::new() };
            let _ = SchedulerGrpc::update_task_status(&server, Request::new(none)).await;
        }
    }
}

fn configure(options: &SchedulerOptions, port: u16) -> (State, SchedulerConfig) {
    let dead_after_s = options.dead_after.as_secs().max(1);
    let settings = SchedulerConfig {
        external_host: options.host.clone(),
        bind_host: options.listen.ip().to_string(),
        bind_port: port,
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        // One executor would get all tasks of a stage that has as many as it has slots.
        task_distribution: TaskDistributionPolicy::RoundRobin,
        finished_job_data_clean_up_interval_seconds: KEEP_FILES_S,
        finished_job_state_clean_up_interval_seconds: KEEP_JOBS_S,
        grpc_server_max_decoding_message_size: MESSAGE_BYTES_MAX,
        grpc_server_max_encoding_message_size: MESSAGE_BYTES_MAX,
        grpc_client_max_message_size: MESSAGE_BYTES_MAX,
        executor_timeout_seconds: dead_after_s,
        expire_dead_executor_interval_seconds: 1,
        no_executors_grace_period_seconds: dead_after_s,
        override_config_producer: Some(Arc::new(config)),
        override_physical_codec: Some(codec()),
        ..SchedulerConfig::default()
    };
    let executors = Arc::new(Slots::default());
    let sessions = share_file_statistics_cache(sessions(Arc::clone(&executors) as _));
    let jobs = InMemoryJobState::new(settings.scheduler_id.clone(), sessions, Arc::new(config));
    (State { executors, jobs: Arc::new(Jobs::new(jobs)) }, settings)
}

/// Sessions whose plans have a partition per slot, unless the client sets their number.
fn sessions(executors: Arc<dyn ClusterState>) -> SessionBuilder {
    Arc::new(move |config| {
        let options = config.options().extensions.get::<ClusterOptions>();
        let partitions = match options.map_or(0, |options| options.partitions) {
            0 => slots(executors.as_ref()),
            partitions => partitions,
        };
        default_session_builder(config.with_target_partitions(partitions.max(1)))
    })
}

fn slots(executors: &dyn ClusterState) -> usize {
    // The state is in memory: the future is ready.
    let known = executors.registered_executor_metadata().now_or_never().unwrap_or_default();
    known.iter().map(|executor| executor.specification.vcores as usize).sum()
}
