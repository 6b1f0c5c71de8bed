//! `workahead sql`: statements over files, with Workahead's joins in DataFusion or without them.
//!
//! ```text
//! --table, --data ──► tables ─┐
//! QUERY, --file, --tpch ──► statements ──► one after the other ──► rows: shown, or into --out
//!                                                          └─────► facts
//! ```

mod facts;
#[cfg(feature = "cluster")]
mod remote;
#[cfg(not(feature = "cluster"))]
#[path = "sql/remote_absent.rs"]
mod remote;
mod rows;
mod tasks;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use clap::ArgGroup;
use workahead_sql::session::{Joiner, Options, Session, SessionError};
use workahead_workloads::tpch::Table;

use crate::errors::WrongUse;
use crate::interrupt::{self, Interrupted};
use crate::memory::Memory;
use crate::threads::Threads;
use remote::Remote;
use rows::FormatName;
use tasks::{Tasks, Which};

const EXAMPLES: &str = "\
Examples:
  workahead sql \"select count(*) from o join l on o_orderkey = l_orderkey\" \\
      --table o=tpch/orders.parquet --table l=tpch/lineitem.parquet
  workahead sql \"explain analyze select …\" --table o=orders.csv --memory-limit 300MB
  workahead sql -f report.sql --table o=orders.parquet --out report.parquet
  workahead sql --tpch all --data tpch            after: workahead data tpch --out tpch
  workahead sql --tpch 9 --data tpch --stock      the same by DataFusion's own joins
  workahead sql --tpch 9 --data tpch --cluster df://127.0.0.1:50050      by `workahead cluster`

Tables are Parquet, CSV with a line of names, JSON lines (.json, .ndjson) or Arrow IPC (.arrow), by
the end of the file's name, or a directory of Parquet files. SET workahead.design = 'buckets',
say, changes how keys are kept, and SET workahead.build_side = 'measured' lets each join find out
which side is the smaller one;
SET datafusion.… whatever DataFusion lets be set; --set NAME=VALUE does the same from outside.
With --json the facts are printed, and rows go into --out or are only counted.";

/// Who waits longer gives no limit.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The arguments of `workahead sql`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("what").required(true).args(["query", "file", "tpch"]),
)]
pub(crate) struct Args {
    /// What to run; several statements with semicolons between them
    #[arg(value_name = "QUERY")]
    query: Option<String>,
    /// The statements are in a file
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A query of TPC-H by its number, or all 22
    #[arg(long, value_name = "N|all", requires = "data")]
    tpch: Option<Which>,
    /// TPC-H's tables, as `workahead data tpch` writes them
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A file and what it is called in SQL; repeat for several
    #[arg(long = "table", value_name = "NAME=FILE")]
    tables: Vec<String>,
    /// An option for all statements, as SET has it: workahead.design=buckets; repeat for several
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Leave the joins to DataFusion
    #[arg(long)]
    stock: bool,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    threads: Threads,
    /// Have a cluster answer, by the line that `workahead cluster` prints; --threads is then how
    /// many partitions plans have [default: one for each of its slots]
    #[arg(long, value_name = "URL", conflicts_with_all = ["memory_limit", "spill_dir"])]
    cluster: Option<String>,
    /// Give up statements that take longer than so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// How rows are written [default: as --out's name ends, or a table]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<FormatName>,
    /// Write the rows (of the last statement) to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print facts as JSON for programs
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let goal = rows::Goal::of(args.format, args.out, args.json)?;
    let stop = interrupt::listen()?;
    let (threads, given) = (args.threads.chosen(), args.threads.given());
    let (memory_limit, spill_directory) = args.memory.into_parts();
    let options = Options {
        joiner: if args.stock { Joiner::Stock } else { Joiner::Ours },
        threads,
        memory_limit,
        spill_directory,
    };
    let (remote, session) = match &args.cluster {
        Some(url) => Remote::session(url, options.joiner, given)?,
        None => (Remote::none(), Session::new(&options)?),
    };
    let session = session.with_timeout(args.timeout);
    let tasks = match (args.query, args.file, args.tpch) {
        (Some(query), ..) => Tasks::of_text(&session, &query)?,
        (_, Some(file), _) => {
            let text = std::fs::read_to_string(&file);
            let text = text.with_context(|| format!("can't read {}", file.display()))?;
            Tasks::of_text(&session, &text)?
        }
        (.., Some(which)) => Tasks::of_tpch(&session, which)?,
        _ => unreachable!("clap asks for one of them"),
    };
    goal.check(&tasks)?;
    for setting in &args.settings {
        let (name, value) = named("--set", setting, "VALUE")?;
        set(&session, name, value, stop)?;
    }
    for table in &args.tables {
        let (name, path) = named("--table", table, "FILE")?;
        session.register(name, path.as_ref())?;
    }
    if let Some(data) = &args.data {
        for table in Table::ALL {
            let path = data.join(format!("{table}.parquet"));
            session.register(table.name(), &path).with_context(|| {
                format!("no TPC-H there: run workahead data tpch --out {}", data.display())
            })?;
        }
    }
    let facts = tasks.run(&session, &remote, &goal, stop)?;
    let by = facts::By { options: &options, cluster: args.cluster.as_deref() };
    facts::print(&by, facts, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// What stands on both sides of `=`.
fn named<'a>(option: &str, pair: &'a str, what: &str) -> anyhow::Result<(&'a str, &'a str)> {
    let halves = pair.split_once('=').filter(|(name, is)| !name.is_empty() && !is.is_empty());
    let wrong = || format!("{option} {pair:?} is no pair: write {option} NAME={what}");
    halves.ok_or_else(|| WrongUse::error(wrong()))
}

/// `SET` of an option, whose name is taken as it stands.
fn set(
    session: &Session,
    name: &str,
    value: &str,
    stop: &'static AtomicBool,
) -> anyhow::Result<()> {
    let set = format!("SET \"{}\" = '{}'", name.replace('"', "\"\""), value.replace('\'', "''"));
    for statement in session.statements(&set).map_err(failed)? {
        let mut answer = session.run(&statement, stop).map_err(failed)?;
        while answer.next_batch().map_err(failed)?.is_some() {}
    }
    Ok(())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0.0);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|time| !time.is_zero() && *time < YEAR)
        .ok_or_else(|| "give seconds, such as 30 or 0.5".to_owned())
}

/// Whose fault it was.
fn failed(error: SessionError) -> anyhow::Error {
    match error {
        SessionError::Stopped => Interrupted.into(),
        error if error.is_of_the_query() => WrongUse::error(error.to_string()),
        error => error.into(),
    }
}
