//! `workahead data tpch`: one Parquet file per table.

use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Context;
use indicatif::{HumanBytes, ProgressBar};
use serde::Serialize;
use workahead_machine::links;
use workahead_workloads::WorkloadError;
use workahead_workloads::tpch::{Table, Tpch, Watch, write_parquet};

use crate::errors::WrongUse;
use crate::interrupt::{self, Interrupted};
use crate::threads::Threads;
use crate::{output, progress};

const EXAMPLES: &str = "\
Examples:
  workahead data tpch --scale 1 --out tpch
  workahead data tpch --scale 10 --out big --table orders --table lineitem --threads 8

Writes DIR/<table>.parquet. An existing table is replaced when the new one is complete.
Scale 1 is 8.7 million rows, about 350 MB of Parquet. Generating text needs 300 MB of memory.";

/// The arguments of `workahead data tpch`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The scale factor, from 0.001 to 1000
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    scale: f64,
    /// The directory to write to; created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Only this table; repeat for several [default: all eight]
    #[arg(long = "table", value_name = "TABLE")]
    tables: Vec<String>,
    #[command(flatten)]
    threads: Threads,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    scale: f64,
    threads: usize,
    seconds: f64,
    tables: Vec<TableReport>,
}

#[derive(Serialize)]
struct TableReport {
    table: &'static str,
    path: PathBuf,
    rows: u64,
    bytes: u64,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let tpch = Tpch::new(args.scale).map_err(|error| WrongUse::error(error.to_string()))?;
    let tables = selection(&args.tables)?;
    let threads = args.threads.count();
    let interrupted = interrupt::listen()?;
    let directory = Directory::create(&args.out)?;
    let start = Instant::now();
    let bar = progress::bar(tables.iter().map(|&table| tpch.rows(table)).sum(), "rows");
    let mut reports = Vec::new();
    for table in tables {
        bar.set_message(table.name());
        reports.push(write(tpch, table, &args.out, threads, &Progress { bar: &bar, interrupted })?);
    }
    bar.finish_and_clear();
    directory.keep();
    let seconds = start.elapsed().as_secs_f64();
    let report = Report { scale: args.scale, threads: threads.get(), seconds, tables: reports };
    output::show(args.json, &report, || render(&report))?;
    Ok(ExitCode::SUCCESS)
}

fn selection(names: &[String]) -> anyhow::Result<Vec<Table>> {
    let parsed = names.iter().map(|name| name.parse::<Table>());
    let mut tables = parsed
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| WrongUse::error(error.to_string()))?;
    tables.sort_unstable();
    tables.dedup();
    if tables.is_empty() {
        tables = Table::ALL.to_vec();
    }
    Ok(tables)
}

fn write(
    tpch: Tpch,
    table: Table,
    directory: &Path,
    threads: NonZero<usize>,
    progress: &Progress,
) -> anyhow::Result<TableReport> {
    let path = directory.join(format!("{table}.parquet"));
    match write_parquet(tpch, table, &path, threads, progress) {
        Ok(written) => {
            let (rows, bytes) = (written.rows, written.bytes);
            Ok(TableReport { table: table.name(), path, rows, bytes })
        }
        Err(WorkloadError::Stopped) => {
            Err(Interrupted).with_context(|| format!("{table} was not written"))
        }
        Err(error) => Err(error.into()),
    }
}

fn render(report: &Report) -> String {
    let mut text = String::new();
    for table in &report.tables {
        let bytes = HumanBytes(table.bytes).to_string();
        text += &format!("{:>12} rows  {bytes:>10}  {}\n", table.rows, table.path.display());
    }
    let Report { seconds, threads, .. } = report;
    text + &format!("in {seconds:.1} s on {threads} threads")
}

/// The output directory; one that we created is removed again if it stays empty.
struct Directory<'a> {
    created: Option<&'a Path>,
}

impl<'a> Directory<'a> {
    fn create(path: &'a Path) -> anyhow::Result<Self> {
        let is_there = path.is_dir();
        if !is_there && path.exists() {
            anyhow::bail!("{} is a file: name a directory with --out", path.display());
        }
        links::make_directory(path).with_context(|| format!("can't make {}", path.display()))?;
        Ok(Self { created: (!is_there).then_some(path) })
    }

    fn keep(mut self) {
        self.created = None;
    }
}

impl Drop for Directory<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.created {
            // Fails if it has a complete table, which is kept.
            let _ = fs::remove_dir(path);
        }
    }
}

struct Progress<'a> {
    bar: &'a ProgressBar,
    interrupted: &'static AtomicBool,
}

impl Watch for Progress<'_> {
    fn rows_done(&self, rows: u64) {
        self.bar.inc(rows);
    }
    fn stop(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
