//! `workahead study run`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use workahead_study::directory;
use workahead_study::engine::Stop;
use workahead_study::error::StudyError;
use workahead_study::spec::Spec;

use super::arguments::{DataArguments, ServerArguments, StudyArguments};
use super::limits::LimitsArguments;
use super::run_session::{RunSession, Session};
use super::{duration, progress};
use crate::interrupt;

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
    /// Where the result goes [default: a new directory below workahead-results]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace an existing result
    #[arg(long)]
    force: bool,
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
    let setup = args.server.setup(&spec, &args.data)?;
    let stop = Stop::from(interrupt::listen()?);
    let session = Session::begin(spec, args.study.repetitions, setup, |spec| claim(&args, spec))?;
    progress::opening(&session, args.json);
    RunSession { session, stop, duration: args.duration }.finish(args.limits, args.json)
}

fn claim(args: &Args, spec: &Spec) -> Result<PathBuf, StudyError> {
    let parent = Path::new(directory::DEFAULT);
    let usual = || parent.join(directory::name(&spec.id));
    match (&args.out, args.force) {
        (Some(out), true) => directory::claim_replacing(out),
        (Some(out), false) => directory::claim(out),
        (None, true) => directory::claim_replacing(&usual()),
        (None, false) => directory::claim_new(parent, &spec.id),
    }
}
