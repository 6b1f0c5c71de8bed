//! A worker of a cluster, and what is known of workers.

use std::io::{BufRead, Read};
use std::net::SocketAddr;
use std::num::NonZero;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use indicatif::HumanBytes;
use serde_json::json;
use workahead_cluster::{Client, ClusterUrl, Token, WorkerOptions, WorkerStatus};
use workahead_machine::{CpuSet, Machine, pin, pipe};
use workahead_sql::LockedFolder;

use crate::errors::WrongUse;
use crate::memory::Memory;
use crate::{interrupt, output};

const EXAMPLE: &str = "Example:\n  workahead cluster worker --listen 10.0.0.2:50050 \
    --token-file token --data /data \\\n      --threads 8 --memory-limit 24GB --spill-dir /scratch";

/// The share of the allowed memory for operators; exchanged batches are charged, but never refused.
const MEMORY_SHARE: f64 = 0.7;

/// The time after which a silent process is considered dead.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct DeadAfter {
    /// Seconds without an answer after which a process counts as dead
    #[arg(long, value_name = "SECONDS", default_value = "4")]
    dead_after: NonZero<u16>,
}

impl DeadAfter {
    pub(crate) fn duration(self) -> Duration {
        Duration::from_secs(self.dead_after.get().into())
    }

    pub(crate) fn words(self) -> [String; 2] {
        ["--dead-after".to_owned(), self.dead_after.to_string()]
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct WorkerArgs {
    /// Address to listen on; port 0 for any free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// File with the cluster's token, which only its owner may read
    #[arg(long, value_name = "FILE", required_unless_present = "with_parent")]
    token_file: Option<PathBuf>,
    /// Directory whose files it reads; repeat for several
    #[arg(long = "data", value_name = "DIR", required = true)]
    roots: Vec<PathBuf>,
    /// Threads that run tasks [default: the CPUs that this process may use]
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<u16>>,
    /// Run only on these CPUs: 0-3,8
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    cpus: Option<CpuSet>,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    dead_after: DeadAfter,
    /// Read the token from standard input, and exit when that ends: the parent process has ended
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

pub(crate) fn run(args: WorkerArgs) -> anyhow::Result<()> {
    // Before threads are started: they inherit the affinity.
    let allowed = pin::affinity()?;
    let _pinned = args.cpus.as_ref().map(|cpus| pin::among(cpus, &allowed)).transpose()?;
    let (limit, directory) = args.memory.into_parts_of_worker()?;
    let folder = LockedFolder::make("workahead-worker-", &directory);
    let folder = folder.with_context(|| format!("can't write to {}", directory.display()))?;
    let token = match &args.token_file {
        Some(path) => token_of(path)?,
        None => {
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line)?;
            line.parse()?
        }
    };
    let stop = interrupt::listen()?;
    let (path, with_parent) = (folder.path().to_owned(), args.with_parent);
    std::thread::spawn(move || exit_at_the_end(&path, stop, with_parent));
    let available = || std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    let options = WorkerOptions {
        listen: args.listen,
        token,
        threads: args.threads.map_or_else(available, NonZero::from),
        memory_limit: limit.map_or_else(default_memory_limit, Ok)?,
        directory: folder.path().to_owned(),
        roots: args.roots,
        dead_after: args.dead_after.duration(),
    };
    // A closed standard output does not stop the process.
    workahead_cluster::worker(&options, |address| drop(output::text(&address.to_string())))?;
    Ok(())
}

/// A token's file, which others must not be able to read.
fn token_of(path: &Path) -> anyhow::Result<Token> {
    let text =
        secret(path).with_context(|| format!("can't use the token's file {}", path.display()))?;
    Ok(text.parse()?)
}

/// The text of a file that only its owner can read; a pipe is nobody else's.
fn secret(path: &Path) -> anyhow::Result<String> {
    const BYTES_MAX: u64 = 1 << 20;
    let file = pipe::open(path)?;
    let about = file.metadata()?;
    if about.is_file() && about.mode() & 0o077 != 0 {
        bail!("others can read it: chmod 600 {}", path.display());
    }
    let mut text = String::new();
    pipe::Reader::new(file)?.take(BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// The URL of a cluster: itself, or in a file.
pub(crate) fn cluster_url(given: &str) -> anyhow::Result<ClusterUrl> {
    if given.contains("://") {
        return Ok(given.parse()?);
    }
    let text = secret(given.as_ref());
    Ok(text.with_context(|| format!("can't use the cluster's URL in {given}"))?.parse()?)
}

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// The cluster's URL, or a file with it
    #[arg(value_name = "URL", env = "WORKAHEAD_CLUSTER", hide_env_values = true)]
    url: String,
    #[command(flatten)]
    dead_after: DeadAfter,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

pub(crate) fn status(args: &StatusArgs) -> anyhow::Result<()> {
    let workers = Client::status(&cluster_url(&args.url)?, args.dead_after.duration())?;
    if args.json {
        let row = |worker: &WorkerStatus| {
            let WorkerStatus { address, state } = worker;
            json!({
                "address": address.to_string(),
                "threads": state.map(|state| state.threads),
                "tasks": state.map(|state| state.tasks),
                "memory_reserved_bytes": state.map(|state| state.reserved_bytes),
                "memory_peak_bytes": state.map(|state| state.peak_bytes),
                "memory_limit_bytes": state.map(|state| state.limit_bytes),
                "spilled_bytes": state.map(|state| state.spilled_bytes),
                "cpu_seconds": state.map(|state| state.cpu_us as f64 / 1e6),
            })
        };
        let rows: Vec<_> = workers.iter().map(row).collect();
        return output::json(&json!({ "workers": rows }));
    }
    let line = |worker: &WorkerStatus| {
        let Some(state) = worker.state else {
            return format!("{}  does not answer", worker.address);
        };
        let [reserved, limit, peak, spilled] =
            [state.reserved_bytes, state.limit_bytes, state.peak_bytes, state.spilled_bytes]
                .map(HumanBytes);
        format!(
            "{}  {} threads, {} tasks, {reserved} of {limit} reserved (at most {peak} so far), \
             {spilled} spilled, {:.1} s of CPU time",
            worker.address,
            state.threads,
            state.tasks,
            state.cpu_us as f64 / 1e6
        )
    };
    output::text(&workers.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Exits once it is interrupted or its parent has ended, and removes this process's files. The
/// parent holds the other end of standard input, which the system closes however the parent ends.
fn exit_at_the_end(folder: &Path, stop: &'static AtomicBool, with_parent: bool) {
    const CHECK_INTERVAL: Duration = Duration::from_millis(50);
    let orphaned = Arc::new(AtomicBool::new(false));
    if with_parent {
        let orphaned = Arc::clone(&orphaned);
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            orphaned.store(true, Ordering::Relaxed);
        });
    }
    while !stop.load(Ordering::Relaxed) && !orphaned.load(Ordering::Relaxed) {
        std::thread::sleep(CHECK_INTERVAL);
    }
    let _ = std::fs::remove_dir_all(folder);
    std::process::exit(0);
}

/// The data directories of a local cluster.
pub(crate) fn roots(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    Err(WrongUse::error("name the directories that its workers may read: --data DIR"))
}
