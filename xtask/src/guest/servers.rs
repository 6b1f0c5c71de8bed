//! Real servers with background loops, scheduled by the kernel and by our scheduler in turn.
//!
//! ```text
//! vm/mariadb.toml  ─┐ vm/study.sh                      median of the kernel's own
//! vm/postgres.toml ─┴───────────► observations.jsonl ─►   held against   ─► a line for each server
//!                                                         median of ours
//! ```
//!
//! The guest has no caches, so a speed-up is not required. Required are the same answers, more
//! switches within a group and more concurrent groups, and no loss for other threads. Its clock
//! counts instructions: other work of the host doesn't change these figures.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::bench::peers::rounds::median;
use crate::test::{Build, Depth};
use crate::workspace::{Workspace, succeed};

/// A study per server, in `vm/`.
const STUDIES: [&str; 2] = ["vm/mariadb.toml", "vm/postgres.toml"];

/// Passes of the loops in a second of their own CPU time, of those by default (ledger S3.26).
const LOOPS_LEAST: f64 = 0.95;

/// Runs the studies in the guest and judges them; true when all holds.
pub(super) fn run(workspace: &Workspace, depth: Depth) -> Result<bool> {
    // As the tests have built it.
    let mut build = workspace.cargo(&["build", "--quiet"]);
    succeed(build.args(Build::whole(workspace)?).args(["--bin", "workahead"]))?;
    match depth {
        Depth::Usual | Depth::All => {
            // A loss of one run may be chance: more runs tell.
            Ok(measured(workspace, &["--repetitions", "1"], 900)?
                || measured(workspace, &["--repetitions", "6"], 1800)?)
        }
        Depth::Full => measured(workspace, &["--scale", "full"], 3000),
    }
}

/// Runs the studies with these words and judges them.
fn measured(workspace: &Workspace, words: &[&str], guest_seconds: u32) -> Result<bool> {
    let program = workspace.target().join("debug/workahead");
    let kept = workspace.target().join("guest.jsonl");
    let mut guest = Command::new(workspace.root().join("vm/study.sh"));
    guest.current_dir(workspace.root()).arg(program).arg(&kept).args(STUDIES).arg("--");
    guest.args(words).env("WORKAHEAD_GUEST_SECONDS", guest_seconds.to_string());
    succeed(&mut guest)?;
    judged(&kept)
}

fn judged(path: &Path) -> Result<bool> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let studies = by_study(&text)?;
    let missing = STUDIES.len().saturating_sub(studies.len());
    let mut wrong = vec!["a study has no observations".to_owned(); missing];
    for (name, runs) in &studies {
        let (line, found) = judge(runs).with_context(|| name.clone())?;
        println!("  {name}: {line}");
        wrong.extend(found.into_iter().map(|what| format!("{name}: {what}")));
    }
    for what in &wrong {
        println!("  FAILED: {what}");
    }
    Ok(wrong.is_empty())
}

/// A line of `observations.jsonl`, as far as it is needed here.
#[derive(Deserialize)]
struct Run {
    study: String,
    settings: Settings,
    failure: Option<String>,
    #[serde(default)]
    tuples: u64,
    #[serde(default)]
    answer: Answer,
    #[serde(default)]
    measures: BTreeMap<String, f64>,
    #[serde(default)]
    wall_s: f64,
}

#[derive(Deserialize)]
struct Settings {
    scheduler: String,
    case: String,
}

#[derive(Deserialize, Default, PartialEq, Eq)]
struct Answer {
    rows: u64,
    checksum: u64,
}

/// The case whose figures count; of others the answers do.
const FIGURES: &str = "changes";

fn by_study(text: &str) -> Result<BTreeMap<String, Vec<Run>>> {
    let mut studies: BTreeMap<String, Vec<Run>> = BTreeMap::new();
    for line in text.lines() {
        let run: Run = serde_json::from_str(line).with_context(|| format!("reading `{line}`"))?;
        studies.entry(run.study.clone()).or_default().push(run);
    }
    Ok(studies)
}

impl Run {
    fn measure(&self, name: &str) -> Result<f64> {
        self.measures.get(name).copied().with_context(|| format!("it has no {name}"))
    }

    /// Of the CPU time of everybody, the loops'.
    fn loops_share(&self) -> Result<f64> {
        let loops = self.measure("loop_cpu_s")?;
        Ok(loops / (loops + self.measure("server_cpu_s")? + self.measure("client_cpu_s")?))
    }

    /// The longest wait by `crates/schedule/scheduler`, with its own patience and slice, if all
    /// were on one CPU.
    fn wait_most_ms(&self) -> Result<f64> {
        const LOOPS: f64 = 4.0;
        let tasks = self.measure("server_threads")? + self.measure("clients")? + LOOPS;
        Ok(1.25 * 1000.0 + (tasks + 1.0) * 4.0)
    }
}

/// The middle of what the runs under one scheduler give.
fn middle(runs: &[&Run], of: impl Fn(&Run) -> Result<f64>) -> Result<f64> {
    let values = runs.iter().map(|run| of(run)).collect::<Result<Vec<f64>>>()?;
    ensure!(!values.is_empty(), "a scheduler has no runs");
    Ok(median(values))
}

/// The figures of one server, and the faults among them.
fn judge(runs: &[Run]) -> Result<(String, Vec<String>)> {
    if let Some(failure) = runs.iter().find_map(|run| run.failure.as_ref()) {
        return Ok(("a run failed".to_owned(), vec![failure.clone()]));
    }
    let counts = |run: &&Run| run.settings.case == FIGURES;
    let under =
        |name| runs.iter().filter(counts).filter(|run| run.settings.scheduler == name).collect();
    let (usual, ours): (Vec<&Run>, Vec<&Run>) = (under("default"), under("itas"));
    let both = |name: &str| -> Result<(f64, f64)> {
        let of = |run: &Run| run.measure(name);
        Ok((middle(&usual, of)?, middle(&ours, of)?))
    };
    let within = both("group_switch_share")?;
    let co_run = both("co_run_pair_share")?;
    let passes = both("loop_passes_per_cpu_s")?;
    let loops = passes.1 / passes.0;
    let share = (middle(&usual, Run::loops_share)?, middle(&ours, Run::loops_share)?);
    let taken = middle(&ours, |run| run.measure("aggregation_share"))?;
    let wall = middle(&ours, |run| Ok(run.wall_s))? / middle(&usual, |run| Ok(run.wall_s))?;
    let waits = |run: &&Run| Ok((run.measure("run_delay_max_ms")?, run.wait_most_ms()?));
    let waits = ours.iter().map(waits).collect::<Result<Vec<(f64, f64)>>>()?;
    let (longest, most) = waits
        .iter()
        .copied()
        .fold((0.0, 0.0), |most: (f64, f64), wait| if wait.0 > most.0 { wait } else { most });

    let line = format!(
        "switches within a group {:.2} to {:.2}, beside it {:.2} to {:.2} of the time, {taken:.2} \
         of chances taken; loops do {loops:.3} a CPU second, with {:.2} to {:.2} of the CPU time; \
         the run takes {wall:.2}; longest wait {longest:.0} ms of {most:.0}",
        within.0, within.1, co_run.0, co_run.1, share.0, share.1,
    );
    let alike = |one: &Run, other: &Run| {
        one.settings.case != other.settings.case
            || (one.tuples, &one.answer) == (other.tuples, &other.answer)
    };
    let same = runs.iter().all(|one| runs.iter().all(|other| alike(one, other)));
    let read = runs.iter().any(|run| run.answer.checksum != 0);
    let expected = [
        (same, "the answers differ"),
        (read, "no answers were compared"),
        (within.1 > within.0, "threads of a group don't follow each other more often"),
        (co_run.1 > co_run.0, "threads of a group don't run beside each other more often"),
        (loops >= LOOPS_LEAST, "the loops lose more than 5 % of their passes a CPU second"),
        (waits.iter().all(|(wait, most)| wait <= most), "somebody waited longer than stated"),
    ];
    let wrong = expected.into_iter().filter(|(holds, _)| !holds);
    Ok((line, wrong.map(|(_, what)| what.to_owned()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(scheduler: &str, passes: f64, co_run: f64, wait_ms: f64) -> String {
        let within = if scheduler == "itas" { 0.6 } else { 0.2 };
        format!(
            "{{\"study\":\"mariadb\",\"settings\":{{\"scheduler\":\"{scheduler}\",\
             \"case\":\"changes\"}},\"wall_s\":2.0,\"tuples\":160,\"answer\":{{\"rows\":0,\"checksum\":0}},\"measures\":{{\
             \"loop_cpu_s\":4.0,\"server_cpu_s\":5.0,\"client_cpu_s\":1.0,\
             \"loop_passes_per_cpu_s\":{passes},\"group_switch_share\":{within},\
             \"co_run_pair_share\":{co_run},\"aggregation_share\":0.9,\
             \"run_delay_max_ms\":{wait_ms},\"server_threads\":30,\"clients\":8}}}}\n"
        )
    }

    /// Under both schedulers, of which the reads' answers are compared.
    fn reads(checksum: u64) -> String {
        let line = |(scheduler, checksum)| {
            format!(
                "{{\"study\":\"mariadb\",\"settings\":{{\"scheduler\":\"{scheduler}\",\
                 \"case\":\"reads\"}},\"tuples\":40,\
                 \"answer\":{{\"rows\":9,\"checksum\":{checksum}}}}}\n"
            )
        };
        [("default", 7), ("itas", checksum)].map(line).concat()
    }

    fn wrong(lines: &[String]) -> Vec<String> {
        judge(&by_study(&lines.concat()).unwrap()["mariadb"]).unwrap().1
    }

    #[test]
    fn every_study_of_the_guest_parses() {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests");
        let root = Path::new(&package).parent().unwrap();
        let mut studies = 0;
        for entry in std::fs::read_dir(root.join("vm")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "toml") {
                let text = std::fs::read_to_string(&path).unwrap();
                let study: Result<toml::Table, _> = toml::from_str(&text);
                assert!(study.is_ok(), "{}: {}", path.display(), study.unwrap_err());
                studies += 1;
            }
        }
        assert_eq!(studies, STUDIES.len());
    }

    #[test]
    fn a_success_is_reported_in_a_line() {
        let runs =
            line("default", 1000.0, 0.5, 0.0) + &line("itas", 950.0, 0.7, 1422.0) + &reads(7);
        let (line, wrong) = judge(&by_study(&runs).unwrap()["mariadb"]).unwrap();
        assert_eq!(wrong, Vec::<String>::new());
        for figure in ["0.20 to 0.60", "0.50 to 0.70", "0.950 a CPU", "1422 ms of 1422"] {
            assert!(line.contains(figure), "{figure} in {line}");
        }
    }

    #[test]
    fn each_failure_is_named() {
        let usual = line("default", 1000.0, 0.5, 0.0);
        let of = |ours: String| wrong(&[usual.clone(), ours, reads(7)]).join("; ");
        assert!(of(line("itas", 949.0, 0.7, 1.0)).starts_with("the loops lose"));
        assert!(of(line("itas", 990.0, 0.5, 1.0)).contains("beside each other"));
        assert!(of(line("itas", 990.0, 0.7, 1423.0)).contains("waited longer"));
        let other = line("itas", 990.0, 0.7, 1.0).replace("\"tuples\":160", "\"tuples\":159");
        assert_eq!(of(other), "the answers differ");
        let ours = line("itas", 990.0, 0.7, 1.0);
        assert_eq!(wrong(&[usual.clone(), ours.clone(), reads(8)]), ["the answers differ"]);
        assert_eq!(wrong(&[usual.clone(), ours]), ["no answers were compared"]);
        let failed = "{\"study\":\"mariadb\",\"settings\":{\"scheduler\":\"itas\",\
                      \"case\":\"changes\"},\"failure\":\"a condition is broken\"}\n";
        assert_eq!(of(failed.to_owned()), "a condition is broken");
    }

    #[test]
    fn a_scheduler_without_runs_is_a_failure() {
        let usual = line("default", 1000.0, 0.5, 0.0);
        assert!(judge(&by_study(&usual).unwrap()["mariadb"]).is_err());
        assert!(judged(Path::new("/nonexistent")).is_err());
    }
}
