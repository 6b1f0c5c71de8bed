//! The report at the end: a line of each stage, the slowest programs, the total.

use super::binaries::ProgramRun;
use super::depth::Depth;
use super::jobs::StageEntry;
use crate::counts::Counts;
use crate::stage::Stage;

/// Programs in the table of the slowest.
const SLOWEST: usize = 10;
/// Quicker ones are not worth a line.
const WORTH_A_LINE_S: f64 = 1.0;
/// A test above this moves to `--full`.
const SLOW_TEST_S: f64 = 60.0;

#[derive(Default)]
pub(crate) struct Report {
    /// Each with the word and depth of the stage that it is part of.
    stages: Vec<(&'static str, Depth, Stage)>,
    /// Stopped at the first failure, as requested.
    pub(crate) stopped: bool,
}

impl Report {
    pub(crate) fn add(&mut self, listed: &StageEntry, stages: Vec<Stage>) {
        self.stages.extend(stages.into_iter().map(|stage| (listed.word, listed.depth, stage)));
    }

    pub(crate) fn failed(&self) -> bool {
        self.stages.iter().any(|(_, _, stage)| stage.failed())
    }

    /// Why a stage can't be run: what builds its programs did not.
    pub(crate) fn missing(&self, listed: &StageEntry) -> Option<String> {
        let (word, depth) = listed.needs?;
        let built = |(of, at, stage): &&(&str, Depth, Stage)| {
            *of == word && *at == depth && stage.name.starts_with("build")
        };
        let failed = self.stages.iter().filter(built).find(|(_, _, stage)| stage.failed())?;
        Some(format!("it needs `{}`, which failed", failed.2.name))
    }

    /// Every test that was counted, and one failure for a stage that failed without a test.
    pub(crate) fn total(&self) -> Counts {
        let mut total = Counts::default();
        for (_, _, stage) in &self.stages {
            total.add(stage.counts);
            if stage.failed() && stage.counts.failed == 0 {
                total.failed += 1;
            }
        }
        total
    }

    /// A line for each stage, and what took longest.
    pub(crate) fn summary(&self, slowest: Option<usize>) -> String {
        let mut lines: Vec<String> = self.stages.iter().map(|(_, _, stage)| stage.line()).collect();
        if self.stopped {
            lines.push("  stopped at the first failure; later stages were not run".to_owned());
        }
        let mut programs: Vec<&ProgramRun> =
            self.stages.iter().flat_map(|(_, _, stage)| &stage.programs).collect();
        programs.sort_by_key(|ran| std::cmp::Reverse(ran.took));
        programs.retain(|ran| ran.took.as_secs_f64() >= WORTH_A_LINE_S);
        if !programs.is_empty() {
            lines.push("\n  slowest programs".to_owned());
            let line =
                |ran: &&ProgramRun| format!("  {:>7.1} s  {}", ran.took.as_secs_f64(), ran.title);
            lines.extend(programs.iter().take(SLOWEST).map(line));
        }
        lines.extend(self.slowest_tests(slowest));
        lines.join("\n")
    }

    fn slowest_tests(&self, slowest: Option<usize>) -> Vec<String> {
        let programs = self.stages.iter().flat_map(|(_, _, stage)| &stage.programs);
        let mut tests: Vec<(&str, &str, f64)> = programs
            .flat_map(|ran| {
                ran.tests.iter().map(|(test, s)| (ran.title.as_str(), test.as_str(), *s))
            })
            .collect();
        tests.sort_by(|one, other| other.2.total_cmp(&one.2));
        let mut lines = Vec::new();
        match slowest {
            Some(count) => tests.truncate(count),
            None => tests.retain(|(_, _, took_s)| *took_s >= SLOW_TEST_S),
        }
        if !tests.is_empty() {
            lines.push("\n  slowest tests (above 60 s they belong into --full)".to_owned());
        }
        for (program, test, took_s) in tests {
            let at_least = if slowest.is_some() { "" } else { ">" };
            lines.push(format!("  {:>7} s  {program}: {test}", format!("{at_least}{took_s:.1}")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::stage::Outcome;
    use crate::test::STAGES;

    fn stage(outcome: Outcome, passed: u64, failed: u64) -> Stage {
        let counts = Counts { passed, failed, skipped: 0 };
        Stage { outcome, counts, ..Stage::skipped("build", "") }
    }

    fn of(stages: Vec<Stage>) -> Report {
        let mut report = Report::default();
        let tests = STAGES.iter().find(|listed| listed.word == "tests").unwrap();
        report.add(tests, stages);
        report
    }

    fn ran(title: &str, took_s: f64, tests: &[(&str, f64)]) -> ProgramRun {
        ProgramRun {
            title: title.into(),
            counts: Counts::default(),
            took: Duration::from_secs_f64(took_s),
            failure: None,
            tests: tests.iter().map(|(test, took_s)| ((*test).into(), *took_s)).collect(),
        }
    }

    #[test]
    fn the_total_is_over_all_stages() {
        let report = of(vec![stage(Outcome::Passed, 7, 0), stage(Outcome::Passed, 5, 0)]);
        assert!(!report.failed());
        assert_eq!(report.total().to_string(), "12 passed, 0 failed");
    }

    #[test]
    fn a_failed_stage_without_tests_still_counts_as_a_failure() {
        let report = of(vec![stage(Outcome::Failed("exit status 1".into()), 0, 0)]);
        assert_eq!(report.total().to_string(), "0 passed, 1 failed");
        let report = of(vec![stage(Outcome::Failed("exit status 101".into()), 3, 2)]);
        assert_eq!(report.total().to_string(), "3 passed, 2 failed");
    }

    #[test]
    fn a_skipped_stage_is_no_failure() {
        assert!(!of(vec![Stage::skipped("miri", "not here")]).failed());
    }

    #[test]
    fn what_needs_a_build_that_failed_says_so() {
        let needy = |word| STAGES.iter().find(|listed| listed.word == word).unwrap();
        let failed = of(vec![stage(Outcome::Failed("exit status 101".into()), 0, 0)]);
        let why = failed.missing(needy("doctests")).unwrap();
        assert!(why.contains("`build`, which failed"), "{why}");
        assert_eq!(failed.missing(needy("loom")), None);
        assert_eq!(failed.missing(needy("guest")), None, "it needs another build");
        assert_eq!(of(vec![stage(Outcome::Passed, 0, 0)]).missing(needy("doctests")), None);
    }

    #[test]
    fn the_slowest_come_first() {
        let mut one = stage(Outcome::Passed, 2, 0);
        one.programs = vec![
            ran("quick", 0.1, &[("a", 0.1)]),
            ran("slow", 70.0, &[("b", 65.0), ("c", 5.0)]),
            ran("middle", 9.0, &[("d", 9.0)]),
        ];
        let report = of(vec![one]);
        let summary = report.summary(Some(2));
        assert!(!summary.contains("quick"), "{summary}");
        assert!(summary.find("70.0 s  slow").unwrap() < summary.find("9.0 s  middle").unwrap());
        assert!(summary.contains("65.0 s  slow: b") && summary.contains("9.0 s  middle: d"));
        assert!(!summary.contains("slow: c"));
        let usual = report.summary(None);
        assert!(usual.contains(">65.0 s  slow: b") && !usual.contains("middle: d"), "{usual}");
    }
}
