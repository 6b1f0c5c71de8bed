//! `workahead sql`: SQL over files in DataFusion, with Workahead's joins or DataFusion's own.
//!
//! ```text
//! --table, --data ──► tables ─┐
//! QUERY, --file, --tpch ──► statements ──► one after the other ──► rows: printed, or to --out
//!                                                          └─────► report
//! ```

#[cfg(feature = "cluster")]
mod remote;
#[cfg(not(feature = "cluster"))]
#[path = "sql/remote_absent.rs"]
mod remote;
mod report;
mod rows;
mod tasks;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use clap::ArgGroup;
use workahead_machine::guarded::guarded_everywhere;
use workahead_machine::regular_file;
use workahead_sql::session::{Joiner, Options, Session, SessionError};
use workahead_workloads::tpch::Table;

use crate::errors::WrongUse;
use crate::interrupt::{self, Interrupted};
use crate::memory::Memory;
use crate::threads::Threads;
use remote::Remote;
use rows::FormatName;
use tasks::{Tasks, TpchQueries};

const EXAMPLES: &str = "\
Examples:
  workahead sql \"select count(*) from o join l on o_orderkey = l_orderkey\" \\
      --table o=tpch/orders.parquet --table l=tpch/lineitem.parquet
  workahead sql \"explain analyze select …\" --table o=orders.csv --memory-limit 300MB
  workahead sql -f report.sql --table o=orders.parquet --out report.parquet
  workahead sql --tpch all --data tpch            after workahead data tpch --out tpch
  workahead sql --tpch 9 --data tpch --stock      the same with DataFusion's own joins
  workahead sql --tpch 9 --data tpch --cluster url      on a cluster

Tables are Parquet, CSV with a header line, JSON lines (.json, .ndjson) or Arrow IPC (.arrow), by
the file's extension, or a directory of Parquet files.
SET workahead.layout = 'buckets' changes the layout of join tables; SET workahead.build_side =
'runtime' selects the smaller side at run time; SET datafusion.… changes DataFusion's own options.
--set NAME=VALUE does the same on the command line.
With --json a report is printed, and rows go to --out or are only counted.";

/// The longest file of statements: more would be a dump, not queries.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The longest time limit.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The arguments of `workahead sql`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = EXAMPLES,
    group = ArgGroup::new("what").required(true).args(["query", "file", "tpch"]),
)]
pub(crate) struct Args {
    /// Statements to run, separated by semicolons
    #[arg(value_name = "QUERY")]
    query: Option<String>,
    /// Read the statements from a file
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A query of TPC-H by its number, or all 22
    #[arg(long, value_name = "N|all", requires = "data")]
    tpch: Option<TpchQueries>,
    /// Directory of TPC-H's tables, as written by `workahead data tpch`
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A table's name in SQL, and its file; repeat for several
    #[arg(long = "table", value_name = "NAME=FILE")]
    tables: Vec<String>,
    /// Set an option for all statements, like SET: workahead.layout=buckets; repeat for several
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Leave the joins to DataFusion
    #[arg(long)]
    stock: bool,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    threads: Threads,
    /// Run on the cluster at this URL, as `workahead cluster` prints it, or in a file with it
    #[arg(long, value_name = "URL", env = "WORKAHEAD_CLUSTER", hide_env_values = true)]
    cluster: Option<String>,
    /// Seconds without an answer after which a worker of the cluster counts as dead
    #[arg(long, value_name = "SECONDS", default_value = "4")]
    dead_after: NonZero<u16>,
    /// Cancel statements that take longer than this
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Format of the rows [default: by the extension of --out, or a table]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<FormatName>,
    /// Write the rows (of the last statement) to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print a report as JSON for programs
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let stop = interrupt::listen()?;
    answered(args, stop).map_err(interrupt::named)
}

fn answered(args: Args, stop: &'static AtomicBool) -> anyhow::Result<ExitCode> {
    let destination = rows::Destination::of(args.format, args.out, args.json)?;
    let threads = args.threads.count();
    let (memory_limit, spill_directory) = args.memory.into_parts()?;
    let options = Options {
        joiner: if args.stock { Joiner::Stock } else { Joiner::Ours },
        threads,
        memory_limit,
        spill_directory,
    };
    let (remote, session) = match &args.cluster {
        Some(url) => {
            let dead_after = Duration::from_secs(args.dead_after.get().into());
            Remote::session(url, &options, dead_after, stop)?
        }
        None => (Remote::none(), Session::new(&options)?),
    };
    let session = session.with_timeout(args.timeout);
    let tasks = match (args.query, args.file, args.tpch) {
        (Some(query), ..) => Tasks::of_text(&session, &query, stop)?,
        (_, Some(file), _) => {
            let text = regular_file::read_named_text(&file, FILE_BYTES_MAX);
            let text = text.with_context(|| format!("can't read {}", file.display()))?;
            Tasks::of_text(&session, &text, stop)?
        }
        (.., Some(which)) => Tasks::of_tpch(&session, which, stop)?,
        _ => unreachable!("clap asks for one of them"),
    };
    destination.check(&tasks)?;
    for setting in &args.settings {
        let (name, value) = named("--set", setting, "VALUE")?;
        set(&session, name, value, stop)?;
    }
    for table in &args.tables {
        let (name, path) = named("--table", table, "FILE")?;
        register(&session, name, path.as_ref(), stop)?;
    }
    if let Some(data) = &args.data {
        for table in Table::ALL {
            let path = data.join(format!("{table}.parquet"));
            register(&session, table.name(), &path, stop).with_context(|| {
                format!("no TPC-H tables: run workahead data tpch --out {}", data.display())
            })?;
        }
    }
    let report = decoded(|| tasks.run(&session, &remote, &destination, stop))?;
    let info = report::SessionInfo { options: &options, cluster: remote.url() };
    // The session waits for its tasks, among which are those of connections.
    drop(remote);
    report::print(&info, report, args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Makes a file a table.
fn register(
    session: &Session,
    name: &str,
    path: &Path,
    stop: &'static AtomicBool,
) -> anyhow::Result<()> {
    decoded(|| session.register(name, path, stop).map_err(failed))
}

/// Runs what reads files, or what workers send: a decoder that panics is an error.
fn decoded<T>(run: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    guarded_everywhere(run).unwrap_or_else(|panic| {
        Err(anyhow::anyhow!("the input is damaged, or DataFusion has a defect: {panic}"))
    })
}

/// Splits an argument at `=`.
fn named<'a>(option: &str, pair: &'a str, what: &str) -> anyhow::Result<(&'a str, &'a str)> {
    let halves = pair.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    let wrong = || format!("{option} {pair:?} is not a pair: write {option} NAME={what}");
    halves.ok_or_else(|| WrongUse::error(wrong()))
}

/// Sets an option, whose name is quoted.
fn set(
    session: &Session,
    name: &str,
    value: &str,
    stop: &'static AtomicBool,
) -> anyhow::Result<()> {
    let set = format!("SET \"{}\" = '{}'", name.replace('"', "\"\""), value.replace('\'', "''"));
    for statement in session.statements(&set, stop).map_err(failed)? {
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

/// The error, with the exit status that it leads to.
fn failed(error: SessionError) -> anyhow::Error {
    match error {
        SessionError::Stopped => Interrupted.into(),
        error if error.is_of_the_query() => WrongUse::error(error.to_string()),
        error => error.into(),
    }
}
