//! `workahead study report`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use workahead_study::results::Results;

use super::finish;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  workahead study report workahead-results/quick")]
pub(crate) struct Args {
    /// Directory of a result, as `study run` printed it
    dir: PathBuf,
    /// Also write the profile of each cell, with its flame graph, to a page of its own:
    /// profile-1.html for the first cell
    #[arg(long)]
    profiles: bool,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

/// Works on unfinished results too.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let results = Results::load(&args.dir)?;
    if args.profiles && workahead_report::write_profiles(&args.dir, &results)?.is_empty() {
        bail!("no cell of this result kept a profile: a study collects them with `profile_hz`");
    }
    let written = finish::write(&args.dir, &results)?;
    finish::print(&results, &written, args.json)?;
    Ok(ExitCode::SUCCESS)
}
