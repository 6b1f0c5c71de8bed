//! `workahead data`: generates data as Parquet.

mod tpch;

use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  workahead data tpch --scale 1 --out tpch";

/// The arguments of `workahead data`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    set: Set,
}

#[derive(Debug, clap::Subcommand)]
enum Set {
    /// The eight tables of TPC-H, identical to those of its generator
    Tpch(tpch::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.set {
        Set::Tpch(args) => tpch::run(args),
    }
}
