//! `workahead completions SHELL`.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::{Workahead, output};

const EXAMPLES: &str = "\
Examples:
  workahead completions bash > ~/.local/share/bash-completion/completions/workahead
  workahead completions zsh  > ~/.zfunc/_workahead
  workahead completions fish > ~/.config/fish/completions/workahead.fish";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell to complete in
    shell: Shell,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Workahead::command(), "workahead", &mut script);
    output::bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}
