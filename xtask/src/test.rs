//! `cargo xtask test`: every check of the project, quick ones first.
//!
//! The run stops at the first stage that fails, because what follows would bury it; the summary
//! and the closing line `N passed, N failed` come in every case.

use anyhow::Result;

use crate::counts::Counts;
use crate::stage::Stage;
use crate::workspace::Workspace;
use crate::{bench, deny, fuzz, guest, pages, proofs, python, setup, tidy};

/// How much is run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// What CI runs.
    Usual,
    /// By hand: every memory checker there is, four times the property tests' inputs, the model
    /// checker without a bound, joins against DuckDB; what came out is kept in `bench/record/`.
    Full,
}

/// Runs the stages; true when all that ran passed.
pub(crate) fn run(workspace: &Workspace, depth: Depth) -> Result<bool> {
    let mut report = Report::default();
    for stage in stages(workspace, depth) {
        for done in stage() {
            report.stages.push(done);
        }
        if report.failed() {
            break;
        }
    }
    let summary = report.summary();
    println!("\n== summary\n{summary}");
    if depth == Depth::Full {
        let kept = bench::record_page(workspace, "test-full", FULL, &summary)?;
        println!("kept in {}", kept.strip_prefix(workspace.root())?.display());
    }
    Ok(!report.failed())
}

/// Heads what is kept of a full run.
const FULL: &str = "`cargo xtask test --full`";

type Run<'a> = Box<dyn Fn() -> Vec<Stage> + 'a>;

fn stages(workspace: &Workspace, depth: Depth) -> Vec<Run<'_>> {
    let cargo = |name: &'static str, words: &'static [&'static str]| -> Run<'_> {
        Box::new(move || vec![Stage::commands(name, vec![workspace.cargo(words)])])
    };
    vec![
        Box::new(|| vec![Stage::check("setup", setup::run)]),
        cargo("format", &["fmt", "--all", "--check"]),
        Box::new(|| vec![Stage::check("tidy", || tidy::run(workspace))]),
        Box::new(|| vec![Stage::check("licences and sources", || deny::check(workspace))]),
        Box::new(move || vec![clippy(workspace)]),
        Box::new(move || vec![tests(workspace, depth)]),
        Box::new(|| vec![doc_tests(workspace)]),
        // With the command that the tests have built.
        Box::new(|| vec![pages::stage(workspace)]),
        Box::new(|| python::stages(workspace)),
        // Small: every bench checks its answers, and one that nobody runs rots.
        Box::new(move || vec![small_benches(workspace)]),
        Box::new(move || vec![fuzz_joins(workspace, depth)]),
        Box::new(move || vec![guest::scheduler(workspace, depth)]),
        Box::new(move || vec![guest::servers(workspace, depth)]),
        Box::new(move || vec![proofs::loom(workspace, depth)]),
        Box::new(move || proofs::memory(workspace, depth)),
        Box::new(|| vec![proofs::miri(workspace)]),
    ]
}

/// The whole workspace, with the command's optional parts. The same words in every stage: others
/// would build DataFusion once more.
pub(crate) const WHOLE: [&str; 3] =
    ["--workspace", "--features", "workahead-cli/cluster,workahead-cli/scheduler"];

fn clippy(workspace: &Workspace) -> Stage {
    let mut command = workspace.cargo(&["clippy"]);
    command.args(WHOLE).args(["--all-targets", "--", "-D", "warnings"]);
    Stage::commands("clippy", vec![command])
}

fn small_benches(workspace: &Workspace) -> Stage {
    let mut command = workspace.cargo(&["test"]);
    command.args(WHOLE).args(["--bench", "*"]);
    Stage::commands("benches, small", vec![command])
}

/// Unit and process tests.
fn tests(workspace: &Workspace, depth: Depth) -> Stage {
    let mut command = workspace.cargo(&["test"]);
    command.args(WHOLE).args(["--tests", "--examples", "--no-fail-fast"]);
    if depth == Depth::Full {
        command.env("PROPTEST_CASES", "1024");
    }
    Stage::tests("tests", vec![command])
}

/// Joins by the command against DuckDB's, from a fixed seed.
fn fuzz_joins(workspace: &Workspace, depth: Depth) -> Stage {
    match depth {
        Depth::Usual => Stage::skipped("fuzz joins", "it is part of `cargo xtask test --full`"),
        Depth::Full => Stage::check("fuzz joins", || fuzz::joins(workspace, &fuzz::SHORT)),
    }
}

fn doc_tests(workspace: &Workspace) -> Stage {
    let mut command = workspace.cargo(&["test"]);
    command.args(WHOLE).arg("--doc");
    Stage::tests("doc tests", vec![command])
}

#[derive(Default)]
struct Report {
    stages: Vec<Stage>,
}

impl Report {
    fn failed(&self) -> bool {
        self.stages.iter().any(Stage::failed)
    }

    /// Every test that was counted, and one failure for a stage that failed without a test.
    fn total(&self) -> Counts {
        let mut total = Counts::default();
        for stage in &self.stages {
            total.add(stage.counts);
            if stage.failed() && stage.counts.failed == 0 {
                total.failed += 1;
            }
        }
        total
    }

    /// A line for each stage, and the closing line.
    fn summary(&self) -> String {
        let mut lines: Vec<String> = self.stages.iter().map(Stage::line).collect();
        if let Some(stage) = self.stages.iter().find(|stage| stage.failed()) {
            lines.push(format!("  stopped at `{}`; later stages were not run", stage.name));
        }
        lines.push(format!("\n{}", self.total()));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::stage::Outcome;

    fn stage(outcome: Outcome, passed: u64, failed: u64) -> Stage {
        let counts = Counts { passed, failed, skipped: 0 };
        Stage { name: "stage", outcome, counts, took: Duration::ZERO }
    }

    #[test]
    fn the_total_is_over_all_stages() {
        let stages = vec![stage(Outcome::Passed, 7, 0), stage(Outcome::Passed, 5, 0)];
        let report = Report { stages };
        assert!(!report.failed());
        assert_eq!(report.total().to_string(), "12 passed, 0 failed");
    }

    #[test]
    fn a_failed_stage_without_tests_still_counts_as_a_failure() {
        let stages = vec![stage(Outcome::Failed("exit status 1".into()), 0, 0)];
        assert_eq!(Report { stages }.total().to_string(), "0 passed, 1 failed");
        let stages = vec![stage(Outcome::Failed("exit status 101".into()), 3, 2)];
        assert_eq!(Report { stages }.total().to_string(), "3 passed, 2 failed");
    }

    #[test]
    fn a_skipped_stage_is_no_failure() {
        let report = Report { stages: vec![Stage::skipped("miri", "not here")] };
        assert!(!report.failed());
    }
}
