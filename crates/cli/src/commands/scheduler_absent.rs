//! `workahead scheduler` in a build without the scheduler: explains how to build it.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::errors::WrongUse;

const BUILD_HINT: &str = "this workahead was built without the scheduler: build one with it by \
    cargo build --release --package workahead-cli --features scheduler";

const EXAMPLE: &str = "\
This workahead was built without the scheduler, because it needs clang and libelf's headers
(`cargo xtask setup` installs them). To build it:
  cargo build --release --package workahead-cli --features scheduler

Example, with such a build, as root:
  workahead scheduler run bonus=0.5slice roles=cache";

/// The arguments of `workahead scheduler`: any.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

pub(crate) fn run(_args: Args) -> anyhow::Result<ExitCode> {
    Err(WrongUse::error(BUILD_HINT))
}
