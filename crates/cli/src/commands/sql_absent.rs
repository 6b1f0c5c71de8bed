//! `workahead sql` in a build without DataFusion: explains how to build it.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::errors::WrongUse;

const BUILD_HINT: &str = "this workahead was built without SQL: build one with it by \
    cargo build --release --package workahead-cli --features sql";

const EXAMPLE: &str = "\
This workahead was built without SQL, because DataFusion takes long to build. To have it:
  cargo build --release --package workahead-cli --features sql

Example, with such a build:
  workahead sql \"select count(*) from t\" --table t=t.parquet";

/// The arguments of `workahead sql`: any.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Args {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _words: Vec<OsString>,
}

pub(crate) fn run(_args: Args) -> anyhow::Result<ExitCode> {
    Err(WrongUse::error(BUILD_HINT))
}
