//! `workahead study show`.

use std::path::PathBuf;
use std::process::ExitCode;

use workahead_study::catalogue;

use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  workahead study show quick > mine.toml")]
pub(crate) struct Args {
    /// Id of a study (`workahead study list`)
    study: PathBuf,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (_, text) = catalogue::find(&args.study)?;
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}
