//! `cargo xtask answers`: regenerates TPC-H's answers with DuckDB.
//!
//! They are compared by `cargo test -p workahead-sql --test tpch`, which needs neither Python nor
//! DuckDB. After a change of the data or a query, regenerate them with this.

use anyhow::{Result, bail};

use crate::bench::peers::venv::Venv;
use crate::workspace::{Workspace, succeed};

const SCALE: &str = "0.1";
const QUERIES: &str = "crates/measure/workloads/src/tpch/queries";
const ANSWERS: &str = "crates/execute/sql/tests/tpch/answers";

/// Generates the tables, and has DuckDB answer.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let venv = Venv::prepare(workspace)?;
    let data = workspace.target().join("answers").join(SCALE);
    let words = ["run", "--quiet", "--release", "--package", "workahead-cli", "--", "data", "tpch"];
    let mut generate = workspace.cargo(&words);
    generate.args(["--scale", SCALE, "--out"]).arg(&data);
    if !generate.status()?.success() {
        bail!("the tables can't be made");
    }
    let mut answer = venv.script(workspace, "answers.py");
    answer.arg("--data").arg(&data);
    answer.arg("--queries").arg(workspace.root().join(QUERIES));
    answer.arg("--out").arg(workspace.root().join(ANSWERS));
    succeed(&mut answer)?;
    println!("  written to {ANSWERS}");
    Ok(true)
}
