//! `workahead study report`.

use std::path::PathBuf;
use std::process::ExitCode;

use workahead_study::results::Results;

use super::finish;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  workahead study report workahead-results/quick")]
pub(crate) struct Args {
    /// Directory of a result, as `study run` printed it
    dir: PathBuf,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// Works on unfinished results too: what is there is reported.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let results = Results::load(&args.dir)?;
    let written = finish::write(&args.dir, &results)?;
    finish::print(&results, &written, args.json)?;
    Ok(ExitCode::SUCCESS)
}
