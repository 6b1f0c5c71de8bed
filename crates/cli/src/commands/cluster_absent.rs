//! `workahead cluster` in a build without clusters: explains how to build it.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::errors::WrongUse;

pub(super) const BUILD_HINT: &str = "this workahead was built without clusters: build one with \
    them by cargo build --release --package workahead-cli --features cluster";

const EXAMPLE: &str = "\
This workahead was built without clusters, which few need. To have them:
  cargo build --release --package workahead-cli --features cluster

Example, with such a build:
  workahead cluster --workers 2 --data DIR";

/// The arguments of `workahead cluster`: any.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

pub(crate) fn run(_args: Args) -> anyhow::Result<ExitCode> {
    Err(WrongUse::error(BUILD_HINT))
}
