//! `workahead cluster`: workers with Workahead's joins, as processes.
//!
//! ```text
//! workahead cluster ──► workahead cluster worker …     prints its address when it listens
//!                  └──► workahead cluster worker …
//! ```
//!
//! Workers are a command of their own too, for clusters of several machines.

mod child_process;
mod local;
mod worker;

use std::process::ExitCode;

use workahead_cluster::{ClusterError, Token};

use crate::errors::WrongUse;
use crate::output;

pub(crate) use worker::cluster_url;

const EXAMPLES: &str = "\
Examples:
  umask 077; workahead cluster --workers 2 --data tpch > url      prints its URL, keeps running
  workahead cluster --workers 2 --threads 4 --memory-limit 8GB --spill-dir /scratch --data /data
  workahead sql --cluster url --tpch all --data tpch

On several machines, with the same file paths on each:
  workahead cluster token > token && chmod 600 token
  workahead cluster worker --listen 10.0.0.1:50050 --token-file token --data /data

Who has the token may read all files below the --data directories.";

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
    /// Start only a worker, which runs tasks of queries
    Worker(worker::WorkerArgs),
    /// Print a new token, which the processes of a cluster share
    Token,
    /// Show the workers that answer, and their work
    Status(worker::StatusArgs),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.process {
        None => local::run(&args.local),
        Some(Process::Worker(args)) => worker::run(args),
        Some(Process::Token) => Token::generate()
            .map_err(anyhow::Error::from)
            .and_then(|token| output::text(token.reveal())),
        Some(Process::Status(args)) => worker::status(&args),
    }
    .map(|()| ExitCode::SUCCESS)
    .map_err(|error| match error.downcast_ref::<ClusterError>() {
        Some(wrong @ (ClusterError::Url | ClusterError::Token)) => {
            WrongUse::error(wrong.to_string())
        }
        _ => error,
    })
}
