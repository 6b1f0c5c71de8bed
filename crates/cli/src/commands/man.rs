//! `workahead man`: the manual pages, in the format of man(1).

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;
use workahead_machine::links;
use workahead_study::file;

use crate::{Workahead, output};

const EXAMPLES: &str = "\
Examples:
  workahead man | man -l -                        read the manual page
  workahead man --out ~/.local/share/man/man1     write a page for each command";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Write a page for every command to this directory instead of printing the first
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut command = Workahead::command();
    command.build();
    match args.out {
        Some(folder) => {
            links::make_directory(&folder)
                .with_context(|| format!("can't make {}", folder.display()))?;
            write_pages(&command, &folder)?;
        }
        None => output::bytes(&page(&command)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn page(command: &clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}

/// Writes pages of a command and its visible subcommands.
fn write_pages(command: &clap::Command, folder: &Path) -> anyhow::Result<()> {
    // A built subcommand has its parents' names too: `workahead-study-run`.
    let name = command.get_display_name().unwrap_or(command.get_name());
    file::write_in(folder, &format!("{name}.1"), &page(command)?)?;
    let shown = command.get_subcommands().filter(|below| !below.is_hide_set());
    shown
        .filter(|below| below.get_name() != "help")
        .try_for_each(|below| write_pages(below, folder))
}
