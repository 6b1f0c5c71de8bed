//! An executor process: Ballista's executor with our engine, its memory and its files.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ballista_core::RuntimeProducer;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::BallistaError;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::health::ExecutorHealth;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;

use crate::session::{codec, config};
use crate::{Address, ClusterError, Engine, readiness};

/// For messages, shuffles and heartbeats; tasks have threads of their own.
const SERVICE_THREADS: usize = 2;
/// The interval at which registration with the scheduler is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// The first batches of a task need this much.
const TASK_BYTES_MIN: usize = 1 << 20;
/// A plan with the statistics of many files can exceed Ballista's default of 16 MiB.
const MESSAGE_BYTES_MAX: u32 = 256 << 20;

/// Options of an executor.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// Its scheduler.
    pub scheduler: Address,
    /// The address it listens on, at two free ports.
    pub listen: IpAddr,
    /// The host name by which others reach it.
    pub host: String,
    /// Concurrent tasks.
    pub slots: NonZero<usize>,
    /// Bytes for the joins, sorts and aggregates of all its tasks, in equal shares.
    pub memory_limit: usize,
    /// Directory for shuffle and spill files.
    pub directory: PathBuf,
    /// The interval of its heartbeats.
    pub heartbeat: Duration,
}

/// Runs an executor until it is stopped. `ready` is called with its name once it is registered.
///
/// # Errors
/// When the scheduler can't be reached, a directory or port is unavailable, or a service ends.
pub fn executor(options: &ExecutorOptions, ready: impl FnOnce(&str)) -> Result<(), ClusterError> {
    let slots = options.slots.get();
    if options.memory_limit / slots < TASK_BYTES_MIN {
        return Err(ClusterError::Memory { bytes: options.memory_limit, slots });
    }
    // Any number will do: this may be the first.
    readiness::executors(&options.scheduler)?;
    let spill = options.directory.join("spill");
    let failed = |source| ClusterError::Directory { path: options.directory.clone(), source };
    std::fs::create_dir_all(&spill).map_err(failed)?;
    let health = ExecutorHealth::new();
    let process = process(options, &spill, health.clone())?;
    let name = process.executor_id.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(SERVICE_THREADS)
        .enable_all()
        .build()
        .map_err(ClusterError::Threads)?;
    let ended = runtime.block_on(async {
        let mut running = std::pin::pin!(start_executor_process(Arc::new(process)));
        loop {
            tokio::select! {
                ended = &mut running => {
                    let why = "a service ended before the executor was registered".to_owned();
                    return ended.and(Err(BallistaError::General(why)));
                }
                () = tokio::time::sleep(CHECK_INTERVAL) => if health.is_ready() { break },
            }
        }
        ready(&name);
        running.await
    });
    // Tasks that still run belong to ended queries.
    runtime.shutdown_background();
    ended.map_err(|error| ClusterError::stopped("executor", error))
}

fn process(
    options: &ExecutorOptions,
    spill: &Path,
    health: ExecutorHealth,
) -> Result<ExecutorProcessConfig, ClusterError> {
    let spill = spill.to_owned();
    let runtime: RuntimeProducer = Arc::new(move |_| {
        let mode = DiskManagerMode::Directories(vec![spill.clone()]);
        let disk = DiskManagerBuilder::default().with_mode(mode);
        RuntimeEnvBuilder::new().with_disk_manager_builder(disk).build_arc()
    });
    let [port, grpc_port] = free_ports(options.listen)?;
    Ok(ExecutorProcessConfig {
        bind_host: options.listen.to_string(),
        external_host: Some(options.host.clone()),
        port,
        grpc_port,
        scheduler_host: options.scheduler.host().to_owned(),
        scheduler_port: options.scheduler.port(),
        vcores: options.slots.get(),
        // Polling would add its pause to every stage.
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        work_dir: Some(options.directory.to_string_lossy().into_owned()),
        executor_heartbeat_interval_seconds: options.heartbeat.as_secs().max(1),
        grpc_max_decoding_message_size: MESSAGE_BYTES_MAX,
        grpc_max_encoding_message_size: MESSAGE_BYTES_MAX,
        // Ballista gives each task its share by slots.
        memory_pool_size: Some(options.memory_limit as u64),
        override_execution_engine: Some(Arc::new(Engine::default())),
        override_runtime_producer: Some(runtime),
        override_config_producer: Some(Arc::new(config)),
        override_physical_codec: Some(codec()),
        health,
        ..ExecutorProcessConfig::default()
    })
}

/// Ballista reports the ports to the scheduler before it listens on them. Both are bound here at
/// once, so that they differ.
fn free_ports(listen: IpAddr) -> Result<[u16; 2], ClusterError> {
    let address = SocketAddr::new(listen, 0);
    let bound = || {
        let listener = TcpListener::bind(address)?;
        let port = listener.local_addr()?.port();
        Ok((listener, port))
    };
    let failed = |source| ClusterError::Listen { address, source };
    let (one, two) = (bound().map_err(failed)?, bound().map_err(failed)?);
    Ok([one.1, two.1])
}
