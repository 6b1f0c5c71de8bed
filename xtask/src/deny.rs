//! Licences and sources of everything we build on, by cargo-deny and `deny.toml`.

use std::process::Command;

use anyhow::{Context, Result};

use crate::setup::source_program::CARGO_DENY;
use crate::workspace::Workspace;

/// True when nothing is denied.
pub(crate) fn check(workspace: &Workspace) -> Result<bool> {
    let deny = CARGO_DENY.program().context("no home for cargo-deny")?;
    let mut command = Command::new(deny);
    command.current_dir(workspace.root()).args(["--log-level", "warn", "--locked", "check"]);
    let status = command.args(["licenses", "bans", "sources"]).status();
    Ok(status.context("cargo-deny does not start: run cargo xtask setup")?.success())
}
