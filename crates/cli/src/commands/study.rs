//! `workahead study`: studies, their runs and results.
//!
//! ```text
//! list, show, plan      nothing is run
//! run, resume           claim a directory, run what is left, then as `report`
//! report                from the directory alone: Parquet, report.html, the last lines
//! worker                hidden: a worker process, for studies that count under valgrind
//! compare               two directories: compare.html
//! ```

pub(crate) mod arguments;
pub(crate) mod compare;
pub(crate) mod duration;
pub(crate) mod finish;
pub(crate) mod limits;
mod list;
mod plan;
pub(crate) mod progress;
mod report;
mod resume;
mod run;
pub(crate) mod run_session;
mod show;
pub(crate) mod summary;
mod worker;

use std::process::ExitCode;

use workahead_study::error::StudyError;

use crate::errors::WrongUse;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  workahead study run quick")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// The studies that come with the command: requirements, time, memory
    List(list::Args),
    /// Print a study's TOML, to copy and edit
    Show(show::Args),
    /// The run plan: every cell in order, and its needs; nothing is run
    Plan(plan::Args),
    /// Run a study and write its report
    Run(run::Args),
    /// Continue a run that was interrupted
    Resume(resume::Args),
    /// Write the report of a result again; nothing is run
    Report(report::Args),
    /// Two results: before and after, cell by cell; nothing is run
    Compare(compare::Args),
    /// A worker process: one cell, started under valgrind
    #[command(hide = true)]
    Worker(worker::Args),
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let result = match args.command {
        Command::List(args) => list::run(args),
        Command::Show(args) => show::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Run(args) => run::run(args),
        Command::Resume(args) => resume::run(args),
        Command::Report(args) => report::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Worker(args) => worker::run(args),
    };
    result.map_err(with_status)
}

/// Unknown names on the command line are wrong use; everything else failed.
fn with_status(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<StudyError>() {
        Some(StudyError::UnknownStudy { .. } | StudyError::UnknownScale { .. }) => {
            WrongUse::error(error.to_string())
        }
        _ => error,
    }
}
