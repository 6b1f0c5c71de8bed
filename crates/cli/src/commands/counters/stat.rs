//! `workahead counters stat`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use workahead_counters::counter::{ALL, Choice, Counter};
use workahead_counters::event::Privilege;
use workahead_counters::live::Live;
use workahead_counters::metric;
use workahead_counters::metrics::{MetricValue, Metrics};
use workahead_counters::rotation::SLOT_S;
use workahead_counters::stream::Stream;
use workahead_counters::table::Table;
use workahead_counters::target::{Command, ControlGroup, Machine as All, Processes, Targets};
use workahead_machine::Machine;
use workahead_reproduce::published;
use workahead_reproduce::tables::{PaperTable, StreamFigures, fill};
use workahead_study::file;

use super::out::{self, Out};
use super::target::{End, Subject};
use super::{render, side_by_side, target};
use crate::errors::WrongUse;
use crate::interrupt;

const HELP: &str = "\
Examples:
  workahead counters stat -- sort big.txt > sorted.txt
  workahead counters stat --json -o facts.json -- ./program | less
  workahead counters stat --metrics cpi,l2,branch --sides -- ./program
  workahead counters stat --metrics all --all --seconds 60 --record minute.jsonl
  workahead counters stat --recorded minute.jsonl
  workahead counters stat --recorded minute.jsonl --tables

Where the events do not fit the counters at once they take turns, a slot each. A slot in which
another program had the counters is thrown away and counted, never extrapolated; every value is
normalised by the instructions of its own slot.

A command keeps standard output for itself: its figures go to standard error, or where -o says. Its
exit status is passed on, 128 and the signal's number where one ended it. When the time given is
over, or with Ctrl-C, a command that still runs is ended with all that it started (SIGTERM, two
seconds later SIGKILL), and the counts until then are shown.";

/// The default group of metrics.
const USUAL: &str = "cpi";

/// One slot for the whole run, where nothing takes turns.
const WHOLE_S: f64 = 1e9;

/// Arguments of live counting, which a recording excludes.
const LIVE: [&str; 8] = ["record", "command", "pid", "cgroup", "all", "seconds", "sides", "slot"];

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    target: target::TargetArguments,
    /// Groups of metrics, by comma; `all` is every one [default: cpi, or all that was recorded]
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    metrics: Vec<String>,
    /// User and kernel apart, each in slots of its own
    #[arg(long)]
    sides: bool,
    /// Each CPU by itself too
    #[arg(long)]
    per_cpu: bool,
    /// How long each group of events is counted before the next has its turn, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    slot: f64,
    /// Record the counts, slot by slot
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Count nothing, show a recording
    #[arg(long, value_name = "FILE", conflicts_with_all = LIVE)]
    recorded: Option<PathBuf>,
    /// Every table of Keeton et al. (1998), the printed figures beside those counted: counts every
    /// metric, user and kernel apart
    #[arg(long, conflicts_with_all = ["metrics", "per_cpu"])]
    tables: bool,
    #[command(flatten)]
    out: Out,
    /// JSON for programs
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    if args.tables {
        args.metrics = vec![ALL.to_owned()];
        args.sides = true;
    }
    check(&args)?;
    if let Some(path) = &args.recorded {
        let mut stream = read(path)?;
        if !args.metrics.is_empty() {
            stream.header.metrics.clone_from(&args.metrics);
        }
        show(&args, &stream)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.metrics.is_empty() {
        args.metrics.push(USUAL.to_owned());
    }
    let stop = interrupt::listen()?;
    let (stream, end) = count(&args, stop)?;
    interrupt::go_on();
    if let Some(path) = &args.record {
        let mut bytes = Vec::new();
        stream.write(&mut bytes).context("can't write the recording")?;
        file::write_whole(path, &bytes)?;
    }
    show(&args, &stream)?;
    Ok(render::status(end, &args.target))
}

fn check(args: &Args) -> anyhow::Result<()> {
    if !SLOT_S.contains(&args.slot) {
        let (least, most) = (SLOT_S.start(), SLOT_S.end());
        return Err(WrongUse::error(format!("--slot must be {least} to {most} seconds")));
    }
    for group in args.metrics.iter().filter(|group| *group != ALL) {
        metric::of_group(group).map_err(|error| WrongUse::error(error.to_string()))?;
    }
    args.record.as_deref().map_or(Ok(()), out::writable)?;
    args.out.check()
}

fn read(path: &Path) -> anyhow::Result<Stream> {
    let open = || format!("can't open {}", path.display());
    let stream = Stream::read(&mut BufReader::new(File::open(path).with_context(open)?));
    stream.with_context(|| path.display().to_string())
}

fn count(args: &Args, stop: &std::sync::atomic::AtomicBool) -> anyhow::Result<(Stream, End)> {
    let machine = Machine::here();
    let privileges = match args.sides {
        true => vec![Privilege::User, Privilege::Kernel],
        false => vec![Privilege::Both],
    };
    let choice =
        Choice { metrics: args.metrics.clone(), privileges, slot_s: args.slot, seed: 0, spare: 0 };
    let mut counter =
        Counter::prepare(&choice, Table::here(), &mut Live, &machine).explained(&machine);
    let mut subject = args.target.subject()?;
    let takes_turns = counter.header().groups.len() > 1;
    if !takes_turns {
        counter = counter.fitted(WHOLE_S);
    }
    let targets = counted(&subject, &machine, takes_turns || args.per_cpu);
    let running = counter.begin(0, targets, Box::new(Live)).context("no thread to count on")?;
    running.begun();
    let end = subject.attend(args.target.seconds(), stop)?;
    Ok((running.end(), end))
}

/// The targets that counters are opened for. A command whose events all fit is counted from its
/// first instruction to its last; targets of groups that take turns are looked up anew for each
/// slot.
fn counted(subject: &Subject, machine: &Machine, by_cpu: bool) -> Box<dyn Targets> {
    let cpus = || machine.cpus.online.iter().filter_map(|cpu| u32::try_from(cpu).ok()).collect();
    match subject {
        Subject::Command(child) if !by_cpu => Box::new(Command { pid: child.id() }),
        Subject::Command(child) => Box::new(Processes::of(child.id(), cpus())),
        Subject::Process(pid) => Box::new(Processes::of(*pid, cpus())),
        Subject::Group(directory) => {
            Box::new(ControlGroup { directory: directory.clone(), cpus: cpus() })
        }
        Subject::Machine => Box::new(All { cpus: cpus() }),
    }
}

#[derive(Serialize)]
struct Facts<'a> {
    machine: &'a str,
    table: &'a Option<String>,
    constructed: &'a Option<String>,
    target: &'a str,
    slots: usize,
    slots_thrown_away: usize,
    lacks: &'a Option<String>,
    metrics: &'a [MetricValue],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tables: Vec<PaperTable>,
}

fn show(args: &Args, stream: &Stream) -> anyhow::Result<()> {
    let metrics = Metrics::of(stream);
    let tables = match args.tables {
        true => fill(published::keeton(), &StreamFigures::of(stream, &metrics)),
        false => Vec::new(),
    };
    if !args.json {
        let text = match args.tables {
            true => side_by_side::tables(stream, published::keeton(), &tables),
            false => render::stat(stream, &metrics, args.per_cpu),
        };
        return args.out.text(&text, &args.target);
    }
    let facts = Facts {
        machine: &stream.header.machine,
        table: &stream.header.table,
        constructed: &stream.header.constructed,
        target: &stream.header.target,
        slots: stream.slots.len(),
        slots_thrown_away: stream.spoilt(),
        lacks: &stream.header.lacks,
        metrics: metrics.values(),
        tables,
    };
    args.out.json(&facts, &args.target)
}
