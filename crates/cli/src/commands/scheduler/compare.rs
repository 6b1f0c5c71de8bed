//! `workahead scheduler compare`: schedulers under the same loads, by the same instrument.
//!
//! ```text
//!   round ─► scheduler ─► load: programs ──what they did──┐
//!              │            └── counted in the kernel ────┴─► a cell of the record ─► the table,
//!              └─ attached, or another program started                               the page
//! ```
//!
//! Rounds are interleaved: a machine that changes changes for all. What is counted in the kernel is
//! counted by the same programs under each scheduler, which see switches and wake-ups of all
//! classes. Ours counts for itself besides, as it does in use.

mod candidates;
mod loads;
mod page;
mod record;
mod render;
mod rows;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use workahead_machine::{Machine, atomic_file};
use workahead_scheduler::{Key, Observer, Roles, Stats, Window, attachable};

use self::candidates::{AttachedScheduler, Candidate};
use self::loads::{LOADS, Load};
use self::record::{Cell, Record, SchedulerName};
use super::test::wait;
use crate::errors::WrongUse;
use crate::{interrupt, output};

const EXAMPLES: &str = "Examples:\n  \
    workahead scheduler compare --with default,scx_cosmos,scx_lavd,scx_bpfland\n  \
    workahead scheduler compare --with 'itas max-delay=off,scx_cosmos --mm-affinity' \\\n      \
    --load memory --load service --html comparison.html";

/// The comparison.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Schedulers: default, itas, or programs of the scx project, with settings or options after
    /// the name; `itas` is added [default: default, and the others as far as they are installed]
    #[arg(long, value_name = "NAME,NAME,…", value_delimiter = ',')]
    with: Vec<Candidate>,
    /// How long each load is counted under each scheduler in a round
    #[arg(long = "for", value_name = "TIME", default_value = "3s", value_parser = super::time)]
    time: Duration,
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// A load; may be repeated [default: all]
    #[arg(long = "load", value_name = "NAME", value_parser = load)]
    loads: Vec<&'static Load>,
    /// Save the record, after each load
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write a page with pictures
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show a record again; nothing is run
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["with", "rounds", "time", "loads", "out"])]
    from: Option<PathBuf>,
    /// Print the record and its rows as JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Work before a load is counted.
const SETTLE: Duration = Duration::from_millis(500);

/// Others that are compared where they are installed.
const PEERS: [&str; 3] = ["scx_cosmos --mm-affinity", "scx_lavd", "scx_bpfland"];

fn load(name: &str) -> Result<&'static Load, String> {
    let names = || LOADS.iter().map(|load| load.name).collect::<Vec<_>>().join(", ");
    LOADS.iter().find(|load| load.name == name).ok_or_else(|| format!("one of {}", names()))
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let record = match &args.from {
        Some(path) => Record::read(path)?,
        None => measured(args)?,
    };
    if let Some(path) = &args.html {
        atomic_file::write_whole(path, page::html(&record)?.as_bytes())
            .with_context(|| format!("can't write {}", path.display()))?;
    }
    let judged = render::Evaluation::of(&record);
    output::show(args.json, &judged, || render::table(&judged))
}

fn measured(args: &Args) -> anyhow::Result<Record> {
    attachable()?;
    let candidates = candidates(&args.with)?;
    let machine = Machine::here();
    let roles = Roles::by_core(&machine)?;
    let window = Window { settle: SETTLE, time: args.time };
    let loads = match args.loads.is_empty() {
        true => LOADS.iter().collect(),
        false => args.loads.clone(),
    };
    let leave = interrupt::listen()?;
    let mut record = empty(args, &candidates, &machine);
    for round in 0..args.rounds {
        for at in (0..candidates.len()).map(|at| (at + round as usize) % candidates.len()) {
            let candidate = &candidates[at];
            let stage = Stage { round, candidate, window, roles: &roles, leave };
            match candidate.attach(&machine, leave) {
                Ok(attached) => {
                    record.schedulers[at].name = Some(attached.name());
                    stage.run(&loads, &attached, &mut record, args)?;
                    attached.detach()?;
                }
                // Whatever went wrong then, an interruption may be what did it.
                Err(_) if leave.load(Ordering::Relaxed) => {
                    return Err(interrupt::Interrupted.into());
                }
                Err(error) => stage.failed(&loads, &error, &mut record),
            }
        }
    }
    let cells = || record.cells.iter();
    let failure = cells().find_map(|cell| cell.failure.clone()).unwrap_or_default();
    ensure!(cells().any(|cell| cell.failure.is_none()), "nothing could be measured: {failure}");
    Ok(record)
}

/// Those to compare, all of which are there. Of those that nobody named, the ones that are.
fn candidates(named: &[Candidate]) -> anyhow::Result<Vec<Candidate>> {
    let mut candidates = named.to_vec();
    candidates.iter().try_for_each(Candidate::check)?;
    if named.is_empty() {
        candidates = vec!["default".parse()?];
        for peer in PEERS {
            let peer: Candidate = peer.parse()?;
            match peer.check() {
                Ok(()) => candidates.push(peer),
                Err(error) => output::note(&format!("left out: {error}")),
            }
        }
    }
    if !candidates.iter().any(Candidate::is_ours) {
        candidates.insert(1.min(candidates.len()), "itas".parse()?);
    }
    for (at, candidate) in candidates.iter().enumerate() {
        if candidates[..at].contains(candidate) {
            return Err(WrongUse::error(format!("`{}` is there twice", candidate.words)));
        }
    }
    Ok(candidates)
}

fn empty(args: &Args, candidates: &[Candidate], machine: &Machine) -> Record {
    let named = |candidate: &Candidate| SchedulerName {
        words: candidate.words.clone(),
        ours: candidate.is_ours(),
        name: None,
    };
    Record {
        workahead: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: machine.kernel.clone().unwrap_or_default(),
        cpu: machine.processor.clone().unwrap_or_default(),
        cpus: machine.cpus.online.len(),
        cores: machine.cores.len(),
        seconds: args.time.as_secs_f64(),
        rounds: args.rounds,
        schedulers: candidates.iter().map(named).collect(),
        cells: Vec::new(),
    }
}

/// A scheduler in a round.
struct Stage<'a> {
    round: u32,
    candidate: &'a Candidate,
    window: Window,
    roles: &'a Roles,
    leave: &'a AtomicBool,
}

impl Stage<'_> {
    /// Runs the loads and saves the record after each. Failures are in the record.
    fn run(
        &self,
        loads: &[&'static Load],
        attached: &AttachedScheduler,
        record: &mut Record,
        args: &Args,
    ) -> anyhow::Result<()> {
        for load in loads {
            let (round, scheduler) = (self.round + 1, self.candidate.words.clone());
            output::note(&format!("round {round} of {}: {scheduler}, {}", args.rounds, load.name));
            let counted = self.counted(load).and_then(|figures| {
                attached.check()?;
                Ok(figures)
            });
            let (figures, failure) = match counted {
                Ok(figures) => (figures, None),
                Err(error) if error.is::<interrupt::Interrupted>() => return Err(error),
                Err(error) => (BTreeMap::new(), Some(format!("{error:#}"))),
            };
            let load = load.name.to_owned();
            record.cells.push(Cell { round, scheduler, load, figures, failure });
            if let Some(path) = &args.out {
                record.write(path)?;
            }
        }
        Ok(())
    }

    /// None of the loads ran.
    fn failed(&self, loads: &[&'static Load], error: &anyhow::Error, record: &mut Record) {
        output::note(&format!("{}: {error:#}", self.candidate.words));
        record.cells.extend(loads.iter().map(|load| Cell {
            round: self.round + 1,
            scheduler: self.candidate.words.clone(),
            load: load.name.to_owned(),
            figures: BTreeMap::new(),
            failure: Some(format!("{error:#}")),
        }));
    }

    fn counted(&self, load: &'static Load) -> anyhow::Result<BTreeMap<String, f64>> {
        // Before the load: beside one, loading programs takes its time.
        let observer = Observer::attach(Key::AddressSpace, self.roles)?;
        let started = load.start(self.window)?;
        wait(self.window.settle, self.leave)?;
        let before = observer.stats()?;
        wait(self.window.time, self.leave)?;
        let stats = observer.stats()?.since(&before);
        let mut figures = started.finish(self.window)?;
        figures.extend(observed(&stats, self.window.time.as_secs_f64()));
        Ok(figures)
    }
}

/// Figures of what was counted in the kernel in a time.
fn observed(stats: &Stats, seconds: f64) -> impl Iterator<Item = (String, f64)> {
    let delay = |quantile| stats.latency_ns_at(quantile).map(|ns| ns as f64);
    let figures = [
        ("same_share", stats.same_share()),
        ("corun_share", stats.corun_share()),
        ("together_share", stats.set_corun_share()),
        ("switches_per_s", Some(stats.switches as f64 / seconds)),
        ("migrations_per_s", Some(stats.migrations as f64 / seconds)),
        ("wait_ns_max", Some(stats.wait_max_ns as f64)),
        ("wakeup_ns_p50", delay(0.5)),
        ("wakeup_ns_p99", delay(0.99)),
        ("wakeup_ns_p999", delay(0.999)),
    ];
    figures.into_iter().filter_map(|(name, figure)| Some((name.to_owned(), figure?)))
}
