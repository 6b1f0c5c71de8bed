//! `workahead capacity`: the share of a live server's capacity that is in use.
//!
//! ```text
//! URL ─► its user's rights ─► windows, until --for or Ctrl-C ─► sentence, table, page
//!                              └ counters, sessions, /proc        or a refusal in a line
//! ```

mod page;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde::Serialize;
use workahead_advise::capacity::{
    Capacity, CpuWindow, Missing, Refusal, Resource, ResourceAnswer, ServerObservation, Waiting,
    Window,
};
use workahead_engines::observer::{self, Observer, Wait};
use workahead_study::error::StudyError;
use workahead_study::{directory, file};

use super::study::arguments::ObservedServerArguments;
use super::study::{duration, summary};
use crate::errors::WrongUse;
use crate::{interrupt, output};

/// Windows of a day at a second each: memory is bounded.
const WINDOWS_MAX: f64 = 100_000.0;

const EXAMPLES: &str = "\
Examples:
  workahead capacity --attach postgres:///shop
  workahead capacity --attach postgres://me@db.example/shop --for 30m --every 5s --out monday
  workahead capacity --attach 'mysql://me@/shop?socket=/run/mysqld/mysqld.sock' --json

The server is only read. Run it on the server's machine, through its socket, while the load rises
or falls; Ctrl-C ends it early and answers from what was seen.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    server: ObservedServerArguments,
    /// How long to observe
    #[arg(long = "for", value_name = "TIME", default_value = "5m", value_parser = duration::parse)]
    time: Duration,
    /// Length of a window
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration::parse)]
    every: Duration,
    /// Keep the answer, its observations and a page in this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace an existing result, once there is an answer
    #[arg(long, requires = "out")]
    force: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// The result, printed and kept.
#[derive(Serialize)]
struct Facts<'a> {
    answer: Option<&'a Capacity>,
    refusal: Option<&'a Refusal>,
    report: Option<PathBuf>,
    observed: &'a ServerObservation,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.server.prints_role()? {
        return Ok(ExitCode::SUCCESS);
    }
    args.check()?;
    interrupt::listen()?;
    let target = args.server.examined()?;
    args.reserve()?;
    let mut observer = Observer::begin(&target)?;
    if !args.json {
        // Standard error may be closed; the observation matters more.
        let _ = writeln!(
            std::io::stderr(),
            "observing for {}; Ctrl-C answers from the observations until then",
            summary::duration(args.time.as_secs_f64())
        );
    }
    let observed = observe(&mut observer, &args);
    let result = observed.capacity();
    let (answer, refusal) = (result.as_ref().ok(), result.as_ref().err());
    let mut facts = Facts { answer, refusal, report: None, observed: &observed };
    // Observations can't be repeated: they are printed also where they can't be kept.
    let kept = args.keep(&mut facts);
    match (&facts, args.json) {
        (_, true) => output::json(&facts)?,
        (Facts { answer: Some(answer), report, .. }, false) => {
            output::text(&text(answer, report.as_ref()))?;
        }
        (Facts { refusal: Some(refusal), .. }, false) if observed.lost.is_none() => {
            output::text(&format!("No answer: {refusal}."))?;
        }
        _ => {}
    }
    kept?;
    match (observed.lost.is_some(), refusal) {
        (true, Some(refusal)) => bail!("{refusal}"),
        _ => Ok(ExitCode::SUCCESS),
    }
}

impl Args {
    /// Checks that the answer can be kept; an earlier one stays until there is one.
    fn reserve(&self) -> Result<(), StudyError> {
        match (&self.out, self.force) {
            (Some(out), true) => directory::reserve_replacing(out),
            (Some(out), false) => directory::reserve(out),
            (None, _) => Ok(()),
        }
    }

    /// Keeps the answer and what was seen, with a page of an answer.
    fn keep(&self, facts: &mut Facts<'_>) -> anyhow::Result<()> {
        let Some(out) = &self.out else { return Ok(()) };
        self.reserve()?;
        facts.report = facts.answer.map(|_| out.join(directory::REPORT_FILE));
        let text = serde_json::to_string_pretty(&facts)?;
        file::write_in(out, directory::CAPACITY_FILE, text.as_bytes())?;
        // After that, so that no page of an earlier one stands beside it.
        directory::remove_others(out, &[directory::CAPACITY_FILE])?;
        if let Some(answer) = facts.answer {
            page::write(out, answer, facts.observed)?;
        }
        Ok(())
    }

    fn check(&self) -> anyhow::Result<()> {
        let windows = self.time.as_secs_f64() / self.every.as_secs_f64();
        if (1.0..=WINDOWS_MAX).contains(&windows) {
            return Ok(());
        }
        Err(WrongUse::error(format!(
            "--for {:?} and --every {:?} are {windows:.0} windows: give a longer --every, or a \
             --for that is longer than it",
            self.time, self.every
        )))
    }
}

/// Observes until the time is over, an interruption comes, or the server goes away.
fn observe(observer: &mut Observer, args: &Args) -> ServerObservation {
    let begun = Instant::now();
    let (mut windows, mut lost) = (Vec::new(), None);
    while begun.elapsed() + args.every / 2 <= args.time {
        match observer.window(args.every, &interrupt::is_requested) {
            Ok(Some(window)) => windows.push(of_window(&window)),
            Ok(None) => break,
            Err(_) if interrupt::is_requested() => break,
            Err(error) => {
                lost = Some(error.to_string());
                break;
            }
        }
    }
    let missing = observer
        .unseen()
        .iter()
        .map(|unseen| Missing { says: unseen.says.clone(), hides_a_limit: unseen.hides_waits });
    ServerObservation {
        counted: observer.counted().to_owned(),
        windows,
        missing: missing.collect(),
        lost,
    }
}

fn of_window(window: &observer::Window) -> Window {
    let cpu = window.machine.map(|machine| CpuWindow {
        cpus: machine.cpus,
        busy: machine.busy,
        server: machine.server,
        quota: machine.quota,
        delayed: machine.delayed,
        io_pressure: machine.io_pressure,
    });
    let waiting = window.waiting.iter().map(|(wait, sessions)| Waiting {
        resource: match wait {
            Wait::Lock => Resource::Locks,
            Wait::Log => Resource::Log,
            Wait::Latch => Resource::Latches,
            Wait::Disk => Resource::Disk,
        },
        sessions: *sessions,
    });
    Window { seconds: window.seconds, ended: window.ended, cpu, waiting: waiting.collect() }
}

fn text(capacity: &Capacity, report: Option<&PathBuf>) -> String {
    let saturates = format!("saturates at {}/s (interval)", capacity.counted);
    let mut table = summary::table(&["", "in use", &saturates]);
    for resource in &capacity.resources {
        table.add_row([name(resource), in_use(resource), ceiling(resource)]);
    }
    summary::right(&mut table, [1]);
    let table = summary::lines(table);
    let report = report.map(|report| format!("\n\nreport: {}", report.display()));
    let notes = capacity.notes.join("\n");
    format!("{}\n\n{table}\n\n{notes}{}", capacity.sentence, report.unwrap_or_default())
}

fn name(resource: &ResourceAnswer) -> String {
    let name = resource.resource.name();
    name.strip_prefix("its ").or(name.strip_prefix("the ")).unwrap_or(name).to_owned()
}

/// `4.01 of 8.00`, or `0.31 waiting`.
fn in_use(resource: &ResourceAnswer) -> String {
    let mean = summary::significant(resource.mean);
    match resource.of {
        Some(of) => format!("{mean} of {}", summary::significant(of)),
        None => format!("{mean} waiting"),
    }
}

fn ceiling(resource: &ResourceAnswer) -> String {
    let low = resource.interval.map(|interval| summary::significant(interval.low));
    let high = resource.interval.and_then(|interval| interval.high).map(summary::significant);
    match (resource.ceiling_per_s.map(summary::significant), low, high) {
        (Some(ceiling), Some(low), Some(high)) => format!("{ceiling} ({low} to {high})"),
        (Some(ceiling), Some(low), None) => format!("{ceiling} (above {low})"),
        (Some(ceiling), None, _) => ceiling,
        (None, Some(low), _) => format!("none in sight below {low}"),
        (None, None, _) => "none in sight".to_owned(),
    }
}
