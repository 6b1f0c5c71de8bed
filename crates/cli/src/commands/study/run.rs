//! `workahead study run`.

use std::process::ExitCode;

use super::arguments::{DataArguments, OutArguments, ServerArguments, StudyArguments};
use super::limits::LimitsArguments;
use super::run_session::{RunSession, Session};
use super::{duration, progress};
use crate::supervisor;

const EXAMPLES: &str = "\
Examples:
  workahead study run quick
  workahead study run mine.toml --scale small --out result

A run that is interrupted loses nothing: `workahead study resume DIR` continues it.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    study: StudyArguments,
    #[command(flatten)]
    out: OutArguments,
    #[command(flatten)]
    duration: duration::DurationLimit,
    #[command(flatten)]
    data: DataArguments,
    #[command(flatten)]
    server: ServerArguments,
    #[command(flatten)]
    limits: LimitsArguments,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// Everything is checked before the first sample, and before anything is written: the study, its
/// settings, the memory, the directory.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.server.prints_role()? {
        return Ok(ExitCode::SUCCESS);
    }
    let spec = args.study.spec()?;
    args.duration.fits(&spec)?;
    let engine = spec.engine.clone();
    if let Some(status) = supervisor::supervised(&spec, &args.data)? {
        return Ok(status);
    }
    let setup = args.server.setup(&spec, &args.data)?;
    let (session, stop) = supervisor::begin(&engine, &args.data, &[], || {
        Session::begin(spec, args.study.repetitions, setup, |spec| args.out.claim(spec))
    })?;
    progress::opening(&session, args.json);
    RunSession { session, stop, duration: args.duration }.finish(args.limits, args.json)
}
