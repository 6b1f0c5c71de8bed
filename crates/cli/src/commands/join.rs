//! `workahead join`: joins two files.
//!
//! ```text
//! build file ──row groups, all threads──► BuildSide ──► JoinTable
//! probe file ──row groups──► a Prober per thread ──► counted, or encoded into --out
//! ```
//!
//! Without `--out` only the key columns are read and rows are counted. Both sides are streamed:
//! memory holds the build side, its table, and a row group of output per thread; with
//! `--memory-limit` at most that much, and the rest of both sides is spilled.

mod execution;
mod explain;
mod filter;
mod format;
mod input;
mod on;
mod output;
mod probe_worker;
mod random_line_limit;
mod report;
mod sides;
mod units;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arrow_schema::Schema;
use workahead_join::{
    Caches, HashJoin, JoinError, JoinType, NullEquality, Side, StopCheck, TableLayout, memory_bytes,
};

use crate::errors::WrongUse;
use crate::interrupt;
use crate::memory::Memory;
use crate::threads::Threads;
use execution::Execution;
use explain::Explanation;
use format::Format;
use input::{Bounds, Input, Opening};
use on::On;
use random_line_limit::MachineLimits;
use sides::{BuildSideArgument, Sides};

const EXAMPLES: &str = "\
Examples:
  workahead join --left orders.parquet --right lineitem.parquet --on o_orderkey=l_orderkey
  workahead join --left a.parquet --right b.parquet --on id --out ab.parquet
  workahead join --left a.parquet --right b.parquet --on id --on day=date --type left-anti
  workahead join --left a.parquet --right b.parquet --on id --select id,price --threads 2 --json
  workahead join --left a.parquet --right b.parquet --on id --out ab.parquet --memory-limit 300MB
  workahead join --left a.csv --right b.arrow --on id --filter 'left.day <= right.day' --explain

Files are Parquet, CSV (with a header line), Arrow IPC files or streams: by their extensions, or by
--left-format, --right-format and --out-format. All are streamed.

--filter adds a condition in SQL to the equality of keys: columns (left.NAME or right.NAME where
both sides have one), constants, comparisons, AND OR NOT, + - * / %, IS NULL, BETWEEN, IN, LIKE,
CAST. Like ON in SQL it decides what matches: an outer join also returns the rows without a match.

Keys are of any type that can be compared (numbers, text, dates, decimals, lists), any number of
them. Numbers of different width match by value; other types must be the same on both sides. A float
key matches by its bits: NaN equals itself, 0.0 does not equal -0.0.
Without --out the rows are only counted, and only the key columns are read.

Times are wall time; those of parallel phases are thread seconds divided by threads:
  read    decoding input files        probe   looking up keys
  build   hashing the build side      gather  assembling output columns
  write   encoding --out

Lookups that touch cache lines at random are compared with the machine's limit of random lines per
second, as kept by `workahead limits`; without it, with a sample taken after the join (a fraction of
a second), or not at all if the table is large. If keys are in the order of the table, the bytes of
the table that were read per second are shown instead.";

/// The arguments of `workahead join`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The left file, whose columns come first in the result
    #[arg(long, value_name = "FILE")]
    left: PathBuf,
    /// The right file
    #[arg(long, value_name = "FILE")]
    right: PathBuf,
    /// Format of the left file [default: by its extension]
    #[arg(long, value_name = "FORMAT", value_enum)]
    left_format: Option<Format>,
    /// Format of the right file [default: by its extension]
    #[arg(long, value_name = "FORMAT", value_enum)]
    right_format: Option<Format>,
    /// Key columns that must be equal, or their common name; repeat for several keys
    #[arg(long, value_name = "LEFT=RIGHT", required = true)]
    on: Vec<String>,
    /// Join type: inner, left, right, full, left-semi, right-semi, left-anti, right-anti, left-mark
    /// or right-mark
    #[arg(long = "type", value_name = "TYPE", default_value_t = JoinType::Inner)]
    join_type: JoinType,
    /// Null keys match each other
    #[arg(long)]
    null_equal: bool,
    /// Further condition on matches: left.price < right.limit AND name LIKE 'a%'
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    /// Only these columns of the result, in this order
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    select: Vec<String>,
    /// The build side; auto takes the side with fewer rows
    #[arg(long, value_name = "SIDE", value_enum, default_value_t = BuildSideArgument::Auto)]
    build_side: BuildSideArgument,
    /// Table layout: auto, buckets, dense (a slot for every integer of the keys' range), bloom
    /// (buckets behind a Bloom filter)
    #[arg(long, value_name = "NAME", default_value_t = TableLayout::Auto)]
    layout: TableLayout,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    memory: Memory,
    /// The longest record of CSV: a longer one is taken for a file without line ends
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = memory_bytes)]
    max_record: usize,
    /// Write the joined rows to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Format of --out [default: by its extension]
    #[arg(long, value_name = "FORMAT", value_enum, requires = "out")]
    out_format: Option<Format>,
    /// Print the plan of the join and the reasons for it, without running it
    #[arg(long)]
    explain: bool,
    /// Suffix for right-side columns whose names also exist on the left
    #[arg(long, value_name = "TEXT", default_value = "_right")]
    suffix: String,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let interrupted = interrupt::listen()?;
    joined(args, interrupted).map_err(interrupt::named)
}

fn joined(args: Args, interrupted: &'static AtomicBool) -> anyhow::Result<ExitCode> {
    let on = args.on.iter().map(|on| On::parse(on)).collect::<anyhow::Result<Vec<_>>>()?;
    let on: Vec<_> = on.iter().map(|on| (on.left.as_str(), on.right.as_str())).collect();
    let threads = args.threads.count();
    let budget = args.memory.budget()?;
    let start = Instant::now();
    let limits = MachineLimits::here();
    let batch_bytes = budget.batch_bytes(&limits.machine);
    let bounds = Bounds { batch_bytes, record_bytes: args.max_record };
    let opening = Opening { bounds, memory: &args.memory, interrupted };
    let (left, right) = args.inputs(&on, &opening)?;
    let sides = Sides::choose(args.build_side, &left, &right);
    let mut join = HashJoin::by_names(left.schema(), right.schema(), &on, args.join_type)
        .map_err(wrong_use)?
        .with_null_equality(args.null_equality())
        .with_build_side(sides.build)
        .with_suffix(&args.suffix)
        .with_table_layout(args.layout)
        .with_caches(Caches::of(&limits.machine, limits.kept.as_ref()))
        .with_memory(budget.pool.clone())
        .with_stop_check(StopCheck::new(move || interrupted.load(Ordering::Relaxed)))
        .with_probers(threads.get());
    if let Some(directory) = &budget.directory {
        join = join.with_spill(directory.clone());
    }
    if let Some(text) = &args.filter {
        let filter = filter::compile(text, &left.schema(), &right.schema())?;
        join = join.with_filter(filter).map_err(wrong_use)?;
    }
    if !args.select.is_empty() && args.out.is_some() {
        let columns = positions(&args.select, &join.schema())?;
        join = join.with_projection(columns).map_err(wrong_use)?;
    }
    let execution = Execution {
        threads,
        out: args.out,
        out_format: args.out_format,
        join_type: args.join_type,
        filter: args.filter,
        layout: args.layout,
        sides,
        start,
        limits: &limits,
        budget,
    };
    let (build, probe) = match execution.sides.build {
        Side::Left => (&left, &right),
        Side::Right => (&right, &left),
    };
    if args.explain {
        let keys: Vec<&str> = match execution.sides.build {
            Side::Left => on.iter().map(|on| on.0).collect(),
            Side::Right => on.iter().map(|on| on.1).collect(),
        };
        Explanation::new(&execution, &join, (build, &keys), probe).print(args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = execution.run(&join, build, probe, interrupted)?;
    report::print(&report, args.json)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// Opens both files; only the needed columns are read.
    fn inputs(&self, on: &[(&str, &str)], opening: &Opening<'_>) -> anyhow::Result<(Input, Input)> {
        let mut left = Input::open(&self.left, self.left_format, opening)?;
        let mut right = Input::open(&self.right, self.right_format, opening)?;
        for (left_key, right_key) in on {
            left.require(left_key, "left")?;
            right.require(right_key, "right")?;
            // A file without rows says nothing of its types.
            let types = (left.key_type(left_key), right.key_type(right_key));
            left.assume(left_key, &types.1);
            right.assume(right_key, &types.0);
        }
        if self.out.is_some() {
            left.require_names("left")?;
            right.require_names("right")?;
        }
        if self.out.is_none() || !self.select.is_empty() {
            let (left_schema, right_schema) = (left.schema(), right.schema());
            if self.out.is_some() {
                // The error for another column names all that there are.
                let whole = HashJoin::by_names(left.schema(), right.schema(), on, self.join_type);
                let whole = whole.map_err(wrong_use)?.with_suffix(&self.suffix);
                positions(&self.select, &whole.schema())?;
            }
            let mut kept: [Vec<&str>; 2] =
                [on.iter().map(|on| on.0).collect(), on.iter().map(|on| on.1).collect()];
            if let Some(text) = &self.filter {
                for (side, column) in filter::compile(text, &left_schema, &right_schema)?.columns {
                    match side {
                        Side::Left => kept[0].push(left_schema.field(column).name()),
                        Side::Right => kept[1].push(right_schema.field(column).name()),
                    }
                }
            }
            if self.out.is_some() {
                // Suffixes depend on the columns of the same name, which stay: also the wanted ones
                // without some of theirs.
                let suffix = &self.suffix[..];
                for mut name in self.select.iter().map(String::as_str) {
                    kept.iter_mut().for_each(|kept| kept.push(name));
                    while let Some(shorter) = name.strip_suffix(suffix).filter(|of| *of != name) {
                        kept.iter_mut().for_each(|kept| kept.push(shorter));
                        name = shorter;
                    }
                }
            }
            let [left_kept, right_kept] = kept;
            left.keep_only(left_kept.into_iter());
            right.keep_only(right_kept.into_iter());
        }
        Ok((left, right))
    }

    fn null_equality(&self) -> NullEquality {
        if self.null_equal { NullEquality::NullEqualsNull } else { NullEquality::NullEqualsNothing }
    }
}

/// The positions of the wanted columns in the result.
fn positions(wanted: &[String], result: &Schema) -> anyhow::Result<Vec<usize>> {
    let position = |name: &String| {
        result.index_of(name).map_err(|_| {
            let known: Vec<_> = result.fields().iter().map(|field| field.name().as_str()).collect();
            let known = known.join(", ");
            WrongUse::error(format!("the result has no column {name:?}: choose from {known}"))
        })
    };
    wanted.iter().map(position).collect()
}

/// A key of the wrong type is wrong use of the command line.
fn wrong_use(error: JoinError) -> anyhow::Error {
    WrongUse::error(error.to_string())
}
