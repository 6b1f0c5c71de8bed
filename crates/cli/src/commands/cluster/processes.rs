//! The processes of a cluster: a scheduler, an executor.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use workahead_cluster::{Address, ExecutorOptions, SchedulerOptions};
use workahead_machine::{CpuSet, Machine, pin};

use crate::errors::WrongUse;
use crate::memory::Memory;
use crate::output;

const SCHEDULER_EXAMPLE: &str =
    "Example:\n  workahead cluster scheduler --listen 10.0.0.1:50050 --dead-after 20";
const EXECUTOR_EXAMPLE: &str = "Example:\n  workahead cluster executor \
    --scheduler df://10.0.0.1:50050 --listen 10.0.0.2 --slots 8 \\\n      \
    --memory-limit 24GB --spill-dir /scratch";

/// Heartbeats that may be lost before an executor is considered dead.
const HEARTBEATS: u64 = 5;
/// The share of the allowed memory for operators; exchanged batches are not charged.
const MEMORY_SHARE: f64 = 0.7;

/// The time after which a silent executor is considered dead.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct DeadAfter {
    /// Seconds without a heartbeat after which an executor's tasks are given to others
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    dead_after: NonZero<u16>,
}

impl DeadAfter {
    pub(crate) fn seconds(self) -> u64 {
        self.dead_after.get().into()
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = SCHEDULER_EXAMPLE)]
pub(crate) struct SchedulerArgs {
    /// Address to listen on; port 0 for any free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:50050")]
    listen: SocketAddr,
    /// Host name by which others reach it [default: the IP it listens on]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    #[command(flatten)]
    dead_after: DeadAfter,
    /// Exit when standard input ends, which means that the parent process has ended
    #[arg(long, hide = true)]
    with_parent: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXECUTOR_EXAMPLE)]
pub(crate) struct ExecutorArgs {
    /// URL of the scheduler, as it printed it
    #[arg(long, value_name = "URL")]
    scheduler: String,
    /// Address to listen on, at two free ports
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    listen: IpAddr,
    /// Host name by which others reach it [default: the IP it listens on]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Concurrent tasks [default: one for every CPU this process may use]
    #[arg(long, value_name = "N")]
    slots: Option<NonZero<u16>>,
    /// Run only on these CPUs: 0-3,8
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    cpus: Option<CpuSet>,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    dead_after: DeadAfter,
    /// Exit when standard input ends, which means that the parent process has ended
    #[arg(long, hide = true)]
    with_parent: bool,
}

/// A list of CPUs, as the kernel writes them.
pub(crate) fn cpus(text: &str) -> Result<CpuSet, String> {
    text.parse().map_err(|error: workahead_machine::Error| error.to_string())
}

/// Bytes for operators without `--memory-limit`.
pub(crate) fn default_memory_limit() -> anyhow::Result<usize> {
    let allowed = Machine::here().memory.allowed_bytes;
    let allowed = allowed.context("the size of the memory is unknown: give --memory-limit")?;
    Ok((allowed as f64 * MEMORY_SHARE) as usize)
}

pub(crate) fn scheduler(args: &SchedulerArgs) -> anyhow::Result<()> {
    if args.with_parent {
        exit_with_parent(None);
    }
    let options = SchedulerOptions {
        listen: args.listen,
        host: host(args.host.as_deref(), args.listen.ip())?,
        dead_after: Duration::from_secs(args.dead_after.seconds()),
    };
    workahead_cluster::scheduler(&options, |address| print_line(&address.to_string()))?;
    Ok(())
}

pub(crate) fn executor(args: ExecutorArgs) -> anyhow::Result<()> {
    let scheduler: Address = args.scheduler.parse()?;
    let host = host(args.host.as_deref(), args.listen)?;
    // Before threads are started: they inherit the affinity.
    let allowed = pin::affinity()?;
    let _pinned = args.cpus.as_ref().map(|cpus| pin::among(cpus, &allowed)).transpose()?;
    let (limit, directory) = args.memory.into_parts()?;
    let directory = directory.unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new().prefix("workahead-executor-").tempdir_in(&directory);
    let folder = folder.with_context(|| format!("can't write to {}", directory.display()))?;
    if args.with_parent {
        exit_with_parent(Some(folder.path().to_owned()));
    }
    let available = || std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let options = ExecutorOptions {
        scheduler,
        listen: args.listen,
        host,
        slots: args.slots.map_or_else(available, NonZero::from),
        memory_limit: limit.map_or_else(default_memory_limit, Ok)?,
        directory: folder.path().to_owned(),
        heartbeat: Duration::from_secs((args.dead_after.seconds() / HEARTBEATS).max(1)),
    };
    workahead_cluster::executor(&options, print_line)?;
    Ok(())
}

fn host(given: Option<&str>, listen: IpAddr) -> anyhow::Result<String> {
    match (given, listen) {
        (Some(host), _) => Ok(host.to_owned()),
        (None, ip) if ip.is_unspecified() => Err(WrongUse::error(format!(
            "{ip} stands for all addresses of this machine, and others can't reach it: add --host"
        ))),
        (None, IpAddr::V6(ip)) => Ok(format!("[{ip}]")),
        (None, ip) => Ok(ip.to_string()),
    }
}

/// Prints a line; a closed standard output does not stop the process.
fn print_line(line: &str) {
    let _ = output::text(line);
}

/// Exits once standard input ends, and removes this process's files. The parent holds the other
/// end, which the system closes however the parent ends.
fn exit_with_parent(folder: Option<PathBuf>) {
    std::thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = std::io::stdin().lock().read_to_end(&mut rest);
        if let Some(folder) = folder {
            let _ = std::fs::remove_dir_all(&folder);
            // The last executor removes the common folder.
            let _ = folder.parent().map(std::fs::remove_dir);
        }
        std::process::exit(0);
    });
}
