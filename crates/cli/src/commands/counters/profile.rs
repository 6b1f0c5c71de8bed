//! `workahead counters profile`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use serde::Serialize;
use workahead_counters::event::Event;
use workahead_counters::profile::{By, Clock, FREQUENCY_MAX_HZ, Options, Profile, Sampler, Target};
use workahead_counters::table::Table;
use workahead_study::file;

use super::out::{self, Out};
use super::{render, target};
use crate::errors::WrongUse;
use crate::interrupt;

const HELP: &str = "\
Examples:
  workahead counters profile -- ./program
  workahead counters profile --pid 4711 --seconds 10 --top 40
  workahead counters profile --pid 4711 --seconds 10 --html profile.html
  workahead counters profile --event MEM_LOAD_RETIRED.L2_MISS -- ./program

Samples are taken by cycles, or by the CPU's timer where there are none. Stacks are unwound from the
program's own tables, so it need not be built in any special way; names come from its symbols, or
from debug files where they are installed.";

fn frequencies() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(FREQUENCY_MAX_HZ))
}

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    target: target::TargetArguments,
    /// Samples a second of each CPU's time
    #[arg(long, short = 'F', value_name = "HZ", default_value_t = 99, value_parser = frequencies())]
    frequency: u32,
    /// Sample by this event of the machine's table instead, for each function's share of it
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// Functions to print
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Write a page with the flame graph
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the stacks, one a line with its samples, for other tools
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    #[command(flatten)]
    out: Out,
    /// JSON for programs
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let by = by(args.event.as_deref())?;
    let options = Options { by, frequency_hz: args.frequency, ..Options::default() };
    for path in args.html.iter().chain(&args.folded) {
        out::writable(path)?;
    }
    args.out.check()?;
    let stop = interrupt::listen()?;
    let mut subject = args.target.subject()?;
    let target = match &subject {
        target::Subject::Command(child) => Target::Trees(vec![child.id()]),
        target::Subject::Process(pid) => Target::Trees(vec![*pid]),
        target::Subject::Group(_) | target::Subject::Machine => {
            return Err(WrongUse::error(
                "a profile is of a command or a process: give it after `--` or by --pid",
            ));
        }
    };
    let running = Sampler::begin(&target, &options)?;
    let end = subject.attend(args.target.seconds(), stop)?;
    let profile = running.end();
    interrupt::go_on();
    drop(subject);
    if profile.samples == 0 {
        let less = match &profile.clock {
            Clock::Event(name) => format!("there were fewer {name}"),
            Clock::Cycles | Clock::CpuClock => "it used less CPU time".to_owned(),
        };
        bail!("no sample was taken: {less} than from one sample to the next, raise -F");
    }
    write(&args, &profile)?;
    match args.json {
        true => {
            let facts = Facts { profile: &profile, unresolved: profile.unresolved() };
            args.out.json(&facts, &args.target)?;
        }
        false => args.out.text(&render::profile(&profile, args.top), &args.target)?,
    }
    Ok(render::status(end, &args.target))
}

#[derive(Serialize)]
struct Facts<'a> {
    #[serde(flatten)]
    profile: &'a Profile,
    unresolved: Option<f64>,
}

fn by(event: Option<&str>) -> anyhow::Result<By> {
    let Some(name) = event else { return Ok(By::Time) };
    let tables = [Table::here(), Some(Table::software())];
    let found = tables.into_iter().flatten().find_map(|table| table.event(name));
    let unknown = || {
        WrongUse::error(format!(
            "no event of this machine is named `{name}`: `workahead counters list --events`"
        ))
    };
    let event: &Event = found.ok_or_else(unknown)?;
    Ok(By::Event(event.clone()))
}

fn write(args: &Args, profile: &Profile) -> anyhow::Result<()> {
    if let Some(path) = &args.folded {
        file::write_whole(path, profile.folded().as_bytes())?;
    }
    if let Some(path) = &args.html {
        file::write_whole(path, workahead_report::render_profile(profile)?.as_bytes())?;
    }
    Ok(())
}
