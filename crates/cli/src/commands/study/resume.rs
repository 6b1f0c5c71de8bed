//! `workahead study resume`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use workahead_machine::Machine;
use workahead_study::error::StudyError;
use workahead_study::plan::Plan;
use workahead_study::record::Record;
use workahead_study::{fingerprint, needs};

use super::begun::Begun;
use super::chosen::{self, Kept};
use super::limits::Asked;
use super::{duration, host};

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
    limits: Asked,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let record = Record::load(&args.dir)?;
    let spec = record.spec()?;
    let plan = Plan::new(&spec).skipping(&record.needs);
    let mut engine = chosen::engine(&spec)?;
    engine.keep_in(&args.kept.directory());
    let fingerprint = fingerprint::of(&plan, engine.as_ref());
    if fingerprint != record.plan {
        return Err(StudyError::OtherPlan {
            path: args.dir,
            found: record.plan,
            expected: fingerprint,
        }
        .into());
    }
    let machine = Machine::here();
    if machine.fingerprint() != record.host.fingerprint {
        bail!(
            "{} was begun on another machine or other settings ({}): run the study anew with --out",
            args.dir.display(),
            record.host.name
        );
    }
    needs::fit(&spec, &needs::of(&plan, engine.as_ref())?, host::available_bytes(&machine))?;
    let stop = host::stop()?;
    let dir = args.dir;
    let duration = args.duration;
    Begun { dir, record, spec, plan, engine, machine, stop, duration }.go_on(args.limits, args.json)
}
