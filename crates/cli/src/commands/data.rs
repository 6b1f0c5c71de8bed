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
    dataset: Dataset,
}

#[derive(Debug, clap::Subcommand)]
enum Dataset {
    /// The eight tables of TPC-H, identical to those of its generator
    Tpch(tpch::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.dataset {
        Dataset::Tpch(args) => tpch::run(args),
    }
}
