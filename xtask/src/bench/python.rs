//! `cargo xtask bench python`: our join from Python beside the Rust one, Polars and DuckDB.
//!
//! The bench itself is `crates/execute/python/benches/join.py`, which is given a release wheel in
//! an environment of its own, and our worker among the peers.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::peers::engine;
use super::{Bench, machine, record};
use crate::python;
use crate::workspace::{Workspace, succeed};

const SCRIPT: &str = "crates/execute/python/benches/join.py";

/// Options of the bench.
const WORDS: &str = "\
usage: cargo xtask bench python [WORDS]

  --threads N   of each engine [default: 1]
  --rounds N    in which each engine joins once [default: 11]
  --build N     rows of the smaller side [default: 2000000]
  --probe N     rows of the larger side [default: 16000000]

A run without words is kept in bench/record/.
";

/// Runs it with these words, and keeps a run without any.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    if super::shows_help(words, WORDS) {
        return Ok(true);
    }
    let worker = engine::build(workspace)?;
    let (venv, wheel) = python::build_wheel(
        workspace,
        &workspace.target().join("python/bench"),
        &["--profile", "release"],
    )?;
    python::install_wheel(&venv, &wheel)?;
    let mut script = Command::new(venv.python());
    // The scripts' folder is part of the tree: no compiled files in it.
    script.arg("-B").arg(workspace.root().join(SCRIPT)).arg("--ours").arg(worker).args(words);
    if !words.is_empty() {
        succeed(&mut script)?;
        println!("not kept in bench/record: that takes a run without words");
        return Ok(true);
    }
    let output = script.arg("--json").stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{SCRIPT}: {}", output.status);
    let result: Value = serde_json::from_slice(&output.stdout).context("the bench's result")?;
    let bench = Bench { package: "workahead-python".into(), name: "python".into() };
    record(workspace, &bench, &machine(workspace)?, &result)?;
    Ok(true)
}
