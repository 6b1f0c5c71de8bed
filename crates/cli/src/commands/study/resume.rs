//! `workahead study resume`.

use std::path::PathBuf;
use std::process::ExitCode;

use workahead_study::record::Record;

use super::arguments::{DataArguments, ServerArguments};
use super::duration;
use super::limits::LimitsArguments;
use super::run_session::{RunSession, Session};
use crate::supervisor;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  workahead study resume workahead-results/quick")]
pub(crate) struct Args {
    /// Directory of a result, as `study run` printed it
    dir: PathBuf,
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

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.server.prints_role()? {
        return Ok(ExitCode::SUCCESS);
    }
    let spec = Record::load(&args.dir)?.spec()?;
    if let Some(status) = supervisor::resumed(&spec, &args.data)? {
        return Ok(status);
    }
    let (session, stop) = supervisor::begin(&spec.engine, &args.data, &[], || {
        Session::resume(&args.dir, |spec| args.server.setup(spec, &args.data))
    })?;
    RunSession { session, stop, duration: args.duration }.finish(args.limits, args.json)
}
