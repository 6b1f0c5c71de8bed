//! A worker process: answers what carries its cluster's token, and reads below its roots.

use std::net::{SocketAddr, TcpListener};
use std::num::NonZero;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion_distributed::{
    DistributedExt, DistributedTaskContext, Worker, WorkerPlanRewriteEvent,
    WorkerPlanRewriteEventResponse, WorkerQueryContext,
};
use http::header::AUTHORIZATION;
use tonic::service::InterceptorLayer;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Status};
use tower::layer::layer_fn;
use workahead_datafusion::{KeyExchangeExtension, WorkaheadCodec, WorkaheadOptions};
use workahead_sql::PeakPool;

use crate::channels::Channels;
use crate::guard::Roots;
use crate::keys::{Registry, Route, TaskKeys};
use crate::service::WorkerService;
use crate::tasks::Tasks;
use crate::{ClusterError, Token, settings};

/// Plans are requests, and one with the statistics of many files is long.
const REQUEST_BYTES_MAX: usize = 64 << 20;
/// Besides those that run tasks: answers to pings must not wait for a task's step.
const SERVICE_THREADS: usize = 1;

/// More threads than a worker has.
const THREADS_MAX: usize = 4096;

/// How often keys that nobody came for are looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// Options of a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The address it listens on.
    pub listen: SocketAddr,
    /// The token that every request must carry.
    pub token: Token,
    /// Threads that run tasks.
    pub threads: NonZero<usize>,
    /// Bytes for the joins, sorts and aggregates of all its tasks together.
    pub memory_limit: usize,
    /// Directory for spill files.
    pub directory: PathBuf,
    /// Directories whose files it reads.
    pub roots: Vec<PathBuf>,
    /// The time without an answer after which another process counts as dead.
    pub dead_after: Duration,
}

/// Runs a worker until it is stopped. `ready` is called with its address once it listens.
///
/// # Errors
/// When a directory or the port is unavailable, or the service ends.
pub fn worker(options: &WorkerOptions, ready: impl FnOnce(SocketAddr)) -> Result<(), ClusterError> {
    let roots = Roots::new(&options.roots)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(options.threads.get() + SERVICE_THREADS)
        .enable_all()
        .build()
        .map_err(ClusterError::Threads)?;
    let failed = |source| ClusterError::Listen { address: options.listen, source };
    let listener = TcpListener::bind(options.listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let mode = DiskManagerMode::Directories(vec![options.directory.clone()]);
    let memory_limit = options.memory_limit;
    let pool = PeakPool::of(Arc::new(GreedyMemoryPool::new(memory_limit)));
    let environment = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::clone(&pool) as _)
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode))
        .build_arc()
        .map_err(ClusterError::of_datafusion)?;
    workahead_sql::install_files(&environment);
    let keys = Arc::new(Registry::new(Arc::clone(&environment.memory_pool)));
    let sessions = Sessions {
        roots,
        channels: Channels::new(options.token.clone(), options.dead_after),
        keys: Arc::clone(&keys),
    };
    let threads = options.threads.get();
    let info = WorkerInfo { threads };
    let [tasks, swept] = [(); 2].map(|()| Arc::clone(&keys));
    let own =
        WorkerService { threads, memory_limit, keys, pool, environment: Arc::clone(&environment) };
    let worker = Worker::from_session_builder(move |query| {
        let sessions = sessions.clone();
        async move { sessions.of(query) }
    })
    .with_runtime_env(environment)
    .with_version(info.to_string());
    let service = worker.into_worker_server().max_decoding_message_size(REQUEST_BYTES_MAX);
    let token = options.token.clone();
    let ended = runtime.block_on(async move {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        ready(address);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP_INTERVAL).await;
                swept.sweep();
            }
        });
        Server::builder()
            .http2_keepalive_interval(Some(options.dead_after / 2))
            .http2_keepalive_timeout(Some(options.dead_after / 2))
            .layer(InterceptorLayer::new(move |request| admit(&token, request)))
            .layer(layer_fn(move |service| Tasks { service, keys: Arc::clone(&tasks) }))
            .add_service(service)
            .add_service(own)
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
            .await
            .map_err(|error| ClusterError::Stopped { why: error.to_string() })
    });
    // Tasks that still run belong to ended queries.
    runtime.shutdown_background();
    ended
}

/// Lets a request in that carries the token.
fn admit(token: &Token, request: Request<()>) -> Result<Request<()>, Status> {
    let header = request.metadata().get(AUTHORIZATION.as_str());
    match header {
        Some(header) if token.is_in(header.as_encoded_bytes()) => Ok(request),
        _ => Err(Status::unauthenticated("the request has not this cluster's token")),
    }
}

/// Makes the session of each stage that arrives.
#[derive(Clone)]
struct Sessions {
    roots: Roots,
    channels: Channels,
    keys: Arc<Registry>,
}

impl Sessions {
    fn of(self, query: WorkerQueryContext) -> Result<SessionState> {
        let WorkerQueryContext { mut builder, headers } = query;
        let config = builder.config().take().unwrap_or_default();
        let config = config.with_option_extension(WorkaheadOptions::default());
        let mut config = settings::apply(&headers, config)?;
        if let (Some(route), Some(task)) =
            (Route::of(&headers), config.get_extension::<DistributedTaskContext>())
        {
            let task = (task.task_index, task.task_count);
            let keys = TaskKeys::new(&self.keys, self.channels.clone(), route, task);
            config = config.with_extension(Arc::new(KeyExchangeExtension(Arc::new(keys))));
        }
        let config = config
            .with_distributed_channel_resolver(self.channels)
            .with_distributed_user_codec(WorkaheadCodec::default());
        let roots = self.roots;
        let config = config.with_distributed_worker_plan_rewrite_handler(
            move |event: WorkerPlanRewriteEvent<'_>| {
                roots.check(&event.plan)?;
                Ok(WorkerPlanRewriteEventResponse::new(event.plan))
            },
        );
        Ok(builder.with_config(config).build())
    }
}

/// A worker's description of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkerInfo {
    pub(crate) threads: usize,
}

impl WorkerInfo {
    /// The version whose workers understand each other.
    pub(crate) fn own_version() -> String {
        format!("workahead {}", env!("CARGO_PKG_VERSION"))
    }
}

impl std::fmt::Display for WorkerInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {} threads", Self::own_version(), self.threads)
    }
}

impl FromStr for WorkerInfo {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let rest = text.strip_prefix(&Self::own_version()).and_then(|rest| rest.strip_prefix(", "));
        let threads = rest.and_then(|rest| rest.strip_suffix(" threads"));
        let threads = threads.and_then(|threads| threads.parse().ok());
        // A client plans as many partitions: no process at that address may choose them freely.
        let threads = threads.filter(|threads| (1..=THREADS_MAX).contains(threads));
        Ok(Self { threads: threads.ok_or(())? })
    }
}
