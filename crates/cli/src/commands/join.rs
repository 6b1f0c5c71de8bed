//! `workahead join`: joins two Parquet files.
//!
//! ```text
//! build file ──row groups, all threads──► BuildSide ──► JoinTable
//! probe file ──row groups──► a Prober a thread ──► counted, or encoded into --out
//! ```
//!
//! Without `--out` only the key columns are read and rows are counted. Both sides are streamed:
//! memory is the build side, its table, and a row group of output a thread; with `--memory-limit`
//! no more than that, the rest of both sides in files.

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

use arrow_schema::Schema;
use workahead_columns::{Design, HashJoin, JoinError, JoinType, NullEquality, Side, Strategy};

use crate::errors::WrongUse;
use crate::interrupt;
use crate::memory::Memory;
use crate::threads::Threads;
use input::Input;
use limit::Bounds;
use outcome::Outcome;
use sides::{Asked, Sides};

const EXAMPLES: &str = "\
Examples:
  workahead join --left orders.parquet --right lineitem.parquet --on o_orderkey=l_orderkey
  workahead join --left a.parquet --right b.parquet --on id --out ab.parquet
  workahead join --left a.parquet --right b.parquet --on id --on day=date --type left-anti
  workahead join --left a.parquet --right b.parquet --on id --select id,price --threads 2 --json
  workahead join --left a.parquet --right b.parquet --on id --out ab.parquet --memory-limit 300MB

Keys are of any type that can be compared: numbers, texts, dates, decimals, lists, and any number of
them. Numbers of different width match by value; other types must be the same on both sides. A float
key matches by its bits: NaN equals itself, 0.0 does not equal -0.0.
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
    /// Key columns that must be equal; one name if they are called the same; again for more keys
    #[arg(long, value_name = "LEFT=RIGHT", required = true)]
    on: Vec<String>,
    /// Which rows: inner, left, right, full, left-semi, right-semi, left-anti, right-anti,
    /// left-mark or right-mark
    #[arg(long = "type", value_name = "TYPE", default_value_t = JoinType::Inner)]
    join_type: JoinType,
    /// Let null keys match each other
    #[arg(long)]
    null_equal: bool,
    /// Only these columns of the result, in this order
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    select: Vec<String>,
    /// The side that goes into the table; auto takes the one with fewer rows
    #[arg(long, value_name = "SIDE", value_enum, default_value_t = Asked::Auto)]
    build_side: Asked,
    /// How keys are looked up: auto, vectors, sequential, distance, amac, groups, rounds
    #[arg(long, value_name = "NAME", default_value_t = Strategy::Auto)]
    strategy: Strategy,
    /// How keys are kept: auto, buckets, dense (a place for every integer of their range), bloom (a
    /// filter before buckets)
    #[arg(long, value_name = "NAME", default_value_t = Design::Auto)]
    design: Design,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    memory: Memory,
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
    let on = args.on.iter().map(|on| keys(on)).collect::<anyhow::Result<Vec<_>>>()?;
    let threads = args.threads.chosen();
    let interrupted = interrupt::listen()?;
    let budget = args.memory.budget()?;
    let start = Instant::now();
    let mut left = Input::open(&args.left)?;
    let mut right = Input::open(&args.right)?;
    for (left_key, right_key) in &on {
        left.require(left_key, "left")?;
        right.require(right_key, "right")?;
    }
    if args.out.is_none() {
        left.keep_only(on.iter().map(|on| on.0));
        right.keep_only(on.iter().map(|on| on.1));
    }
    let bounds = Bounds::here();
    let sides = Sides::choose(args.build_side, &left, &right);
    let nulls = if args.null_equal {
        NullEquality::NullEqualsNull
    } else {
        NullEquality::NullEqualsNothing
    };
    let mut join = HashJoin::by_names(left.schema(), right.schema(), &on, args.join_type)
        .map_err(wrong_use)?
        .with_null_equality(nulls)
        .with_build_side(sides.build)
        .with_suffix(&args.suffix)
        .with_strategy(args.strategy)
        .with_design(args.design)
        .with_caches(caches::of(&bounds.machine, bounds.limits.as_ref()))
        .with_memory(budget.pool.clone())
        .with_probers(threads.get());
    if let Some(directory) = &budget.directory {
        join = join.with_spill(directory.clone());
    }
    if !args.select.is_empty() && args.out.is_some() {
        let columns = selected(&args.select, &join.schema())?;
        join = join.with_projection(columns).map_err(wrong_use)?;
    }
    let outcome = Outcome {
        threads,
        out: args.out,
        join_type: args.join_type,
        asked: args.strategy,
        sides,
        start,
        bounds: &bounds,
        budget,
    };
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

/// Where the wanted columns are in the result.
fn selected(wanted: &[String], result: &Schema) -> anyhow::Result<Vec<usize>> {
    let position = |name: &String| {
        result.index_of(name).map_err(|_| {
            let known: Vec<_> = result.fields().iter().map(|field| field.name().as_str()).collect();
            let known = known.join(", ");
            WrongUse::error(format!("the result has no column {name:?}: choose from {known}"))
        })
    };
    wanted.iter().map(position).collect()
}

/// A key of the wrong type is the command line's fault.
fn wrong_use(error: JoinError) -> anyhow::Error {
    WrongUse::error(error.to_string())
}
