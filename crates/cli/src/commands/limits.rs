//! `workahead limits`: the measured limits of this machine's memory.

mod render;

use std::process::ExitCode;

use workahead_machine::Machine;
use workahead_machine::limits::{Budget, Limits, Origin, SourcedLimits, Store};

use crate::errors::WrongUse;
use crate::{interrupt, output, progress};

const HELP: &str = "\
Examples:
  workahead limits            measure once, then read the kept result
  workahead limits --fresh    measure again
  workahead limits --json     print JSON for programs

Measures, without tables of CPU models: the latency of dependent loads; the highest rate of
independent random cache lines, which bounds lookups in a large table; sequential bandwidth; the
pause instruction; whether two CPUs share a core; the sizes of L2 and of the usable part of the
last-level cache. Takes about 30 seconds and at most a quarter of the memory. The result is cached
in $XDG_CACHE_HOME/workahead (or ~/.cache/workahead), where joins and studies read it. Other load
during the measurement lowers the figures.";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
    /// Measure again, even if a cached result exists
    #[arg(long)]
    fresh: bool,
    /// Rough estimate in 3 seconds with little memory; not cached
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.quick && args.fresh {
        return Err(WrongUse::error(
            "--quick does not cache its result, so --fresh has no effect: leave out one of the two",
        ));
    }
    let machine = Machine::here();
    let known = known(&args, &machine)?;
    output::show(args.json, &known.limits, || render::text(&known, &machine))?;
    Ok(ExitCode::SUCCESS)
}

/// The limits and the file they came from; no file for a quick measurement.
struct KnownLimits {
    limits: Limits,
    origin: Option<Origin>,
}

fn known(args: &Args, machine: &Machine) -> anyhow::Result<KnownLimits> {
    let store = Store::of_user();
    let kept = store.load(machine).filter(|_| !args.quick && !args.fresh);
    if let (Some(limits), Some(path)) = (kept, store.path(machine)) {
        return Ok(KnownLimits { limits, origin: Some(Origin::Saved(path)) });
    }
    let stop = interrupt::listen()?;
    let bar = progress::measuring("measuring");
    let mut progress = progress::on(&bar);
    let known = if args.quick {
        let limits = Limits::measure(machine, Budget::quick(machine), &mut progress, stop);
        limits.map(|limits| KnownLimits { limits, origin: None })
    } else {
        let found = Limits::measure_and_save(machine, &store, &mut progress, stop);
        found.map(|SourcedLimits { limits, origin }| KnownLimits { limits, origin: Some(origin) })
    };
    bar.finish_and_clear();
    Ok(known?)
}
