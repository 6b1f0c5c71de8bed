//! The inputs of a case as files, generated once, and the answer.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::cases::Case;
use super::venv::Venv;
use crate::workspace::{Workspace, succeed};

/// Raised when `generate.py` draws otherwise: files of an older number are not used.
const EDITION: u32 = 1;

/// A case's inputs.
pub(crate) struct Data {
    pub(crate) folder: PathBuf,
    /// `count`, and the sum of each column of the result.
    pub(crate) answer: Map<String, Value>,
}

/// Generates what is not there yet.
pub(crate) fn prepare(workspace: &Workspace, venv: &Venv, case: &Case) -> Result<Data> {
    let parent = workspace.target().join(format!("peers/data-{EDITION}"));
    let folder = parent.join(case.slug());
    let answer = folder.join("answer.json");
    if !answer.exists() {
        println!("== generating {}", case.name);
        let mut generate = venv.script(workspace, "generate.py");
        generate.arg("--out").arg(&folder).args(&case.words);
        generate.arg("--build").arg(case.build_rows.to_string());
        generate.arg("--probe").arg(case.probe_rows.to_string());
        succeed(&mut generate)?;
    }
    let text = std::fs::read_to_string(&answer)?;
    let answer = serde_json::from_str(&text).with_context(|| format!("{}", answer.display()))?;
    Ok(Data { folder, answer })
}
