//! A whole cluster on this machine's loopback interface, started by one command.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use workahead_cluster::{ClusterUrl, Token};
use workahead_machine::{CpuSet, pin};
use workahead_sql::LockedFolder;

use super::child_process::ChildProcess;
use super::worker::{DeadAfter, cpus, default_memory_limit, roots};
use crate::errors::WrongUse;
use crate::memory::Memory;
use crate::{interrupt, output};

/// The interval at which the processes are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The arguments of a local cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct LocalArgs {
    /// Number of workers, each a process
    #[arg(long, value_name = "N", default_value = "2")]
    workers: NonZero<u16>,
    /// Threads of each worker [default: an equal share of this process's CPUs]
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<u16>>,
    /// Directory whose files the workers read; repeat for several
    #[arg(long = "data", value_name = "DIR")]
    roots: Vec<PathBuf>,
    /// Divide these CPUs among the workers, which run on no others: 0-3
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    cpus: Option<CpuSet>,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    dead_after: DeadAfter,
}

/// Starts it, prints its URL, and runs until it is interrupted.
pub(crate) fn run(args: &LocalArgs) -> anyhow::Result<()> {
    let workers: usize = args.workers.get().into();
    let allowed = pin::affinity()?;
    let shares = shares(args.cpus.as_ref(), &allowed, workers)?;
    let (limit, directory) = args.memory.clone().into_parts_of_worker()?;
    let limit = match limit {
        Some(limit) => limit,
        None => default_memory_limit()? / workers,
    };
    let stop = interrupt::listen()?;
    let folder = LockedFolder::make("workahead-cluster-", &directory);
    let folder = folder.with_context(|| format!("can't write to {}", directory.display()))?;
    let threads = args.threads.map_or_else(|| allowed.len().div_ceil(workers), |n| n.get().into());
    let listen = format!("{}:0", Ipv4Addr::LOCALHOST);
    let mut words: Vec<OsString> =
        ["worker", "--listen", &listen, "--threads", &threads.to_string()]
            .iter()
            .chain(&["--memory-limit", &limit.to_string(), "--spill-dir"])
            .map(OsString::from)
            .collect();
    words.push(folder.path().into());
    words.extend(args.dead_after.words().map(OsString::from));
    for root in roots(&args.roots)? {
        words.extend(["--data".into(), root.into()]);
    }
    let token = Token::generate()?;
    let mut started = Vec::new();
    for (number, cpus) in (1..=workers).zip(&shares) {
        let mut words = words.clone();
        words.extend(cpus.iter().flat_map(|cpus| ["--cpus".into(), cpus.to_string().into()]));
        started.push(ChildProcess::start(format!("worker {number}"), &words, &token)?);
    }
    let mut addresses = Vec::new();
    for process in &mut started {
        let address: SocketAddr = process.ready(stop)?.parse()?;
        addresses.push(address);
    }
    output::text(&ClusterUrl::new(token, &addresses).reveal())?;
    for process in &started {
        output::note(&format!("{} is process {}", process.name, process.id()));
    }
    let ended = watch(&mut started, stop);
    started.iter_mut().for_each(ChildProcess::request_exit);
    ended
}

/// The CPUs of each worker, with `--cpus`.
fn shares(
    cpus: Option<&CpuSet>,
    allowed: &CpuSet,
    workers: usize,
) -> anyhow::Result<Vec<Option<CpuSet>>> {
    let Some(cpus) = cpus else { return Ok(vec![None; workers]) };
    if let Some(cpu) = cpus.iter().find(|&cpu| !allowed.contains(cpu)) {
        return Err(WrongUse::error(format!(
            "CPU {cpu} is not allowed here: choose from {allowed}"
        )));
    }
    let cpus: Vec<usize> = cpus.iter().collect();
    if !cpus.len().is_multiple_of(workers) {
        return Err(WrongUse::error(format!(
            "{} CPUs can't be divided equally among {workers} workers: give a multiple",
            cpus.len()
        )));
    }
    let shares = cpus.chunks(cpus.len() / workers);
    Ok(shares.map(|share| Some(share.iter().copied().collect())).collect())
}

/// Returns when it is interrupted; fails when all workers have ended.
fn watch(workers: &mut Vec<ChildProcess>, stop: &AtomicBool) -> anyhow::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        workers.retain_mut(|worker| {
            let Some(status) = worker.exit_status() else { return true };
            let name = &worker.name;
            output::note(&format!("{name} ended: {status}; queries go to the others"));
            false
        });
        if workers.is_empty() {
            bail!("no worker is left; start the cluster again");
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
    Ok(())
}
