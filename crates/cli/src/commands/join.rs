//! `workahead join`: joins two Parquet files.
//!
//! ```text
//! build file ──row groups, all threads──► BuildSide ──► JoinTable
//! probe file ──row groups──► a Prober a thread ──► counted, or encoded into --out
//! ```
//!
//! Without `--out` only the key columns are read and rows are counted. The probe side is streamed:
//! memory is the build side, its table, and a row group of output a thread.

mod caches;
mod input;
mod limit;
mod outcome;
mod probing;
mod report;
mod sides;
mod units;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use workahead_columns::{HashJoin, JoinError, JoinType, Side, Strategy};

use crate::errors::WrongUse;
use crate::interrupt;
use crate::threads::Threads;
use input::Input;
use limit::Bounds;
use outcome::Outcome;
use sides::{Asked, Sides};

const EXAMPLES: &str = "\
Examples:
  workahead join --left orders.parquet --right lineitem.parquet --on o_orderkey=l_orderkey
  workahead join --left a.parquet --right b.parquet --on id --out ab.parquet
  workahead join --left a.parquet --right b.parquet --on id --strategy amac --threads 2 --json

Inner join on one integer key (any width, signed or not; or two dates). Null keys match nothing.
Without --out the rows are only counted, and only the key columns are read.

Times are wall time, except that those of parallel phases are thread seconds divided by threads:
  read    decoding Parquet            probe   looking keys up
  build   hashing the build side      gather  putting output columns together
  write   encoding --out

Lookups are held against the machine's limit of random cache lines per second, as kept by
`workahead limits`; without it, against a sample taken after the join (a fraction of a second), or
not at all if the table is large.";

/// The arguments of `workahead join`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The left Parquet file: its columns come first
    #[arg(long, value_name = "FILE")]
    left: PathBuf,
    /// The right Parquet file
    #[arg(long, value_name = "FILE")]
    right: PathBuf,
    /// The key columns that must be equal; one name if they are called the same
    #[arg(long, value_name = "LEFT=RIGHT")]
    on: String,
    /// The side that goes into the table; auto takes the one with fewer rows
    #[arg(long, value_name = "SIDE", value_enum, default_value_t = Asked::Auto)]
    build_side: Asked,
    /// How keys are looked up: auto, vectors, sequential, distance, amac, groups, rounds
    #[arg(long, value_name = "NAME", default_value_t = Strategy::Auto)]
    strategy: Strategy,
    #[command(flatten)]
    threads: Threads,
    /// Write the joined rows to this Parquet file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// What right columns get whose name the left side has
    #[arg(long, value_name = "TEXT", default_value = "_right")]
    suffix: String,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let on = keys(&args.on)?;
    let threads = args.threads.chosen();
    let interrupted = interrupt::listen()?;
    let start = Instant::now();
    let mut left = Input::open(&args.left)?;
    let mut right = Input::open(&args.right)?;
    left.require(on.0, "left")?;
    right.require(on.1, "right")?;
    if args.out.is_none() {
        left.keep_only(on.0);
        right.keep_only(on.1);
    }
    let bounds = Bounds::here();
    let sides = Sides::choose(args.build_side, &left, &right);
    let join = HashJoin::by_names(left.schema(), right.schema(), &[on], JoinType::Inner)
        .map_err(wrong_use)?
        .with_build_side(sides.build)
        .with_suffix(&args.suffix)
        .with_strategy(args.strategy)
        .with_caches(caches::of(&bounds.machine, bounds.limits.as_ref()));
    let outcome =
        Outcome { threads, out: args.out, asked: args.strategy, sides, start, bounds: &bounds };
    let (build, probe) = match outcome.sides.build {
        Side::Left => (&left, &right),
        Side::Right => (&right, &left),
    };
    let facts = outcome.joined(&join, build, probe, interrupted)?;
    report::print(&facts, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// `a=b`, or one name for both sides.
fn keys(on: &str) -> anyhow::Result<(&str, &str)> {
    let (left, right) = on.split_once('=').unwrap_or((on, on));
    if left.is_empty() || right.is_empty() || right.contains('=') {
        return Err(WrongUse::error(format!(
            "--on {on:?} names no pair of columns: write --on LEFT=RIGHT"
        )));
    }
    Ok((left, right))
}

/// A key of the wrong type is the command line's fault.
fn wrong_use(error: JoinError) -> anyhow::Error {
    WrongUse::error(error.to_string())
}
