//! `workahead cluster`: a scheduler, and executors with Workahead's joins, as processes.
//!
//! ```text
//! workahead cluster ──► workahead cluster scheduler      prints its address when it listens
//!                  └──► workahead cluster executor …     prints its name when it is registered
//! ```
//!
//! Scheduler and executor are also commands of their own, for clusters of several machines.

mod child_process;
mod local;
mod processes;

use std::process::ExitCode;

use workahead_cluster::ClusterError;

use crate::errors::WrongUse;

const EXAMPLES: &str = "\
Examples:
  workahead cluster --executors 2                 prints df://127.0.0.1:PORT and keeps running
  workahead cluster --executors 2 --slots 4 --memory-limit 8GB --spill-dir /scratch
  workahead sql --cluster df://127.0.0.1:PORT --tpch all --data tpch

On several machines, with the same file paths on each:
  workahead cluster scheduler --listen 10.0.0.1:50050
  workahead cluster executor --scheduler df://10.0.0.1:50050 --listen 10.0.0.2

There is no authentication: keep all ports on a private network.";

/// The arguments of `workahead cluster`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    process: Option<Process>,
    #[command(flatten)]
    local: local::LocalArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Process {
    /// Start only the scheduler, which plans queries and places their tasks
    Scheduler(processes::SchedulerArgs),
    /// Start only an executor, which runs tasks
    Executor(processes::ExecutorArgs),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.process {
        None => local::run(&args.local),
        Some(Process::Scheduler(args)) => processes::scheduler(&args),
        Some(Process::Executor(args)) => processes::executor(args),
    }
    .map(|()| ExitCode::SUCCESS)
    .map_err(|error| match error.downcast_ref::<ClusterError>() {
        Some(wrong @ (ClusterError::Address { .. } | ClusterError::Memory { .. })) => {
            WrongUse::error(wrong.to_string())
        }
        _ => error,
    })
}
