//! The process that plans queries and places their tasks: Ballista's scheduler, in memory.

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
/// As executors have it.
const MESSAGE_BYTES_MAX: u32 = 256 << 20;
/// How often what waits is looked after.
const LOOK: Duration = Duration::from_millis(100);
/// How long a query's files stay after its end: clients are still reading the last stage's.
const FILES_S: u64 = 60;
/// How long a finished query is remembered: its counts are requested after the rows.
const JOBS_S: u64 = 300;

/// How a scheduler is.
#[derive(Debug, Clone)]
pub struct SchedulerOptions {
    /// What it listens on; port 0 for one that is free.
    pub listen: SocketAddr,
    /// How others reach it.
    pub host: String,
    /// An executor that was not heard of for so long is taken for dead, and its tasks are given to
    /// others.
    pub dead_after: Duration,
}

/// Runs a scheduler for good. `ready` is called with its address once it listens.
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
        let (state, settings) = made(options, port);
        let cluster =
            BallistaCluster::new(Arc::clone(&state.executors) as _, Arc::clone(&state.jobs) as _);
        let server: Server =
            create_scheduler(cluster, Arc::new(settings)).await.map_err(stopped)?;
        tokio::spawn(tend(server.clone(), state));
        ready(&Address::new(options.host.clone(), port));
        start_grpc_service_with_listener(listener, server).await.map_err(stopped)
    })
}

type Server = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// What a scheduler knows.
struct State {
    executors: Arc<Slots>,
    jobs: Arc<Jobs>,
}

/// Does for good what Ballista leaves undone. A query whose client has gone is cancelled. And tasks
/// are placed: Ballista does so when something happens, and where that is the end of a query that
/// held all slots, or an error, those that wait for a slot would wait for ever.
async fn tend(server: Server, State { executors, jobs }: State) {
    let mut clock = tokio::time::interval(LOOK);
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
            // News of no task: it changes nothing, and what waits is placed.
            let none = UpdateTaskStatusParams { executor_id: executor.id, task_status: Vec::new() };
            let _ = SchedulerGrpc::update_task_status(&server, Request::new(none)).await;
        }
    }
}

fn made(options: &SchedulerOptions, port: u16) -> (State, SchedulerConfig) {
    let dead_after_s = options.dead_after.as_secs().max(1);
    let settings = SchedulerConfig {
        external_host: options.host.clone(),
        bind_host: options.listen.ip().to_string(),
        bind_port: port,
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        // One executor would get all tasks of a stage that has as many as it has slots.
        task_distribution: TaskDistributionPolicy::RoundRobin,
        finished_job_data_clean_up_interval_seconds: FILES_S,
        finished_job_state_clean_up_interval_seconds: JOBS_S,
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

/// Sessions whose plans have a partition for every slot, unless the client said how many.
fn sessions(executors: Arc<dyn ClusterState>) -> SessionBuilder {
    Arc::new(move |config| {
        let told = config.options().extensions.get::<ClusterOptions>();
        let partitions = match told.map_or(0, |told| told.partitions) {
            0 => slots(executors.as_ref()),
            partitions => partitions,
        };
        default_session_builder(config.with_target_partitions(partitions.max(1)))
    })
}

fn slots(executors: &dyn ClusterState) -> usize {
    // In memory: it never waits.
    let known = executors.registered_executor_metadata().now_or_never().unwrap_or_default();
    known.iter().map(|executor| executor.specification.vcores as usize).sum()
}
