//! `workahead limits`: what this machine can do, measured.

mod render;

use std::process::ExitCode;

use workahead_machine::Machine;
use workahead_machine::limits::{Budget, Found, Limits, Origin, Store};

use crate::errors::WrongUse;
use crate::{interrupt, output, progress};

const HELP: &str = "\
Examples:
  workahead limits            measured once, then kept for this machine
  workahead limits --fresh    measured again
  workahead limits --json     for programs

Measured, never read from a table: the latency of loads that wait for each other; the most
independent random cache lines a second, which is what lookups in a large table come down to;
sequential bandwidth; the pause instruction; whether two CPUs share a core; the sizes of L2 and of
the part of the last-level cache that is really ours. About 30 seconds, at most a quarter of the
memory. Kept below $XDG_CACHE_HOME/workahead (or ~/.cache/workahead), where joins and studies find
it. What other programs take while it is measured is missing from the figures.";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// Measure again, whatever is kept
    #[arg(long)]
    fresh: bool,
    /// A rough look in 3 seconds, with little memory; it is not kept
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.quick && args.fresh {
        return Err(WrongUse::error("--quick keeps nothing to refresh: leave out one of the two"));
    }
    let machine = Machine::here();
    let known = known(&args, &machine)?;
    if args.json {
        output::json(&known.limits)?;
    } else {
        output::text(&render::text(&known, &machine))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Limits, and where they came from; none for a quick look.
struct Known {
    limits: Limits,
    origin: Option<Origin>,
}

fn known(args: &Args, machine: &Machine) -> anyhow::Result<Known> {
    let store = Store::of_user();
    let kept = store.load(machine).filter(|_| !args.quick && !args.fresh);
    if let (Some(limits), Some(path)) = (kept, store.path(machine)) {
        return Ok(Known { limits, origin: Some(Origin::Saved(path)) });
    }
    let stop = interrupt::listen()?;
    let bar = progress::measuring("measuring");
    let mut progress = progress::on(&bar);
    let known = if args.quick {
        let limits = Limits::measure(machine, Budget::quick(machine), &mut progress, stop);
        limits.map(|limits| Known { limits, origin: None })
    } else {
        let found = Limits::measure_and_save(machine, &store, &mut progress, stop);
        found.map(|Found { limits, origin }| Known { limits, origin: Some(origin) })
    };
    bar.finish_and_clear();
    Ok(known?)
}
