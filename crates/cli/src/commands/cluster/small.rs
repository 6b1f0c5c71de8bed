//! A whole cluster on this machine's loopback, of one command.

use std::net::Ipv4Addr;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use workahead_cluster::{Address, Client};
use workahead_machine::{CpuSet, pin};

use super::parts::{DeadAfter, cpus, usual_memory};
use super::server::Server;
use crate::errors::WrongUse;
use crate::memory::Memory;
use crate::{interrupt, output};

/// How often it is looked whether all are still there.
const LOOK: Duration = Duration::from_millis(50);

/// The arguments of the whole cluster.
#[derive(Debug, clap::Args)]
pub(crate) struct SmallArgs {
    /// Executors, a process each
    #[arg(long, value_name = "N", default_value = "2")]
    executors: NonZero<u16>,
    /// Tasks at a time in each [default: this process's CPUs, divided among them]
    #[arg(long, value_name = "N")]
    slots: Option<NonZero<u16>>,
    /// The scheduler's port [default: one that is free]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Give each executor its share of these CPUs, and no other: 0-3
    #[arg(long, value_name = "CPUS", value_parser = cpus)]
    cpus: Option<CpuSet>,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    dead_after: DeadAfter,
}

/// Starts it, prints where it is, and stays until it is asked to leave.
pub(crate) fn run(args: &SmallArgs) -> anyhow::Result<()> {
    let executors: usize = args.executors.get().into();
    let allowed = pin::affinity()?;
    let shares = shares(args.cpus.as_ref(), &allowed, executors)?;
    let (limit, directory) = args.memory.clone().into_parts();
    let limit = match limit {
        Some(limit) => limit,
        None => usual_memory()? / executors,
    };
    let stop = interrupt::listen()?;
    let directory = directory.unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new().prefix("workahead-cluster-").tempdir_in(&directory);
    let folder = folder.with_context(|| format!("can't write to {}", directory.display()))?;
    let listen = format!("{}:{}", Ipv4Addr::LOCALHOST, args.port.unwrap_or(0));
    let dead_after = args.dead_after.seconds().to_string();
    let words = ["scheduler", "--listen", &listen, "--dead-after", &dead_after];
    let mut scheduler = Server::start("scheduler".into(), &words.map(str::to_owned))?;
    let address: Address = scheduler.up(stop)?.parse()?;
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
        started.push(Server::start(format!("executor {number}"), &words)?);
    }
    let mut known = Vec::new();
    for mut server in started {
        let id = server.up(stop)?;
        known.push(Executor { server, id });
    }
    output::text(&address.to_string())?;
    for Executor { server, .. } in &known {
        eprintln!("{} is process {}", server.name, server.id());
    }
    let ended = watch(&mut scheduler, &mut known, &Client::new(address), stop);
    known.iter_mut().for_each(|executor| executor.server.dismiss());
    ended
}

/// An executor that the scheduler knows by this name.
struct Executor {
    server: Server,
    id: String,
}

/// The CPUs of each executor, if they are to have their own.
fn shares(
    cpus: Option<&CpuSet>,
    allowed: &CpuSet,
    executors: usize,
) -> anyhow::Result<Vec<Option<CpuSet>>> {
    let Some(cpus) = cpus else { return Ok(vec![None; executors]) };
    if let Some(stray) = cpus.iter().find(|&cpu| !allowed.contains(cpu)) {
        return Err(WrongUse::error(format!("CPU {stray} is not among those allowed: {allowed}")));
    }
    let cpus: Vec<usize> = cpus.iter().collect();
    if !cpus.len().is_multiple_of(executors) {
        return Err(WrongUse::error(format!(
            "{} CPUs can't be divided among {executors} executors: give as many to each",
            cpus.len()
        )));
    }
    let shares = cpus.chunks(cpus.len() / executors);
    Ok(shares.map(|share| Some(share.iter().copied().collect())).collect())
}

/// Returns when asked to leave; fails when there is no cluster any more.
fn watch(
    scheduler: &mut Server,
    executors: &mut Vec<Executor>,
    client: &Client,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        if let Some(status) = scheduler.ended() {
            bail!("the scheduler ended: {status}; start the cluster again");
        }
        executors.retain_mut(|executor| {
            let Some(status) = executor.server.ended() else { return true };
            eprintln!("{} ended: {status}; its tasks go to the others", executor.server.name);
            // It finds out by itself after a while; queries need not wait for that.
            if let Err(error) = client.executor_lost(&executor.id, &status.to_string()) {
                eprintln!("the scheduler was not told of it: {error}");
            }
            false
        });
        if executors.is_empty() {
            bail!("no executor is left; start the cluster again");
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
