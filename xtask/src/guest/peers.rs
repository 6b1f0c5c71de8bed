//! Schedulers of others, built outside of the workspace and compared with ours in the guest.
//!
//! Whether a comparison runs, and is whole, is what is tested: who is better is for the record.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::test::Build;
use crate::workspace::{Workspace, succeed};

/// Packages of crates.io, and the versions that were seen to attach on the guest's kernel.
const PEERS: [(&str, &str); 3] =
    [("scx_cosmos", "1.1.7"), ("scx_lavd", "1.1.4"), ("scx_bpfland", "1.1.4")];

const WITH: &str = "default,itas,scx_cosmos --mm-affinity,scx_lavd,scx_bpfland";

/// Builds them, runs a short comparison and checks its record; true when it is whole.
pub(super) fn run(workspace: &Workspace) -> Result<bool> {
    let programs = install(workspace)?;
    let mut build = workspace.cargo(&["build", "--quiet"]);
    succeed(build.args(Build::whole(workspace)?).args(["--bin", "workahead"]))?;
    let record = workspace.target().join("schedulers.json");
    let mut guest = Command::new(workspace.root().join("vm/compare.sh"));
    guest.current_dir(workspace.root()).arg(workspace.target().join("debug/workahead"));
    guest.arg(&record).args(&programs).args(["--", "--with", WITH, "--rounds", "1", "--for", "1s"]);
    succeed(&mut guest)?;
    let text = std::fs::read_to_string(&record).context("the record of the comparison")?;
    let wrong = wrong(&serde_json::from_str(&text).context("the record of the comparison")?);
    wrong.iter().for_each(|what| println!("  FAILED: {what}"));
    Ok(wrong.is_empty())
}

/// Installs them below the target directory, where a build of this version isn't there yet.
fn install(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let root = workspace.target().join("scx");
    for (name, version) in PEERS {
        let mut install = workspace.cargo(&["install", "--locked", "--quiet", "--root"]);
        install.arg(&root).args(["--version", version, name]);
        // Their units are not ours: the flags differ.
        install.env("CARGO_TARGET_DIR", root.join("target"));
        install.env("BPF_CLANG", "clang-19").env("LIBCLANG_PATH", "/usr/lib/llvm-19/lib");
        succeed(&mut install).with_context(|| format!("building {name} {version}"))?;
    }
    let programs: Vec<PathBuf> =
        PEERS.iter().map(|(name, _)| root.join("bin").join(name)).collect();
    let missing = programs.iter().find(|program| !program.is_file());
    ensure!(missing.is_none(), "{} wasn't installed", missing.unwrap_or(&root).display());
    Ok(programs)
}

/// A record, as far as it is checked here.
#[derive(Deserialize)]
struct Record {
    schedulers: Vec<Scheduler>,
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Scheduler {
    words: String,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Cell {
    scheduler: String,
    load: String,
    failure: Option<String>,
    figures: std::collections::BTreeMap<String, f64>,
}

/// The faults of a record.
fn wrong(record: &Record) -> Vec<String> {
    let mut wrong = Vec::new();
    for Scheduler { words, name } in &record.schedulers {
        let cells = || record.cells.iter().filter(|cell| cell.scheduler == *words);
        if name.is_none() || cells().next().is_none() {
            wrong.push(format!("{words} never had the tasks"));
        }
        for cell in cells() {
            let works =
                cell.figures.iter().any(|(name, value)| name.ends_with("_per_s") && *value > 0.0);
            match &cell.failure {
                Some(why) => wrong.push(format!("{words}, {}: {why}", cell.load)),
                None if !works => wrong.push(format!("{words}, {}: nothing was done", cell.load)),
                None => {}
            }
        }
    }
    if record.schedulers.len() < WITH.split(',').count() {
        wrong.push("a scheduler is missing".to_owned());
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_record_passes_and_gaps_are_named() {
        let cell = |scheduler: &str, rest: &str| {
            format!("{{\"scheduler\":\"{scheduler}\",\"load\":\"memory\",{rest}}}")
        };
        let record = |last: &str| -> Record {
            let names: Vec<&str> = WITH.split(',').collect();
            let schedulers: Vec<String> = names
                .iter()
                .map(|name| format!("{{\"words\":\"{name}\",\"name\":\"x\"}}"))
                .collect();
            let works = "\"figures\":{\"passes_per_s\":2.0}";
            let (all_but_last, cells) =
                (&names[..names.len() - 1], |name: &&str| cell(name, works));
            let mut cells: Vec<String> = all_but_last.iter().map(cells).collect();
            cells.push(cell(names[names.len() - 1], last));
            let (schedulers, cells) = (schedulers.join(","), cells.join(","));
            let text = format!("{{\"schedulers\":[{schedulers}],\"cells\":[{cells}]}}");
            serde_json::from_str(&text).unwrap()
        };
        assert_eq!(wrong(&record("\"figures\":{\"spins_per_s\":1.0}")), Vec::<String>::new());
        let said = wrong(&record("\"figures\":{},\"failure\":\"runnable task stall\""));
        assert_eq!(said, ["scx_bpfland, memory: runnable task stall"]);
        assert!(
            wrong(&record("\"figures\":{\"spins_per_s\":0.0}"))[0].ends_with("nothing was done")
        );
        let mut short = record("\"figures\":{\"spins_per_s\":1.0}");
        short.schedulers.pop();
        short.schedulers[0].name = None;
        assert_eq!(wrong(&short).len(), 2);
    }
}
