//! `cargo xtask bench cluster`: TPC-H on a small cluster, held against one process.
//!
//! ```text
//! data tpch ─► files ─┬► workahead sql --threads 1 | 2                         one process
//!                     └► workahead cluster, 1 and 2 executors of one slot, each on a CPU
//!                        └► workahead sql --cluster …        in turn, rounds times; rows compared
//! ```

mod arms;
mod figures;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::{Bench, page, record};
use crate::workspace::Workspace;
use arms::Arm;
use figures::Figures;

/// Options of the bench.
const WORDS: &str = "\
usage: cargo xtask bench cluster [WORDS]

  --scale N          of TPC-H [default: 1]
  --rounds N         runs of each query in each way [default: 5]
  --queries 4,5,18   only these
  --set NAME=VALUE   an option for the clusters' queries, as in `workahead sql`
  --program FILE     this workahead, with clusters in it, and not a release build

A run of all queries at scale 1 without --set is kept in bench/record/.
";

const QUERIES: usize = 22;

struct Options {
    scale: String,
    rounds: usize,
    queries: Vec<usize>,
    settings: Vec<String>,
    program: Option<PathBuf>,
}

/// Runs the bench with these words.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    if words.iter().any(|word| ["--help", "-h"].contains(word)) {
        print!("{WORDS}");
        return Ok(true);
    }
    let options = Options::of(words)?;
    let program = match &options.program {
        Some(program) => program.canonicalize().with_context(|| program.display().to_string())?,
        None => built(workspace)?,
    };
    let folder = workspace.target().join("bench-cluster");
    let data = data(&program, &folder, &options.scale)?;
    let arms = Arm::all(&program, &data, &folder, &options.settings)?;
    let mut figures = Figures::default();
    for round in 0..options.rounds {
        for &query in &options.queries {
            let mut rows = None;
            for turn in 0..arms.len() {
                // The first run reads data that later runs find in the page cache.
                let at = (turn + round) % arms.len();
                let (seconds, found) = arms[at].run(query)?;
                if rows.as_ref().is_some_and(|rows| *rows != found) {
                    bail!("q{query}: {} gives other rows than another way", arms[at].name());
                }
                rows = Some(found);
                figures.add(query, at, seconds);
            }
        }
        eprintln!("round {} of {}", round + 1, options.rounds);
    }
    let release = options.program.is_none();
    let notes = notes(&options, release);
    let result = json!({
        "title": "TPC-H on a cluster of one and two executors, beside one process",
        "rows": figures.rows(),
        "notes": notes,
    });
    let bench = Bench { package: "workahead-cluster".into(), name: "cluster".into() };
    let machine = machine_of(&program)?;
    let whole = options.queries.len() == QUERIES && options.scale == "1";
    if whole && options.settings.is_empty() {
        let written = record(workspace, &bench, &machine, &result)?;
        println!("{}", std::fs::read_to_string(&written)?);
        println!("  kept in {}", written.strip_prefix(workspace.root())?.display());
    } else {
        println!("{}", page::of(&json!({ "machine": machine, "result": result })));
        println!("not kept in bench/record: that takes all queries at scale 1, and no --set");
    }
    Ok(true)
}

impl Options {
    fn of(words: &[&str]) -> Result<Self> {
        let mut options = Self {
            scale: "1".into(),
            rounds: 5,
            queries: (1..=QUERIES).collect(),
            settings: Vec::new(),
            program: None,
        };
        for pair in words.chunks(2) {
            let [name, value] = pair else { bail!("{} needs a value\n\n{WORDS}", pair[0]) };
            match *name {
                "--scale" => options.scale = (*value).to_owned(),
                "--rounds" => options.rounds = value.parse().context("--rounds")?,
                "--set" => options.settings.push((*value).to_owned()),
                "--program" => options.program = Some(PathBuf::from(value)),
                "--queries" => {
                    let numbers = value.split(',').map(str::parse).collect::<Result<Vec<_>, _>>();
                    options.queries = numbers.context("--queries takes numbers, as 4,5,18")?;
                }
                other => bail!("unknown word: {other}\n\n{WORDS}"),
            }
        }
        let known = options.queries.iter().all(|query| (1..=QUERIES).contains(query));
        if !known || options.queries.is_empty() || options.rounds == 0 {
            bail!("there must be a round, and queries are 1 to {QUERIES}");
        }
        Ok(options)
    }
}

fn built(workspace: &Workspace) -> Result<PathBuf> {
    let words = ["build", "--release", "--package", "workahead-cli", "--features", "cluster"];
    let status = workspace.cargo(&words).status().context("cargo does not start")?;
    if !status.success() {
        bail!("cargo {}: {status}", words.join(" "));
    }
    Ok(workspace.target().join("release/workahead"))
}

fn data(program: &Path, folder: &Path, scale: &str) -> Result<PathBuf> {
    let data = folder.join(format!("tpch-{scale}"));
    if !data.join("supplier.parquet").is_file() {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let mut command = std::process::Command::new(program);
        command.args(["data", "tpch", "--scale", scale, "--out"]).arg(&data);
        if !command.status().context("workahead does not start")?.success() {
            bail!("there are no tables to run queries on");
        }
    }
    Ok(data)
}

/// Uses the measured program: one without clusters would have to be built first.
fn machine_of(program: &Path) -> Result<serde_json::Value> {
    let output = std::process::Command::new(program).args(["machine", "--json"]).output()?;
    serde_json::from_slice(&output.stdout).context("workahead machine --json")
}

fn notes(options: &Options, release: bool) -> Vec<String> {
    let build = match release {
        true => "release build",
        false => "a build that was given, not the release build of this bench",
    };
    vec![
        format!(
            "Medians of {} rounds in milliseconds, from the plan to the last row in a file; scale \
             {}, Parquet, {build}. One process on one CPU has 1 thread; executors have one slot \
             and a CPU each. Scheduler and client run where there is room: beside one executor on \
             the other CPU, beside two on theirs. Every query's rows were equal in all ways.",
            options.rounds, options.scale
        ),
        "`two/one` is the time of one executor over that of two; `same plan` the same, where the \
         one does the two partitions of the other's plan in turn, and so exchanges rows as they \
         do. `overhead` is the time of the cluster over that of one process with as many CPUs, \
         less 1. Sums are of medians."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_checked() {
        let options = Options::of(&["--scale", "0.1", "--queries", "4,5"]).unwrap();
        assert_eq!((options.scale.as_str(), options.queries), ("0.1", vec![4, 5]));
        for wrong in [&["--rounds"][..], &["--queries", "23"], &["--rounds", "0"], &["--x", "1"]] {
            assert!(Options::of(wrong).is_err(), "{wrong:?}");
        }
    }
}
