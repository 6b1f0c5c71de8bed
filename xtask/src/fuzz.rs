//! `cargo xtask fuzz joins [--seconds N] [--seed S] [--case N]`: random joins, as DuckDB does them.
//!
//! ```text
//! bench/peers/fuzz_joins.py ─┬─ random inputs, as files ─► workahead join, several ways ─┐
//!                            └─ the same inputs ─────────► DuckDB, in the venv ──────────┴─► equal
//! ```
//!
//! In the manner of Velox's join fuzzer: every way of doing a join (build side, layout, threads,
//! memory limit, file formats) must give the rows that an engine of other people gives. The crates'
//! own property tests (`columns`, `every_join`) have nested loops for an oracle and more types;
//! this one goes through the command, its files and its filters.

use anyhow::{Context, Result, bail};

use crate::bench::peers::venv::Venv;
use crate::workspace::Workspace;

const SECONDS: u64 = 300;
/// Of the pass that belongs to `cargo xtask test --full`.
pub(crate) const SHORT: [&str; 4] = ["--seconds", "50", "--seed", "1"];

/// Runs until the time is over; false when a case failed.
pub(crate) fn joins(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    let mut seconds = SECONDS;
    let (mut seed, mut case) = (None, None);
    for pair in words.chunks(2) {
        let [word, value] = pair else { bail!("{} needs a value", pair[0]) };
        let value = value.parse().ok().with_context(|| format!("{word} needs a number"))?;
        match *word {
            "--seconds" => seconds = value,
            "--seed" => seed = Some(value),
            "--case" => case = Some(value),
            other => bail!("`fuzz joins` knows no {other}"),
        }
    }
    let seed = match seed {
        Some(seed) => seed,
        None => crate::bench::now_s()?,
    };
    let venv = Venv::prepare(workspace)?;
    let build = ["build", "--release", "--package", "workahead-cli"];
    let built = workspace.cargo(&build).status().context("cargo does not start")?;
    if !built.success() {
        bail!("the command can't be built");
    }
    let mut fuzz = venv.script(workspace, "fuzz_joins.py");
    fuzz.arg("--workahead").arg(workspace.target().join("release/workahead"));
    fuzz.args(["--seconds", &seconds.to_string(), "--seed", &seed.to_string()]);
    if let Some(case) = case {
        fuzz.args(["--case", &case.to_string()]);
    }
    Ok(fuzz.status().context("python3 does not start")?.success())
}
