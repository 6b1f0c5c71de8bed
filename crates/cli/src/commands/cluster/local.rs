//! A whole cluster on this machine's loopback interface, started by one command.

use std::net::Ipv4Addr;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use workahead_cluster::{Address, Client};
use workahead_machine::{CpuSet, pin};

use super::child_process::ChildProcess;
use super::processes::{DeadAfter, cpus, default_memory_limit};
use crate::errors::WrongUse;
use crate::memory::Memory;
use crate::{interrupt, output};

/// The interval at which the processes are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The arguments of a local cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct LocalArgs {
    /// Number of executors, each a process
    #[arg(long, value_name = "N", default_value = "2")]
    executors: NonZero<u16>,
    /// Concurrent tasks of each executor [default: an equal share of this process's CPUs]
    #[arg(long, value_name = "N")]
    slots: Option<NonZero<u16>>,
    /// Port of the scheduler [default: any free one]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Divide these CPUs among the executors, which run on no others: 0-3
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    cpus: Option<CpuSet>,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    dead_after: DeadAfter,
}

/// Starts it, prints its address, and runs until it is interrupted.
pub(crate) fn run(args: &LocalArgs) -> anyhow::Result<()> {
    let executors: usize = args.executors.get().into();
    let allowed = pin::affinity()?;
    let shares = shares(args.cpus.as_ref(), &allowed, executors)?;
    let (limit, directory) = args.memory.clone().into_parts()?;
    let limit = match limit {
        Some(limit) => limit,
        None => default_memory_limit()? / executors,
    };
    let stop = interrupt::listen()?;
    let directory = directory.unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new().prefix("workahead-cluster-").tempdir_in(&directory);
    let folder = folder.with_context(|| format!("can't write to {}", directory.display()))?;
    let listen = format!("{}:{}", Ipv4Addr::LOCALHOST, args.port.unwrap_or(0));
    let dead_after = args.dead_after.seconds().to_string();
    let words = ["scheduler", "--listen", &listen, "--dead-after", &dead_after];
    let mut scheduler = ChildProcess::start("scheduler".into(), &words.map(str::to_owned))?;
    let address: Address = scheduler.ready(stop)?.parse()?;
    let slots = args.slots.map_or_else(|| allowed.len().div_ceil(executors), |n| n.get().into());
    let mut words: Vec<String> = ["executor", "--scheduler", &address.to_string()]
        .iter()
        .chain(&["--dead-after", &dead_after, "--slots", &slots.to_string()])
        .chain(&["--memory-limit", &limit.to_string(), "--spill-dir"])
        .map(|word| (*word).to_owned())
        .collect();
    words.push(folder.path().to_string_lossy().into_owned());
    let mut started = Vec::new();
    for (number, cpus) in (1..=executors).zip(&shares) {
        let mut words = words.clone();
        words.extend(cpus.iter().flat_map(|cpus| ["--cpus".to_owned(), cpus.to_string()]));
        started.push(ChildProcess::start(format!("executor {number}"), &words)?);
    }
    let mut executors = Vec::new();
    for mut process in started {
        let id = process.ready(stop)?;
        executors.push(Executor { process, id });
    }
    output::text(&address.to_string())?;
    for Executor { process, .. } in &executors {
        eprintln!("{} is process {}", process.name, process.id());
    }
    let ended = watch(&mut scheduler, &mut executors, &Client::new(address), stop);
    executors.iter_mut().for_each(|executor| executor.process.request_exit());
    ended
}

/// An executor, with its name in the scheduler.
struct Executor {
    process: ChildProcess,
    id: String,
}

/// The CPUs of each executor, with `--cpus`.
fn shares(
    cpus: Option<&CpuSet>,
    allowed: &CpuSet,
    executors: usize,
) -> anyhow::Result<Vec<Option<CpuSet>>> {
    let Some(cpus) = cpus else { return Ok(vec![None; executors]) };
    if let Some(cpu) = cpus.iter().find(|&cpu| !allowed.contains(cpu)) {
        return Err(WrongUse::error(format!(
            "CPU {cpu} is not allowed here: choose from {allowed}"
        )));
    }
    let cpus: Vec<usize> = cpus.iter().collect();
    if !cpus.len().is_multiple_of(executors) {
        return Err(WrongUse::error(format!(
            "{} CPUs can't be divided equally among {executors} executors: give a multiple",
            cpus.len()
        )));
    }
    let shares = cpus.chunks(cpus.len() / executors);
    Ok(shares.map(|share| Some(share.iter().copied().collect())).collect())
}

/// Returns when it is interrupted; fails when the scheduler or all executors have ended.
fn watch(
    scheduler: &mut ChildProcess,
    executors: &mut Vec<Executor>,
    client: &Client,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        if let Some(status) = scheduler.exit_status() {
            bail!("the scheduler ended: {status}; start the cluster again");
        }
        executors.retain_mut(|executor| {
            let Some(status) = executor.process.exit_status() else { return true };
            eprintln!("{} ended: {status}; its tasks go to the others", executor.process.name);
            // Queries need not wait until the scheduler notices it.
            if let Err(error) = client.executor_lost(&executor.id, &status.to_string()) {
                eprintln!("can't report it to the scheduler: {error}");
            }
            false
        });
        if executors.is_empty() {
            bail!("no executor is left; start the cluster again");
        }
        std::thread::sleep(CHECK_INTERVAL);
    }
    Ok(())
}
