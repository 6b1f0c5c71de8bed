//! `workahead limits`.

use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  workahead limits --json")]
pub(crate) struct Args {
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("the command limits is not part of this build (json: {})", args.json)
}
