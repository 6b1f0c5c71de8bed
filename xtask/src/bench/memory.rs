//! `cargo xtask bench memory`: a join that exceeds its memory limit.
//!
//! ```text
//! 2 × 20 million rows, Parquet to Parquet, 300 MB        bench/peers/memory.py
//!   ours, unlimited ─┐
//!   ours, limited    ├─ in turn, each a process of its own: its time, its peak of resident memory
//!   DataFusion's SMJ ┘  (the join it has that spills)
//! ```
//!
//! Every result is read back: count and the sums of all columns must be those known from the draws.
//! Figures are ratios within one round, so that other load of the machine affects all alike.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Bench;
use super::peers::rounds::median;
use super::peers::venv::Venv;
use crate::workspace::{Workspace, succeed};

const HELP: &str = "usage: cargo xtask bench memory [--rounds N] [--rows N] [--limit BYTES]\n";

const ROWS: usize = 20_000_000;
const LIMIT_BYTES: usize = 300_000_000;
const THREADS: usize = 2;
const ROUNDS: usize = 3;

/// Targets: resident memory, and the time of the unlimited run.
const RESIDENT_BYTES_MOST: f64 = 350e6;
const RATIO_MOST: f64 = 1.3;

const UNLIMITED: &str = "ours, unlimited";
const LIMITED: &str = "ours, limited";
/// DataFusion's pools: neither is always the better one.
const PEERS: [&str; 2] = ["fair", "greedy"];

/// `[--rounds N] [--rows N] [--limit BYTES]`
struct Options {
    rounds: usize,
    rows: usize,
    limit_bytes: usize,
}

impl Options {
    fn read(words: &[&str]) -> Result<Self> {
        let mut options = Self { rounds: ROUNDS, rows: ROWS, limit_bytes: LIMIT_BYTES };
        for pair in words.chunks(2) {
            let [word, value] = pair else { bail!("{} needs a value", pair[0]) };
            let value = value.parse().ok().filter(|value| *value > 0);
            let value = value.with_context(|| format!("{word} needs a number above zero"))?;
            match *word {
                "--rounds" => options.rounds = value,
                "--rows" => options.rows = value,
                "--limit" => options.limit_bytes = value,
                other => bail!("`bench memory` knows no {other}"),
            }
        }
        Ok(options)
    }

    fn is_whole(&self) -> bool {
        (self.rows, self.limit_bytes) == (ROWS, LIMIT_BYTES) && self.rounds >= ROUNDS
    }
}

/// One run of one of them.
#[derive(Clone)]
struct Run {
    wall_s: f64,
    cpu_s: f64,
    peak_bytes: f64,
    said: Value,
}

/// Results of a kind of run, by round; or the reason for a failure.
struct Arm {
    name: String,
    runs: Vec<Run>,
    failed: Option<String>,
}

/// Runs the rounds, and records them.
pub(crate) fn run(workspace: &Workspace, words: &[&str]) -> Result<bool> {
    if super::shows_help(words, HELP) {
        return Ok(true);
    }
    let options = Options::read(words)?;
    let venv = Venv::prepare(workspace)?;
    let place = Place::prepare(workspace, &venv, &options)?;
    let mut arms: Vec<Arm> = [UNLIMITED.to_owned(), LIMITED.to_owned()]
        .into_iter()
        .chain(PEERS.map(|pool| format!("DataFusion, sort-merge, {pool} pool")))
        .map(|name| Arm { name, runs: Vec::new(), failed: None })
        .collect();
    for round in 0..options.rounds {
        // In alternating order: other load of the machine affects all alike.
        let order: Vec<usize> = match round % 2 {
            0 => (0..arms.len()).collect(),
            _ => (0..arms.len()).rev().collect(),
        };
        for at in order {
            let arm = &mut arms[at];
            if arm.failed.is_some() {
                continue;
            }
            match place.run(at, &options) {
                Ok(run) => {
                    println!(
                        "  {:<40} {:>7.2} s, {:>7.2} s of CPU, {:>5.0} MB",
                        arm.name,
                        run.wall_s,
                        run.cpu_s,
                        run.peak_bytes / 1e6
                    );
                    arm.runs.push(run);
                }
                // A peer may fail: that is a result too.
                Err(error) if at >= 2 => {
                    println!("  {:<40} {error:#}", arm.name);
                    arm.failed = Some(format!("{error:#}"));
                }
                Err(error) => return Err(error),
            }
        }
    }
    let result = result(&options, &arms);
    if options.is_whole() {
        let bench = Bench { package: "workahead-cli".into(), name: "memory".into() };
        super::record(workspace, &bench, &super::machine(workspace)?, &result)?;
    } else {
        println!("{}", serde_json::to_string_pretty(&result["rows"])?);
        println!("not kept in bench/record: that takes the usual rows, limit and rounds");
    }
    Ok(passed(&arms))
}

/// Folder of inputs and results.
struct Place {
    data: PathBuf,
    scratch: PathBuf,
    ours: PathBuf,
    script: Vec<std::ffi::OsString>,
}

impl Place {
    fn prepare(workspace: &Workspace, venv: &Venv, options: &Options) -> Result<Self> {
        let build = ["build", "--release", "--package", "workahead-cli"];
        succeed(&mut workspace.cargo(&build))?;
        let scratch = workspace.target().join("memory");
        let data = scratch.join(format!("data-{}", options.rows));
        let script = venv.script(workspace, "memory.py");
        let words = std::iter::once(script.get_program()).chain(script.get_args());
        let script = words.map(std::ffi::OsStr::to_owned).collect();
        let ours = workspace.target().join("release/workahead");
        let place = Self { data, scratch, ours, script };
        if !place.data.join("answer.json").exists() {
            println!("== generating 2 × {} rows", options.rows);
            let mut generate = place.script(&["generate"]);
            generate.arg("--out").arg(&place.data).args(["--rows", &options.rows.to_string()]);
            succeed(&mut generate)?;
        }
        Ok(place)
    }

    fn script(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.script[0]);
        command.args(&self.script[1..]).args(words);
        command
    }

    /// Runs one of them, and checks its answer.
    fn run(&self, arm: usize, options: &Options) -> Result<Run> {
        let out = self.scratch.join("out.parquet");
        let limit = options.limit_bytes.to_string();
        let mut watched = self.script(&["watched"]);
        match arm {
            0 | 1 => {
                watched.arg(&self.ours).args(["join", "--json", "--on", "k"]);
                watched.args(["--threads", &THREADS.to_string()]);
                watched.arg("--left").arg(self.data.join("left.parquet"));
                watched.arg("--right").arg(self.data.join("right.parquet"));
                watched.arg("--out").arg(&out);
                if arm == 1 {
                    watched.args(["--memory-limit", &limit, "--spill-dir"]).arg(&self.scratch);
                }
            }
            peer => {
                watched.args(&self.script).args(["datafusion", "--limit", &limit]);
                watched.args(["--threads", &THREADS.to_string(), "--pool", PEERS[peer - 2]]);
                watched.arg("--data").arg(&self.data).arg("--out").arg(&out);
            }
        }
        let output = watched.stderr(Stdio::piped()).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or("it said nothing");
            bail!("{last}");
        }
        let reply: Value = serde_json::from_slice(&output.stdout).context("no JSON")?;
        self.check(&out)?;
        let number = |key: &str| reply[key].as_f64().with_context(|| format!("no {key}"));
        Ok(Run {
            wall_s: number("wall_s")?,
            cpu_s: number("cpu_s")?,
            peak_bytes: number("peak_bytes")?,
            said: reply["said"].clone(),
        })
    }

    fn check(&self, out: &Path) -> Result<()> {
        let mut check = self.script(&["check"]);
        check.arg(out).arg(self.data.join("answer.json"));
        succeed(&mut check).context("a wrong answer")?;
        Ok(std::fs::remove_file(out)?)
    }
}

impl Arm {
    fn middle(&self, of: impl Fn(&Run) -> f64) -> f64 {
        median(self.runs.iter().map(of).collect())
    }

    /// Ratio of times to another, the median over the rounds.
    fn ratio_to(&self, other: &Self, of: impl Fn(&Run) -> f64) -> f64 {
        median(self.runs.iter().zip(&other.runs).map(|(a, b)| of(a) / of(b)).collect())
    }

    fn peak_bytes(&self) -> f64 {
        self.runs.iter().map(|run| run.peak_bytes).fold(0.0, f64::max)
    }
}

/// Whether the targets were reached.
fn passed(arms: &[Arm]) -> bool {
    let limited = &arms[1];
    let fast = limited.ratio_to(&arms[0], |run| run.wall_s) <= RATIO_MOST;
    let faster =
        |peer: &Arm| peer.failed.is_some() || limited.ratio_to(peer, |run| run.wall_s) < 1.0;
    fast && limited.peak_bytes() < RESIDENT_BYTES_MOST && arms[2..].iter().all(faster)
}

fn result(options: &Options, arms: &[Arm]) -> Value {
    let (unlimited, limited) = (&arms[0], &arms[1]);
    let row = |arm: &Arm| match &arm.failed {
        Some(why) => json!({ "run": arm.name, "failed": why }),
        None => json!({
            "run": arm.name,
            "seconds": arm.middle(|run| run.wall_s),
            "cpu_seconds": arm.middle(|run| run.cpu_s),
            "peak_resident_mb": arm.peak_bytes() / 1e6,
            "times_ours_unlimited": arm.ratio_to(unlimited, |run| run.wall_s),
            "times_ours_unlimited_cpu": arm.ratio_to(unlimited, |run| run.cpu_s),
            "times_ours_limited": arm.ratio_to(limited, |run| run.wall_s),
            "times_ours_limited_cpu": arm.ratio_to(limited, |run| run.cpu_s),
        }),
    };
    let raw = |arm: &Arm| {
        let runs = arm.runs.iter().map(|run| {
            json!({ "wall_s": run.wall_s, "cpu_s": run.cpu_s, "peak_bytes": run.peak_bytes,
                    "said": spilled(&run.said) })
        });
        json!({ "run": arm.name, "runs": runs.collect::<Vec<_>>() })
    };
    json!({
        "title": format!(
            "2 × {} rows, Parquet to Parquet, within {} MB", options.rows,
            options.limit_bytes / 1_000_000
        ),
        "rows": arms.iter().map(row).collect::<Vec<_>>(),
        "runs": arms.iter().map(raw).collect::<Vec<_>>(),
        "notes": [
            "Each side: a 64-bit key that is on both sides once, in no order, and a payload of 8 \
             bytes; Snappy. The result has all four columns. Count and sums of every result were \
             checked.",
            format!(
                "{THREADS} threads; {} rounds there and back; medians, ratios within a round, \
                 the peak (`VmHWM`) the largest of all rounds. Wanted: the limited run in at most \
                 {RATIO_MOST} times the unlimited one's time, in less than {} MB, faster than \
                 DataFusion's sort-merge join.",
                options.rounds, RESIDENT_BYTES_MOST / 1e6
            ),
            "Times are of whole processes, with what the system takes to write the result to disk.",
        ],
    })
}

/// The facts of one of our runs that matter here.
fn spilled(said: &Value) -> Value {
    let facts = [
        "spilled_bytes",
        "spilled_files",
        "spilled_partitions",
        "spill_levels",
        "spill_seconds",
        "peak_memory_bytes",
        "read_seconds",
        "build_seconds",
        "probe_seconds",
        "gather_seconds",
        "write_seconds",
        "version",
    ];
    let kept = facts.into_iter().filter(|fact| !said[fact].is_null());
    kept.map(|fact| (fact.to_owned(), said[fact].clone())).collect::<serde_json::Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(wall_s: &[f64], peak_bytes: f64) -> Arm {
        let run = |wall_s: &f64| Run { wall_s: *wall_s, cpu_s: 1.0, peak_bytes, said: json!({}) };
        Arm { name: "arm".into(), runs: wall_s.iter().map(run).collect(), failed: None }
    }

    #[test]
    fn what_is_wanted_is_told_from_what_is_not() {
        let arms = |limited: &[f64], peak_bytes, peer: &[f64]| {
            passed(&[arm(&[10.0, 20.0, 10.0], 1e9), arm(limited, peak_bytes), arm(peer, 4e8)])
        };
        assert!(arms(&[12.0, 24.0, 12.0], 3e8, &[20.0, 40.0, 20.0]));
        assert!(!arms(&[15.0, 30.0, 12.0], 3e8, &[60.0, 60.0, 60.0]), "too slow");
        assert!(!arms(&[12.0, 24.0, 12.0], 4e8, &[20.0, 40.0, 20.0]), "too much memory");
        assert!(!arms(&[12.0, 24.0, 12.0], 3e8, &[11.0, 22.0, 11.0]), "the peer is faster");
    }

    #[test]
    fn options_are_numbers() {
        let options = Options::read(&["--rounds", "1", "--rows", "1000"]).unwrap();
        assert_eq!((options.rounds, options.rows, options.is_whole()), (1, 1000, false));
        assert!(Options::read(&[]).unwrap().is_whole());
        for wrong in [&["--rounds"][..], &["--rounds", "0"], &["--what", "1"]] {
            assert!(Options::read(wrong).is_err());
        }
    }
}
