//! `workahead advise joins`: plans beside this machine's limits.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;
use workahead_advise::{JOINS_STUDY, JoinAnswer, JoinsAnswer, JoinsRequest, size};
use workahead_machine::limits::Limits;
use workahead_machine::{Machine, regular_file};
use workahead_study::engine::Stop;
use workahead_study::label;
use workahead_study::plans::PlanText;
use workahead_study::results::Results;
use workahead_study::runner::End;
use workahead_study::spec::Spec;
use workahead_workloads::session::Dialect;
use workahead_workloads::sql_file::{FILE_BYTES_MAX, split};

use crate::commands::study::arguments::{DataArguments, OutArguments, ServerArguments};
use crate::commands::study::limits::LimitsArguments;
use crate::commands::study::run_session::{Outcome, RunSession, Session};
use crate::commands::study::{duration, summary};
use crate::errors::WrongUse;
use crate::{interrupt, output, supervisor};

/// Joins that are shown; JSON has all.
const SHOWN: usize = 12;
/// Of those, on a result's page.
const SHOWN_ON_PAGE: usize = 5;
/// A plan's text, as a result keeps it.
const PLAN_BYTES_MAX: u64 = 4 << 20;
/// Characters of a statement or a join in a table.
const LENGTH_MAX: usize = 40;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Ask {
    #[command(flatten)]
    workload: JoinsWorkload,
    /// The engine of a private copy: postgres, mariadb, duckdb or datafusion, whose joins are then
    /// compared with ours
    #[arg(long, default_value = "postgres", conflicts_with_all = ["attach", "plan"])]
    engine: String,
    #[command(flatten)]
    out: OutArguments,
    /// Print the study that would be run, to save and edit, and run nothing
    #[arg(long, conflicts_with = "plan")]
    study: bool,
    #[command(flatten)]
    data: DataArguments,
    #[command(flatten)]
    server: ServerArguments,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  workahead advise joins --plan plan.json
  workahead advise joins --tpch 0.1 --engine duckdb
  workahead advise joins --file reports.sql --attach postgres://me@db.example/shop";

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct JoinsWorkload {
    /// Plans that EXPLAIN printed, best with ANALYZE: JSON of PostgreSQL, MariaDB or DuckDB, or
    /// DataFusion's text
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "attach")]
    plan: Vec<PathBuf>,
    /// Statements, with semicolons between them
    #[arg(long)]
    sql: Option<String>,
    /// A file of statements
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// TPC-H's 22 queries at this scale, 1 being a GB
    #[arg(long, value_name = "SCALE")]
    tpch: Option<f64>,
}

#[derive(Serialize)]
struct Facts<'a> {
    dir: Option<&'a Path>,
    report: Option<&'a Path>,
    #[serde(flatten)]
    answer: &'a JoinsAnswer,
}

impl Ask {
    pub(super) fn run(mut self) -> anyhow::Result<ExitCode> {
        if self.server.prints_role()? {
            return Ok(ExitCode::SUCCESS);
        }
        if !self.workload.plan.is_empty() {
            return self.read_plans();
        }
        if let Some(engine) = self.server.engine()? {
            self.engine = engine.to_owned();
        }
        let text = self.request()?.study();
        let text = text.map_err(|error| WrongUse::error(error.to_string()))?;
        if self.study {
            output::text(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        let spec = Spec::parse(JOINS_STUDY, &text)?;
        if let Some(status) = supervisor::supervised(&spec, &self.data)? {
            return Ok(status);
        }
        let setup = self.server.setup(&spec, &self.data)?;
        let (session, stop) = supervisor::begin(&self.engine, &self.data, &[], || {
            Session::begin(spec, None, setup, |spec| self.out.claim(spec))
        })?;
        let dir = session.dir.clone();
        let run = RunSession { session, stop, duration: duration::DurationLimit::ANY };
        match run.samples(LimitsArguments::MEASURED)? {
            Outcome { end: End::Stopped, .. } => {
                let dir = dir.display();
                bail!(
                    "interrupted: `workahead study resume {dir}` continues, then `workahead advise \
                     show {dir}`"
                )
            }
            Outcome { .. } => show(&Results::load(&dir)?, &dir, self.json),
        }
    }

    fn read_plans(&self) -> anyhow::Result<ExitCode> {
        let read = |path: &PathBuf| -> anyhow::Result<(String, PlanText)> {
            let text = regular_file::read_named_text(path, PLAN_BYTES_MAX)
                .with_context(|| format!("can't read the plan in {}", path.display()))?;
            let plan = PlanText::of_any(text)
                .with_context(|| format!("can't read the plan in {}", path.display()))?;
            let name = path.file_name().unwrap_or(path.as_os_str());
            Ok((name.to_string_lossy().into_owned(), plan))
        };
        let plans = self.workload.plan.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
        let stop = Stop::from(interrupt::listen()?);
        let limits = LimitsArguments::MEASURED.known(&Machine::here(), &stop)?;
        let answer = JoinsAnswer::of_plans(&plans, &limits.ok_or_else(no_limits)?)?;
        print(&answer, None, self.json)
    }

    fn request(&self) -> anyhow::Result<JoinsRequest> {
        let mut request = JoinsRequest {
            engine: self.engine.clone(),
            tpch: self.workload.tpch,
            statements: Vec::new(),
        };
        let text = match (&self.workload.sql, &self.workload.file) {
            (Some(text), _) => text.clone(),
            (_, Some(path)) => regular_file::read_named_text(path, FILE_BYTES_MAX)
                .with_context(|| format!("can't read the statements in {}", path.display()))?,
            _ => return Ok(request),
        };
        let dialect = match self.engine.as_str() {
            "mariadb" => Dialect::MariaDb,
            "duckdb" => Dialect::DuckDb,
            "datafusion" => Dialect::DataFusion,
            _ => Dialect::Postgres,
        };
        let statements = split(&text, dialect).map_err(WrongUse::error)?;
        let reading = statements.into_iter().filter(|statement| statement.only_reads);
        request.statements = reading.map(|statement| statement.text).collect();
        Ok(request)
    }
}

fn no_limits() -> anyhow::Error {
    anyhow::anyhow!("this machine's limits are not known: `workahead limits` measures them")
}

/// Writes the page of a result, and prints its answer.
pub(super) fn show(results: &Results, dir: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let limits = results.record.limits.clone();
    let limits = limits.and_then(Limits::read);
    let Some(answer) = JoinsAnswer::of(results, &limits.ok_or_else(no_limits)?) else {
        bail!("{} is not a result of `workahead advise joins`", dir.display());
    };
    let answer = answer?;
    if answer.statements == 0 {
        let failure = results.run_plan.cells.iter().find_map(|cell| results.failure(cell.index));
        bail!("no statement has a plan: {}", failure.unwrap_or("the engine printed none"));
    }
    let first = answer.joins.iter().filter(|join| join.saved_ms > 0.0).take(SHOWN_ON_PAGE);
    let notes: Vec<String> = first.map(line).chain(answer.notes.iter().cloned()).collect();
    let report = workahead_report::write_answered(dir, results, &answer.sentence, &notes)?;
    print(&answer, Some((dir, &report)), json)
}

fn print(
    answer: &JoinsAnswer,
    page: Option<(&Path, &Path)>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let (dir, report) = page.unzip();
    output::show(json, &Facts { dir, report, answer }, || text(answer, report))?;
    Ok(ExitCode::SUCCESS)
}

fn text(answer: &JoinsAnswer, report: Option<&Path>) -> String {
    let mut text = answer.sentence.clone();
    if !answer.joins.is_empty() {
        let header = ["", "join", "touches", "lines", "takes ms", "saves ms at most"];
        let mut table = summary::table(&header);
        for join in answer.joins.iter().take(SHOWN) {
            table.add_row(row(join));
        }
        summary::right(&mut table, 2..header.len());
        text = format!("{text}\n\n{}", summary::lines(table));
        if let more @ 1.. = answer.joins.len().saturating_sub(SHOWN) {
            text = format!("{text}\nand {more} more, which save less: --json has all");
        }
    }
    text = format!("{text}\n\n{}", answer.notes.join("\n"));
    match report {
        Some(report) => format!("{text}\n\nreport: {}", report.display()),
        None => text,
    }
}

/// A join in a sentence of its own.
fn line(join: &JoinAnswer) -> String {
    let of = join.time_ms.map(|time| format!(" of {}", summary::significant(time)));
    format!(
        "{}, {}: touches {}, {} lines; at most {}{} ms could be saved.",
        shortened(&join.statement),
        join.name(),
        touched(join),
        summary::significant(join.lines),
        summary::significant(join.saved_ms),
        of.unwrap_or_default()
    )
}

fn touched(join: &JoinAnswer) -> String {
    match join.through_index {
        true => format!("≤ {}", size(join.bytes)),
        false => size(join.bytes),
    }
}

fn row(join: &JoinAnswer) -> [String; 6] {
    [
        shortened(&join.statement),
        shortened(&join.name()),
        touched(join),
        summary::significant(join.lines),
        join.time_ms.map(summary::significant).unwrap_or_default(),
        summary::significant(join.saved_ms),
    ]
}

fn shortened(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    label::cut(&text, LENGTH_MAX).into_owned()
}
