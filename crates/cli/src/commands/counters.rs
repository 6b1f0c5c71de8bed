//! `workahead counters`: what can be counted here, what something does, where its time goes.

mod list;
mod out;
mod papers;
mod profile;
mod render;
pub(crate) mod side_by_side;
mod stat;
mod target;

use std::process::ExitCode;

const HELP: &str = "\
Examples:
  workahead counters list                        every metric, and whether this machine has it
  workahead counters list --table intel/sapphire-rapids
  workahead counters stat -- sort big.txt        what a command does, until it ends
  workahead counters stat --metrics all --pid 4711 --seconds 60
  workahead counters profile --pid 4711 --seconds 10 --html profile.html
  workahead counters papers                      our arithmetic on the papers' printed tables

Without hardware counters there are still software events and a profile by the CPU's timer; what is
empty says why.";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    subcommand: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    /// Metrics and events, and which of them this machine counts
    List(list::Args),
    /// Count a command, a process, a control group, or the whole machine
    Stat(stat::Args),
    /// Sample which functions the time goes to
    Profile(profile::Args),
    /// The arithmetic on the figures that the papers print, and where they contradict themselves
    Papers(papers::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.subcommand {
        Subcommand::List(args) => list::run(args),
        Subcommand::Stat(args) => stat::run(args),
        Subcommand::Profile(args) => profile::run(args),
        Subcommand::Papers(args) => papers::run(args),
    }
}
