//! `workahead study worker`: a worker process that runs one cell as often as requested. Studies
//! start it under valgrind, and beside others of its kind; it is hidden from the help.

use std::io::Read;
use std::process::ExitCode;

use anyhow::Context;
use workahead_study::worker_process::{Command, Request};

use crate::errors::WrongUse;
use crate::{engines, output};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Reads a request from standard input and prints the reply.
pub(crate) fn run(Args {}: Args) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    std::io::stdin().read_to_end(&mut text).context("can't read the request")?;
    let request = Request::parse(&text).map_err(WrongUse::error)?;
    let reply = engines::registry().reply(&request)?;
    output::text(&reply.line())?;
    Ok(ExitCode::SUCCESS)
}

/// The command of a worker process; `None` if the path of this program is unknown.
pub(crate) fn command() -> Option<Command> {
    let program = std::env::current_exe().ok()?;
    Some(Command { program, arguments: vec!["study".into(), "worker".into()] })
}
