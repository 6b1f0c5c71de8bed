//! `workahead study resume`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use workahead_machine::Machine;
use workahead_study::error::StudyError;
use workahead_study::plan::Plan;
use workahead_study::record::Record;
use workahead_study::spec::Spec;
use workahead_study::{fingerprint, needs};

use super::begun::{Begun, Ground, Opened};
use super::chosen::{Attached, Kept, Opener};
use super::limits::Asked;
use super::{chosen, duration, host};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  workahead study resume workahead-results/quick")]
pub(crate) struct Args {
    /// Directory of a result, as `study run` printed it
    dir: PathBuf,
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

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let ground = Ground {
        home: args.kept.directory(),
        stop: host::stop()?,
        duration: args.duration,
        json: args.json,
    };
    let begun = continued(&args.dir, ground, |spec| args.attached.opener(spec))?;
    begun.go_on(args.limits, args.json)
}

/// A run that was begun, if it is this machine, engine and study that began it.
pub(crate) fn continued(
    dir: &Path,
    ground: Ground,
    opener: impl FnOnce(&Spec) -> anyhow::Result<Opener>,
) -> anyhow::Result<Begun> {
    let record = Record::load(dir)?;
    let spec = record.spec()?;
    let plan = Plan::new(&spec).skipping(&record.needs);
    let (open, context) = (opener(&spec)?, chosen::context(&plan, &ground.home));
    let engine = open(&context)?;
    let version = engine.version();
    if version != record.engine_version {
        bail!(
            "{} was begun on {}, and this is {version}: results of both are not mixed, run the \
             study anew with --out",
            dir.display(),
            record.engine_version
        );
    }
    let fingerprint = fingerprint::of(&plan, engine.as_ref());
    if fingerprint != record.plan {
        return Err(StudyError::OtherPlan {
            path: dir.to_owned(),
            found: record.plan,
            expected: fingerprint,
        }
        .into());
    }
    let machine = Machine::here();
    if machine.fingerprint() != record.host.fingerprint {
        bail!(
            "{} was begun on another machine or other settings ({}): run the study anew with --out",
            dir.display(),
            record.host.name
        );
    }
    needs::fit(&spec, &needs::of(&plan, engine.as_ref())?, host::available_bytes(&machine))?;
    let Ground { stop, duration, .. } = ground;
    let opened = Opened { open, context, engine };
    Ok(Begun { dir: dir.to_owned(), record, spec, plan, opened, machine, stop, duration })
}
