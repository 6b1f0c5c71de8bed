//! `workahead scheduler test`: tests the scheduler on this machine with a load of its own.
//!
//! ```text
//!   two programs with threads on every CPU,
//!   one that answers requests ──────────────── counted under ──► the kernel's own scheduler
//!                                                              ► ours without a bonus
//!                                                              ► ours with the given settings
//!                                                              ► ours without a bound
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use serde::Serialize;
use workahead_machine::Machine;
use workahead_scheduler::{
    Bonus, Observer, Remote, Roles, Scheduler, Settings, Stats, Window, attachable, changed,
};

use super::Words;
use super::load::{Kind, Program, Running};
use crate::commands::study::summary;
use crate::interrupt::{self, Interrupted};
use crate::output;

const EXAMPLE: &str = "Examples:\n  workahead scheduler test\n  \
                       workahead scheduler test bonus=5ms roles=cache --window 1s --json";

/// The test.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Args {
    #[command(flatten)]
    words: Words,
    /// How long each of the four configurations is measured
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = super::time)]
    window: Duration,
    /// Threads of each program on each CPU
    #[arg(long, value_name = "N", default_value_t = 8)]
    threads: usize,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// Number of competing programs that spin.
const PROGRAMS: usize = 2;
/// Time for new settings to take effect.
const SETTLE_TIME: Duration = Duration::from_millis(500);
/// Lifetime of the load beyond the windows.
const LOAD_MARGIN: Duration = Duration::from_secs(30);

/// The result of the test.
#[derive(Debug, Serialize)]
struct Comparison {
    kernel: String,
    attach_s: f64,
    detach_s: f64,
    /// Most instructions that the kernel's verifier checked in a program.
    verified_max: u32,
    default: BTreeMap<&'static str, f64>,
    no_bonus: BTreeMap<&'static str, f64>,
    itas: BTreeMap<&'static str, f64>,
    /// By the paper's pure bonus.
    unbounded: BTreeMap<&'static str, f64>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let counting = Settings { survey: true, ..Settings::default() };
    let (settings, roles) = changed(counting, args.words.each())?;
    attachable()?;
    let machine = Machine::here();
    let roles = match roles {
        Some(roles) => roles,
        None => Roles::whole_machine(&machine)?,
    };
    let leave = interrupt::listen()?;
    let load = start(args.threads, 4 * (args.window + SETTLE_TIME) + LOAD_MARGIN)?;
    let comparison = measure(machine, &settings, &roles, |read| {
        wait(SETTLE_TIME, leave)?;
        let before = read()?;
        wait(args.window, leave)?;
        Ok(read()?.since(&before))
    })?;
    drop(load);
    ensure!(Remote::is_vacant()?, "the scheduler is still attached after it was stopped");
    output::show(args.json, &comparison, || render(&comparison))?;
    let [with, without] =
        [&comparison.itas, &comparison.no_bonus].map(|figures| figures.get("same_share"));
    match (with, without) {
        (Some(with), Some(without)) if settings.bonus_ns() == 0 || with > without => Ok(()),
        _ => bail!("switches stay within a group no more often than without a bonus"),
    }
}

type ReadStats<'a> = dyn Fn() -> Result<Stats, workahead_scheduler::Error> + 'a;

/// Measures all configurations; `count` counts for a window.
fn measure(
    machine: Machine,
    settings: &Settings,
    roles: &Roles,
    count: impl Fn(&ReadStats<'_>) -> anyhow::Result<Stats>,
) -> anyhow::Result<Comparison> {
    let observer = Observer::attach(settings.key, &Roles::alone())?;
    let default = count(&|| observer.stats())?.figures();
    drop(observer);
    let started = Instant::now();
    let scheduler = Scheduler::attach(&Settings { bonus: Bonus::Ns(0), ..*settings }, roles)?;
    let attach_s = started.elapsed().as_secs_f64();
    let remote = scheduler.remote();
    let no_bonus = count(&|| remote.stats())?.figures();
    remote.set(settings)?;
    let itas = count(&|| remote.stats())?.figures();
    remote.set(&Settings { max_delay_ns: None, ..*settings })?;
    let unbounded = count(&|| remote.stats())?.figures();
    if let Some(ended) = remote.ended()? {
        bail!("the kernel took its tasks back ({}): {}", ended.reason, ended.message);
    }
    let verified = Remote::verified().into_iter().map(|program| program.instructions);
    let verified_max = verified.max().unwrap_or_default();
    let started = Instant::now();
    scheduler.stop()?;
    let detach_s = started.elapsed().as_secs_f64();
    let kernel = machine.kernel.unwrap_or_default();
    Ok(Comparison { kernel, attach_s, detach_s, verified_max, default, no_bonus, itas, unbounded })
}

pub(super) fn wait(time: Duration, leave: &AtomicBool) -> anyhow::Result<()> {
    let started = Instant::now();
    while started.elapsed() < time {
        if leave.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
        }
        std::thread::sleep(Duration::from_millis(50).min(time));
    }
    Ok(())
}

/// Starts the programs.
fn start(threads: usize, time: Duration) -> anyhow::Result<Running> {
    let mut load = Running::default();
    let spins = Program { kind: Kind::Yield, threads, is_pinned: true, nice: 0 };
    let answers = Program { kind: Kind::Answer, threads: 1, ..spins };
    for program in [spins; PROGRAMS].into_iter().chain([answers]) {
        load.start(program, Window { settle: Duration::ZERO, time })?;
    }
    Ok(load)
}

/// Rows of the table: label, figure, factor, unit.
const ROWS: [(&str, &str, f64, &str); 9] = [
    ("switches within a group", "same_share", 1.0, ""),
    ("group on several CPUs", "corun_share", 1.0, ""),
    ("chances taken", "taken_share", 1.0, ""),
    ("switches", "switches", 1.0, ""),
    ("wake-up to run, 99 %", "latency_ns_p99", 1e-6, " ms"),
    ("wake-up to run, longest", "latency_ns_max", 1e-6, " ms"),
    ("longest wait so far", "wait_max_ns", 1e-6, " ms"),
    ("threads examined, mean", "scanned_mean", 1.0, ""),
    ("time of a decision", "decide_ns", 1.0, " ns"),
];

fn render(comparison: &Comparison) -> String {
    let mut table = summary::table(&["", "the kernel's own", "ours, no bonus", "ours", "no bound"]);
    for (words, name, factor, unit) in ROWS {
        let figure = |figures: &BTreeMap<&str, f64>| {
            let counted = decisions(figures) > 0.0 || COUNTED.contains(&name);
            let each = if name == "decide_ns" { decisions(figures) } else { 1.0 };
            let value = figures.get(name).filter(|_| counted).map(|value| value * factor / each);
            value.map_or("–".to_owned(), |value| match value >= 100.0 {
                true => format!("{value:.0}{unit}"),
                false => format!("{value:.3}{unit}"),
            })
        };
        let Comparison { default, no_bonus, itas, unbounded, .. } = comparison;
        let [default, none, itas, unbounded] = [default, no_bonus, itas, unbounded].map(figure);
        table.add_row([words.to_owned(), default, none, itas, unbounded]);
    }
    summary::right(&mut table, 1..5);
    format!(
        "Linux {}: attached in {:.2} s, detached in {:.2} s, at most {} instructions verified\n\n{}",
        comparison.kernel,
        comparison.attach_s,
        comparison.detach_s,
        comparison.verified_max,
        summary::lines(table)
    )
}

/// Figures that are counted under either scheduler.
const COUNTED: [&str; 6] =
    ["same_share", "corun_share", "switches", "latency_ns_p99", "latency_ns_max", "wait_max_ns"];

fn decisions(figures: &BTreeMap<&str, f64>) -> f64 {
    figures.get("decisions").copied().unwrap_or_default()
}
