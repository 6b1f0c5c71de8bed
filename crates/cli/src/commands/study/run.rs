//! `workahead study run`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use workahead_machine::Machine;
use workahead_study::engine::Engine;
use workahead_study::plan::Plan;
use workahead_study::record::{Host, Record};
use workahead_study::runner;
use workahead_study::spec::Spec;
use workahead_study::{directory, fingerprint, needs};

use super::begun::{Begun, Ground, Opened};
use super::chosen::{Attached, Chosen, Kept, Opener};
use super::limits::Asked;
use super::{chosen, duration, host, progress};

const EXAMPLES: &str = "\
Examples:
  workahead study run quick
  workahead study run mine.toml --scale small --out result

A run that is interrupted loses nothing: `workahead study resume DIR` continues it.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    chosen: Chosen,
    /// Where the result goes [default: a new directory below workahead-results]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace the result that is there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    duration: duration::Allowed,
    #[command(flatten)]
    kept: Kept,
    #[command(flatten)]
    attached: Attached,
    #[command(flatten)]
    limits: Asked,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// Everything that can be refused is refused before the first sample, and before anything is
/// written: the study, its settings, the memory, the directory.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let spec = args.chosen.spec()?;
    args.duration.fits(&spec)?;
    let open = args.attached.opener(&spec)?;
    let ground = Ground {
        home: args.kept.directory(),
        stop: host::stop()?,
        duration: args.duration,
        json: args.json,
    };
    let repetitions = args.chosen.repetitions;
    let begun = begin((spec, repetitions), open, ground, |spec| claim(&args, spec))?;
    begun.go_on(args.limits, args.json)
}

/// A run in a directory that is claimed last.
pub(crate) fn begin(
    (spec, repetitions): (Spec, Option<u32>),
    open: Opener,
    ground: Ground,
    claim: impl FnOnce(&Spec) -> anyhow::Result<PathBuf>,
) -> anyhow::Result<Begun> {
    let plan = Plan::new(&spec);
    let context = chosen::context(&plan, &ground.home);
    let engine = open(&context)?;
    let needs = needs::of(&plan, engine.as_ref())?;
    let plan = plan.skipping(&needs);
    let machine = Machine::here();
    let models = plan.models(&machine.caches)?;
    needs::fit(&spec, &needs, host::available_bytes(&machine))?;
    let dir = claim(&spec)?;
    progress::opening(&spec, &plan, &dir, ground.json);
    let record = Record {
        repetitions,
        host: host::host(&machine, &plan.watch, engine.tier())?,
        needs,
        models,
        ..record(&spec, &plan, engine.as_ref())
    };
    record.save(&dir)?;
    let Ground { stop, duration, .. } = ground;
    let opened = Opened { open, context, engine };
    Ok(Begun { dir, record, spec, plan, opened, machine, stop, duration })
}

fn claim(args: &Args, spec: &Spec) -> anyhow::Result<PathBuf> {
    let parent = Path::new(directory::DEFAULT);
    let usual = || parent.join(directory::name(&spec.id));
    let dir = match (&args.out, args.force) {
        (Some(out), true) => directory::claim_replacing(out)?,
        (Some(out), false) => directory::claim(out)?,
        (None, true) => directory::claim_replacing(&usual())?,
        (None, false) => directory::claim_new(parent, &spec.id)?,
    };
    Ok(dir)
}

/// The record as far as study and engine make it.
fn record(spec: &Spec, plan: &Plan, engine: &dyn Engine) -> Record {
    Record {
        study: spec.id.clone(),
        plan: fingerprint::of(plan, engine),
        scale: spec.scale.clone(),
        repetitions: None,
        seed: spec.seed,
        engine: engine.name().to_owned(),
        engine_version: engine.version(),
        command_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ms: runner::unix_ms(),
        host: Host::default(),
        limits: None,
        models: Vec::new(),
        needs: Vec::new(),
        text: spec.text.clone(),
    }
}
