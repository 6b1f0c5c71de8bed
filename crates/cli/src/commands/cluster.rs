//! `workahead cluster`: a scheduler and executors, which join with Workahead, as processes.
//!
//! ```text
//! workahead cluster ──► workahead cluster scheduler      its address, on a line, when it listens
//!                  └──► workahead cluster executor …     its name, on a line, when it is known
//! ```
//!
//! The two below are commands of their own, for clusters of several machines.

mod parts;
mod server;
mod small;

use std::process::ExitCode;

use workahead_cluster::ClusterError;

use crate::errors::WrongUse;

const EXAMPLES: &str = "\
Examples:
  workahead cluster --executors 2                 prints df://127.0.0.1:PORT and stays
  workahead cluster --executors 2 --slots 4 --memory-limit 8GB --spill-dir /scratch
  workahead sql --cluster df://127.0.0.1:PORT --tpch all --data tpch

On several machines, whose files have the same paths:
  workahead cluster scheduler --listen 10.0.0.1:50050
  workahead cluster executor --scheduler df://10.0.0.1:50050 --listen 10.0.0.2

Nothing asks who is there: keep all ports on a network of your own.";

/// The arguments of `workahead cluster`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    part: Option<Part>,
    #[command(flatten)]
    small: small::SmallArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Part {
    /// The process that plans queries and places their tasks, alone
    Scheduler(parts::SchedulerArgs),
    /// A process that runs tasks, alone
    Executor(parts::ExecutorArgs),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.part {
        None => small::run(&args.small),
        Some(Part::Scheduler(args)) => parts::scheduler(&args),
        Some(Part::Executor(args)) => parts::executor(args),
    }
    .map(|()| ExitCode::SUCCESS)
    .map_err(|error| match error.downcast_ref::<ClusterError>() {
        Some(wrong @ (ClusterError::Address { .. } | ClusterError::Memory { .. })) => {
            WrongUse::error(wrong.to_string())
        }
        _ => error,
    })
}
