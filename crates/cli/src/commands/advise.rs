//! `workahead advise`: a question about a database, answered in a sentence.
//!
//! ```text
//! question, workload ─► study (--study prints it) ─► rounds of samples ─► sentence, report.html
//!                                                        └─ until it is decided, or --time is over
//! ```

mod joins;

use std::cmp::Ordering;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;
use workahead_advise::{
    Answer, JOINS_STUDY, LOOKS, LevelAnswer, Prices, Question, Request, Verdict, Workload,
};
use workahead_machine::regular_file;
use workahead_study::engine::Stop;
use workahead_study::plans::Label;
use workahead_study::results::Results;
use workahead_study::runner::{End, Event};
use workahead_study::session::{CheckedRunPlan, Setup};
use workahead_study::spec::Spec;

use super::study::arguments::{DataArguments, OutArguments, ServerArguments};
use super::study::limits::LimitsArguments;
use super::study::run_session::{Outcome, RunSession, Session};
use super::study::{duration, summary};
use crate::errors::WrongUse;
use crate::{output, supervisor};

/// Prices are three lines.
const PRICES_BYTES_MAX: u64 = 1 << 20;

const EXAMPLES: &str = "\
Examples:
  workahead advise cores --order-entry 2
  workahead advise clients --sql 'select count(*) from pg_class'
  workahead advise parallelism --tpch 0.1 --levels 1,2,4
  workahead advise smt --file statements.sql --clients 32 --time 20m
  workahead advise joins --plan plan.json
  workahead advise clients --file reads.sql --attach postgres://me@db.example/shop";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Should the server use hardware siblings?
    Smt(Ask),
    /// How many CPUs does the workload need?
    Cores(Ask),
    /// How many processes should work on one query?
    Parallelism(Ask),
    /// How many clients should work at the same time?
    Clients(Ask),
    /// Which joins wait for memory, and what would working ahead give?
    Joins(joins::Ask),
    /// The answer of a result again, e.g. after `study resume`; nothing is run
    Show(Show),
}

#[derive(Debug, clap::Args)]
struct Ask {
    #[command(flatten)]
    workload: WorkloadArguments,
    /// The engine of a private copy: postgres, mariadb, duckdb or datafusion
    #[arg(long, default_value = "postgres", conflicts_with = "attach")]
    engine: String,
    /// Levels to compare [default: 1, 2, 4, … CPUs or degrees; clients up to four times the CPUs]
    #[arg(long, value_delimiter = ',', value_name = "N,N,…")]
    levels: Option<Vec<u32>>,
    /// Clients at work [default: twice the CPUs; one for parallelism]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    clients: Option<u32>,
    /// Length of a sample, e.g. 3s
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration::parse)]
    sample: Duration,
    /// Stop after this time and answer from the samples until then
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration::parse)]
    time: Duration,
    #[command(flatten)]
    shown: ShownArguments,
    #[command(flatten)]
    out: OutArguments,
    /// Print the study that would be run, to save and edit, and run nothing
    #[arg(long)]
    study: bool,
    /// Take hardware siblings out of the machine for the comparison, and put them back (as root)
    #[arg(long)]
    allow_changes: bool,
    #[command(flatten)]
    data: DataArguments,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct WorkloadArguments {
    /// Statements, with semicolons between them
    #[arg(long)]
    sql: Option<String>,
    /// A file of statements
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// TPC-H's 22 queries at this scale, 1 being a GB
    #[arg(long, value_name = "SCALE")]
    tpch: Option<f64>,
    /// Order entry, derived from TPC-C, with this number of warehouses of 100 MB
    #[arg(long, value_name = "WAREHOUSES")]
    order_entry: Option<u32>,
}

#[derive(Debug, clap::Args)]
struct Show {
    /// Directory of a result of `workahead advise`
    dir: PathBuf,
    #[command(flatten)]
    shown: ShownArguments,
}

/// How an answer is judged and shown.
#[derive(Debug, clap::Args)]
struct ShownArguments {
    /// Difference of throughput that is of no matter, in percent
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent)]
    within: f64,
    /// A TOML file with `currency`, `machine_per_hour` and `core_per_hour`: cores by the price of
    /// a million transactions
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Facts<'a> {
    dir: &'a Path,
    report: &'a Path,
    #[serde(flatten)]
    answer: &'a Answer,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Smt(ask) => ask.run(Question::Smt),
        Command::Cores(ask) => ask.run(Question::Cores),
        Command::Parallelism(ask) => ask.run(Question::Parallelism),
        Command::Clients(ask) => ask.run(Question::Clients),
        Command::Joins(ask) => ask.run(),
        Command::Show(show) => show.run(),
    }
}

impl Show {
    fn run(&self) -> anyhow::Result<ExitCode> {
        let results = Results::load(&self.dir)?;
        match results.spec.id == JOINS_STUDY {
            true => joins::show(&results, &self.dir, self.shown.json),
            false => self.shown.show(&self.dir),
        }
    }
}

impl Ask {
    fn run(mut self, question: Question) -> anyhow::Result<ExitCode> {
        if self.server.prints_role()? {
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(engine) = self.server.engine()? {
            self.engine = engine.to_owned();
        }
        self.shown.prices()?;
        let text = self.request(question).study();
        let text = text.map_err(|error| WrongUse::error(error.to_string()))?;
        if self.study {
            output::text(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        let spec = Spec::parse(&question.study_id(), &text)?;
        if let Some(status) = supervisor::supervised(&spec, &self.data)? {
            return Ok(status);
        }
        let setup = self.server.setup(&spec, &self.data)?;
        // Read again for the answer.
        let prices = self.shown.prices.as_slice();
        let (session, stop) = supervisor::begin(&self.engine, &self.data, prices, || {
            check(&spec, &setup)?;
            Session::begin(spec, None, setup, |spec| self.out.claim(spec))
        })?;
        let dir = session.dir.clone();
        if !self.shown.json {
            self.open(question, &session);
        }
        let end = self.samples(session, stop)?;
        match end {
            SamplingEnd::Interrupted => {
                let (dir, answer) = (dir.display(), self.shown.answer(&dir)?.1);
                bail!(
                    "interrupted. {} `workahead study resume {dir}` continues, then `workahead \
                     advise show {dir}`",
                    answer.sentence
                )
            }
            SamplingEnd::Known => self.shown.show(&dir),
        }
    }

    /// Says on standard error what begins, so that it is not silent for minutes.
    fn open(&self, question: Question, session: &Session) {
        let levels = session.run_plan.cells.len() - session.run_plan.skipped.len();
        let time = summary::duration(self.time.as_secs_f64());
        // Standard error may be closed; the run matters more.
        let _ = writeln!(
            std::io::stderr(),
            "{}: {levels} levels, until it is decided, at most {time}; result in {}",
            question.name(),
            session.dir.display()
        );
    }

    fn request(&self, question: Question) -> Request {
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        let most = if question == Question::Clients { 4 * cpus } else { cpus };
        let usual = if question == Question::Parallelism { 1 } else { 2 * cpus };
        Request {
            question,
            engine: self.engine.clone(),
            workload: self.workload.workload(),
            levels: self.levels.clone().unwrap_or_else(|| powers_of_two(most)),
            clients: self.clients.unwrap_or(usual),
            seconds: self.sample.as_secs_f64(),
            hotplug: self.allow_changes,
        }
    }

    /// Samples until the answer is decided, or the time is over.
    fn samples(&self, session: Session, stop: Stop) -> anyhow::Result<SamplingEnd> {
        let (dir, begun) = (session.dir.clone(), Instant::now());
        let mut is_known = false;
        let duration = duration::DurationLimit::ANY;
        let run = RunSession { session, stop: stop.clone(), duration };
        let mut fallen = Vec::new();
        let outcome = run.observed(LimitsArguments::NONE, &mut |event| match event {
            Event::Next { cell, leave_out } => **leave_out = fallen.contains(&cell.index),
            Event::Kept(seen) => {
                is_known |= begun.elapsed() >= self.time;
                if LOOKS.contains(&(seen.repetition + 1))
                    && let Some(look) = Results::load(&dir)
                        .ok()
                        .and_then(|results| Answer::at_look(&results, self.shown.within))
                {
                    is_known |= look.is_decided;
                    fallen = look.fallen;
                }
                if is_known {
                    stop.request();
                }
            }
            _ => {}
        })?;
        Ok(match outcome {
            Outcome { end: End::Stopped, .. } if !is_known => SamplingEnd::Interrupted,
            _ => SamplingEnd::Known,
        })
    }
}

/// Refuses a question that this machine, or the server, can't answer.
fn check(spec: &Spec, setup: &Setup<anyhow::Error>) -> anyhow::Result<()> {
    let checked = CheckedRunPlan::new(spec, setup)?;
    let run_plan = &checked.run_plan;
    if run_plan.cells.len() - run_plan.skipped.len() > 1 {
        return Ok(());
    }
    let reasons = run_plan.skipped.iter().filter_map(|cell| {
        let why = checked.needs.get(*cell)?.impossible.as_ref()?;
        Some(format!("{}: {why}", run_plan.cells[*cell].label(&run_plan.axes)))
    });
    let reasons: Vec<String> = reasons.collect();
    bail!("there is nothing to compare here: {}", reasons.join("; "))
}

/// How the samples ended.
enum SamplingEnd {
    /// By the user.
    Interrupted,
    /// The answer is decided, or there is no time for more.
    Known,
}

impl WorkloadArguments {
    fn workload(&self) -> Workload {
        match self {
            Self { sql: Some(text), .. } => Workload::Sql(text.clone()),
            Self { file: Some(path), .. } => Workload::File(path.clone()),
            Self { tpch: Some(scale), .. } => Workload::Tpch(*scale),
            Self { order_entry, .. } => Workload::OrderEntry(order_entry.unwrap_or(1)),
        }
    }
}

impl ShownArguments {
    fn prices(&self) -> anyhow::Result<Option<Prices>> {
        let Some(path) = &self.prices else { return Ok(None) };
        let text = regular_file::read_named_text(path, PRICES_BYTES_MAX)
            .with_context(|| format!("can't read the prices in {}", path.display()))?;
        let prices = Prices::parse(&text);
        Ok(Some(prices.map_err(|error| WrongUse::error(format!("{}: {error}", path.display())))?))
    }

    fn answer(&self, dir: &Path) -> anyhow::Result<(Results, Answer)> {
        let results = Results::load(dir)?;
        let Some(answer) = Answer::of(&results, self.within) else {
            return Err(WrongUse::error(format!(
                "{} is a result of the study {}, which asks none of these questions: `workahead \
                 study report` shows it",
                dir.display(),
                results.spec.id
            )));
        };
        match self.prices()? {
            Some(prices) => {
                let answer = answer.priced(&prices, &results);
                Ok((results, answer))
            }
            None => Ok((results, answer)),
        }
    }

    /// Writes the page, and prints the answer.
    fn show(&self, dir: &Path) -> anyhow::Result<ExitCode> {
        let (results, answer) = self.answer(dir)?;
        if answer.levels.len() < 2 {
            let why = answer.notes.first().map_or("", String::as_str);
            bail!("nothing can be compared: {why}");
        }
        let report =
            workahead_report::write_answered(dir, &results, &answer.sentence, &answer.notes)?;
        let facts = Facts { dir, report: &report, answer: &answer };
        output::show(self.json, &facts, || text(&answer, &report))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn text(answer: &Answer, report: &Path) -> String {
    let cost = answer.levels.iter().any(|level| level.cost_of_million.is_some());
    let header = ["", answer.unit.as_str(), "of the best (interval)", "p99 ms", "", ""];
    let cost_header = if cost { "a million costs" } else { "" };
    let mut table = summary::table(&[&header[..5], &[cost_header]].concat());
    for level in &answer.levels {
        let figure = |value: Option<f64>| value.map(summary::significant).unwrap_or_default();
        table.add_row([
            level.name.clone(),
            figure(level.throughput),
            of_best(level),
            figure(level.p99_ms),
            remark(level, answer.decided),
            figure(level.cost_of_million),
        ]);
    }
    summary::right(&mut table, 1..4);
    let notes = answer.notes.join("\n");
    let table = summary::lines(table);
    format!("{}\n\n{table}\n\n{notes}\n\nreport: {}", answer.sentence, report.display())
}

fn of_best(level: &LevelAnswer) -> String {
    match (level.of_best, level.of_best_interval) {
        (Some(ratio), Some(interval)) => {
            format!("{ratio:.2} ({:.2} to {:.2})", interval.low, interval.high)
        }
        _ if level.is_best => "best".to_owned(),
        _ => String::new(),
    }
}

fn remark(level: &LevelAnswer, decided: bool) -> String {
    let verdict = match level.verdict {
        Verdict::Suffices => "suffices",
        Verdict::FallsShort => "too little",
        Verdict::Undecided if decided => "",
        Verdict::Undecided => "not decided",
    };
    match level.plan {
        Some(Label::Changed) => format!("{verdict}, another plan"),
        _ => verdict.to_owned(),
    }
}

/// 1, 2, 4, … and `most` itself.
fn powers_of_two(most: u32) -> Vec<u32> {
    let mut levels: Vec<u32> = (0..32).map(|bit| 1 << bit).take_while(|n| *n < most).collect();
    levels.push(most);
    levels
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim().parse::<f64>().ok();
    let in_range =
        |percent: &f64| percent.partial_cmp(&0.1).is_some_and(Ordering::is_ge) && *percent <= 50.0;
    let percent = number.filter(in_range);
    percent.map(|percent| percent / 100.0).ok_or_else(|| {
        format!("`{text}` is not a difference in percent: give one from 0.1 to 50, e.g. 5")
    })
}
