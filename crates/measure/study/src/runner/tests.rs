//! The runner on an engine without a machine: order, interruption, failure, findings.

use std::fs;

use super::*;
use crate::results::Results;
use crate::spec::Spec;
use crate::statistics::Significance;
use crate::testing::{self, Mock, Trouble};
use crate::verdict::Word;
use crate::{directory, needs};

const STUDY: &str = r#"
title = "Demo"
question = "Which?"
engine = "mock"
workload = { rows = 1000 }
[axes]
pages = ["huge", "small"]
[[cases]]
name = "sequential"
[[cases]]
name = "AMAC"
speed = 2.0
[[cases]]
name = "staged"
[method]
repetitions = 3
baseline = { case = "sequential" }
[[paper]]
row = "E4.6"
figure = "Fig. 6b"
where = { case = "AMAC" }
ratio = 1.5
says = "+50 %"
[[paper]]
row = "E4.7"
figure = "Fig. 7"
where = { case = "staged" }
ratio = 1.4
says = "+40 %"
[[paper]]
row = "E4.8"
figure = "Fig. 8"
needs = ["siblings"]
ratio = 1.4
says = "+40 %"
"#;

/// A result directory, run.
struct TestRun {
    dir: tempfile::TempDir,
    run_plan: RunPlan,
    fingerprint: String,
}

fn test_run() -> TestRun {
    TestRun::of(STUDY)
}

impl TestRun {
    /// In memory where there is such a directory: every sample is synced, and a test has thousands.
    fn of(study: &str) -> TestRun {
        let memory = std::path::Path::new("/dev/shm");
        let dir = match memory.is_dir() {
            true => tempfile::tempdir_in(memory).unwrap(),
            false => tempfile::tempdir().unwrap(),
        };
        let (run_plan, record) = testing::begin(dir.path(), study, &Mock::new());
        TestRun { dir, run_plan, fingerprint: record.run_plan_fingerprint }
    }

    fn run(&self, mock: &mut Mock) -> End {
        let job =
            Job { run_plan: &self.run_plan, fingerprint: &self.fingerprint, dir: self.dir.path() };
        run(job, mock, &Stop::new(), &mut |_| {}).unwrap()
    }

    fn log(&self) -> Vec<u8> {
        fs::read(self.dir.path().join(log::FILE)).unwrap()
    }

    fn set_log(&self, bytes: &[u8]) {
        fs::write(self.dir.path().join(log::FILE), bytes).unwrap();
    }

    fn results(&self) -> Results {
        Results::load(self.dir.path()).unwrap()
    }

    /// Samples and their slots, which must not depend on interruptions.
    fn samples(&self) -> Vec<(usize, u32, usize)> {
        let results = self.results();
        results.observations.iter().map(|seen| (seen.cell, seen.repetition, seen.slot)).collect()
    }
}

#[test]
fn blocks_are_prepared_once_warmed_up_and_visited_forward_and_backward() {
    let started = test_run();
    let mut mock = Mock::new();
    assert_eq!(started.run(&mut mock), End::Complete);
    let rounds = [[0, 1, 2], [0, 1, 2], [2, 1, 0], [0, 1, 2]].concat();
    let second = rounds.iter().map(|cell| cell + 3);
    assert_eq!(mock.runs, rounds.iter().copied().chain(second).collect::<Vec<_>>());
    assert_eq!(mock.prepared, 2);
    assert!(mock.finished);
    assert!(started.results().is_complete());
}

/// Two cells, two repetitions: short enough to be cut at every byte.
const SHORT: &str = "title = 't'\nquestion = 'q'\nengine = 'mock'\n\
    [[cases]]\nname = 'a'\n[[cases]]\nname = 'b'\n[method]\nrepetitions = 2\n";

#[test]
fn a_log_cut_at_any_byte_is_completed_to_the_same_samples() {
    let started = TestRun::of(SHORT);
    started.run(&mut Mock::new());
    let (whole, samples) = (started.log(), started.samples());
    assert_eq!(samples.len(), 4);
    for cut in 0..=whole.len() {
        started.set_log(&whole[..cut]);
        let mut mock = Mock::new();
        assert_eq!(started.run(&mut mock), End::Complete);
        assert_eq!(started.samples(), samples, "cut at {cut}");
        let last = whole[..cut].iter().rposition(|byte| *byte == b'\n');
        let kept = &whole[..last.map_or(0, |last| last + 1)];
        assert!(started.log().starts_with(kept), "kept lines stay as they are");
        let left = samples.len() - kept.iter().filter(|byte| **byte == b'\n').count();
        assert!(
            mock.runs.len() - left <= started.run_plan.cells.len(),
            "only warm-ups are run again"
        );
    }
}

#[test]
fn a_stopped_run_is_continued() {
    let all = test_run();
    all.run(&mut Mock::new());
    for at in 0..24 {
        let started = test_run();
        let mut mock = Mock::with(Trouble::Stop(at));
        assert_eq!(started.run(&mut mock), End::Stopped);
        assert!(mock.finished, "changes are undone");
        assert_eq!(mock.runs.len(), at + 1, "nothing is run after a stop");
        assert!(!started.results().is_complete());
        assert_eq!(started.run(&mut Mock::new()), End::Complete);
        assert_eq!(started.samples(), all.samples());
    }
}

#[test]
fn a_failure_costs_one_cell_only_and_stays() {
    for trouble in [Trouble::Fail(0), Trouble::Fail(4), Trouble::WrongAnswer(6)] {
        let started = test_run();
        assert_eq!(started.run(&mut Mock::with(trouble)), End::Failures(1), "{trouble:?}");
        let results = started.results();
        let failed: Vec<_> =
            results.findings().into_iter().filter(|f| f.failure.is_some()).collect();
        assert_eq!(failed.len(), 1);
        let complete = results.findings().iter().filter(|finding| finding.samples == 3).count();
        assert_eq!(complete, 5);
        let absences = results.findings().into_iter().map(|f| results.absence(f.cell));
        let (failed, ran): (Vec<_>, Vec<_>) = absences.partition(|why| why.starts_with("failed: "));
        assert_eq!((failed.len(), ran), (1, vec!["has no such figure".to_owned(); 5]));
        assert!(results.is_complete());
        let mut again = Mock::new();
        assert_eq!(started.run(&mut again), End::Failures(1), "kept, not tried again");
        assert!(again.runs.is_empty());
    }
}

#[test]
fn an_answer_that_changes_between_repetitions_is_a_failure() {
    let started = test_run();
    started.run(&mut Mock::with(Trouble::WrongAnswer(6)));
    let failure =
        started.results().findings().into_iter().find_map(|finding| finding.failure).unwrap();
    assert!(failure.starts_with("wrong answer: 1001 rows"), "{failure}");
    assert!(failure.contains("expected 1000"), "{failure}");
}

#[test]
fn logs_of_other_run_plans_doubles_and_junk_are_refused() {
    let started = test_run();
    started.run(&mut Mock::new());
    let whole = String::from_utf8(started.log()).unwrap();
    let first = whole.lines().next().unwrap();
    let refused = |text: &str| {
        started.set_log(text.as_bytes());
        Results::load(started.dir.path()).unwrap_err().to_string()
    };
    let other = refused(&whole.replace(&started.fingerprint, "0123456789abcdef"));
    assert!(other.contains("another run plan (0123456789abcdef"), "{other}");
    let double = refused(&format!("{first}\n{first}\n"));
    assert!(double.contains("line 2") && double.contains("twice"), "{double}");
    let junk = refused(&format!("{first}\nnot json\n{first}\n"));
    assert!(junk.contains("line 2"), "{junk}");
    let beyond = refused(&format!("{}\n", first.replace("\"cell\":0", "\"cell\":99")));
    assert!(beyond.contains("no such cell"), "{beyond}");
}

#[test]
fn two_runs_do_not_share_a_directory() {
    let started = test_run();
    let open = Log::open(started.dir.path()).unwrap();
    let error = Log::open(started.dir.path()).unwrap_err().to_string();
    assert!(error.contains("being written by another run"), "{error}");
    let error = directory::claim_replacing(started.dir.path()).unwrap_err().to_string();
    assert!(error.contains("being written by another run"), "--force is not an exception: {error}");
    drop(open);
    Log::open(started.dir.path()).unwrap();
}

#[test]
fn findings_and_verdicts_follow_from_the_mock() {
    let started = test_run();
    started.run(&mut Mock::new());
    let results = started.results();
    let findings = results.findings();
    assert!(findings[0].is_baseline && findings[0].ratio.is_none());
    let amac = findings[1].ratio.unwrap();
    assert!((amac.ratio / 2.0 - 1.0).abs() < 0.03, "{amac:?}");
    assert_eq!((amac.shown(), amac.pairs), (Significance::Faster, 3));
    assert_eq!(findings[2].ratio.unwrap().shown(), Significance::NoDifference);
    let words: Vec<Word> =
        results.verdicts().iter().map(|verdict| verdict.judgement.direction).collect();
    assert_eq!(words, [Word::Agrees, Word::Disagrees, Word::CannotBeSaidHere]);
    let verdicts = results.verdicts();
    assert!(verdicts[2].judgement.reason.contains("share a core"), "{:?}", verdicts[2]);
    assert_eq!(verdicts[0].tier, "C");
    assert_eq!(verdicts[0].cells.len(), 2, "one per page size");
}

#[test]
fn a_run_on_a_busy_machine_concludes_nothing() {
    let started = test_run();
    started.run(&mut Mock::new());
    let mut results = started.results();
    assert_eq!(results.cpu_share(), None, "the mock does not report its threads");
    let mut had = |share: f64| {
        for seen in &mut results.observations {
            let Outcome::Sample(sample) = &mut seen.outcome else { unreachable!("none failed") };
            sample.measures.insert("threads".to_owned(), 2.0);
            sample.cpu_s = Some(2.0 * share * sample.wall_s);
        }
        (results.cpu_share().unwrap(), results.verdicts())
    };
    let (share, verdicts) = had(0.26);
    assert!((share - 0.26).abs() < 1e-9);
    assert!(verdicts.iter().all(|verdict| verdict.judgement.direction == Word::CannotBeSaidHere));
    assert!(
        verdicts[0].judgement.reason.contains("busy")
            && verdicts[0].judgement.reason.contains("26 %")
    );
    assert_eq!(had(0.97).1[0].judgement.direction, Word::Agrees);
}

#[test]
fn events_cover_the_whole_run() {
    let started = test_run();
    let job = Job {
        run_plan: &started.run_plan,
        fingerprint: &started.fingerprint,
        dir: started.dir.path(),
    };
    let (mut warm, mut started, mut kept, mut total) = (0, 0, 0, 0);
    let mut observe = |event: Event<'_>| match event {
        Event::Start { samples, .. } => total = samples,
        Event::WarmUp(_) => warm += 1,
        Event::Next { .. } => {}
        Event::Sample(_) => started += 1,
        Event::Kept(_) => kept += 1,
    };
    run(job, &mut Mock::new(), &Stop::new(), &mut observe).unwrap();
    assert_eq!((total, warm, started, kept), (18, 6, 18, 18));
}

#[test]
fn samples_left_out_by_an_observer_are_run_by_the_next_run() {
    let started = test_run();
    let job = Job {
        run_plan: &started.run_plan,
        fingerprint: &started.fingerprint,
        dir: started.dir.path(),
    };
    let samples = |left_out: Option<usize>| {
        let mut kept = 0;
        let mut observe = |event: Event<'_>| match event {
            Event::Next { cell, leave_out } => *leave_out = left_out == Some(cell.index),
            Event::Kept(_) => kept += 1,
            _ => {}
        };
        let end = run(job, &mut Mock::new(), &Stop::new(), &mut observe).unwrap();
        assert_eq!(end, End::Complete);
        kept
    };
    assert_eq!([samples(Some(0)), samples(None)], [15, 3]);
}

#[test]
fn needs_are_checked_before_anything_runs() {
    let spec = Spec::parse("demo", &STUDY.replace("rows = 1000", "row = 1000")).unwrap();
    let error = needs::of(&RunPlan::new(&spec), &Mock::new()).unwrap_err().to_string();
    let expected = "study `demo`, cell \"huge / sequential\": unknown setting `row`: \
                    did you mean `rows`?";
    assert_eq!(error, expected);
    let text = format!("{STUDY}[scale.small]\nworkload.rows = 1\n");
    let spec = Spec::parse("demo", &text).unwrap();
    let needed = needs::of(&RunPlan::new(&spec), &Mock::new()).unwrap();
    assert_eq!(needs::memory_bytes_max(&needed), 16_000);
    needs::fit(&spec, &needed, 16_000).unwrap();
    let error = needs::fit(&spec, &needed, 15_999).unwrap_err().to_string();
    assert!(error.contains("--scale small"), "{error}");
}

/// A mock with query plans, which changes its plan at a chosen run.
struct Planning {
    mock: Mock,
    changes_at: usize,
}

impl Engine for Planning {
    fn name(&self) -> &str {
        self.mock.name()
    }

    fn version(&self) -> String {
        self.mock.version()
    }

    fn check(&self, cell: &Cell) -> Result<crate::engine::Need, EngineError> {
        self.mock.check(cell)
    }

    fn prepare(&mut self, cell: &Cell, stop: &Stop) -> Result<(), EngineError> {
        self.mock.prepare(cell, stop)
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError> {
        let index = if self.mock.runs.len() < self.changes_at { "one" } else { "other" };
        let rows = self.mock.runs.len();
        let scan = format!(r#""Node Type": "Index Scan", "Index Name": "{index}""#);
        let text = format!(r#"[{{"Plan": {{{scan}, "Plan Rows": {rows}}}}}]"#);
        let plan = Some(PlanText::new(crate::plans::Planner::Postgres, text));
        Ok(Sample { plan, ..self.mock.run(cell, stop)? })
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.mock.finish()
    }
}

#[test]
fn a_plan_is_kept_once_per_cell_and_again_when_it_changes() {
    // Of each cell: a warm-up, then samples at runs 2 and 3, 4 and 5, 6 and 7.
    let study = SHORT.replace("repetitions = 2", "repetitions = 3");
    let kept = |changes_at: usize| {
        let started = TestRun::of(&study);
        let job = Job {
            run_plan: &started.run_plan,
            fingerprint: &started.fingerprint,
            dir: started.dir.path(),
        };
        let mut engine = Planning { mock: Mock::new(), changes_at };
        run(job, &mut engine, &Stop::new(), &mut |_| {}).unwrap();
        let results = started.results();
        let has_plan = |seen: &Observation| seen.sample().is_some_and(|one| one.plan.is_some());
        results.observations.iter().map(has_plan).collect::<Vec<_>>()
    };
    assert_eq!(kept(usize::MAX), [true, true, false, false, false, false]);
    assert_eq!(kept(4), [true, true, true, true, false, false]);
}

#[test]
fn cold_cells_are_not_warmed_up() {
    let started = TestRun::of(&SHORT.replace("[method]", "[method]\nprotocol = 'cold'"));
    let mut mock = Mock::new();
    assert_eq!(started.run(&mut mock), End::Complete);
    assert_eq!(mock.runs, [0, 1, 1, 0]);
}

#[test]
fn a_random_order_is_continued_where_it_was_stopped() {
    let study = STUDY.replace("[method]", "[method]\norder = 'random'");
    let whole = TestRun::of(&study);
    whole.run(&mut Mock::new());
    for at in 0..24 {
        let started = TestRun::of(&study);
        assert_eq!(started.run(&mut Mock::with(Trouble::Stop(at))), End::Stopped);
        assert_eq!(started.run(&mut Mock::new()), End::Complete);
        assert_eq!(started.samples(), whole.samples(), "stopped at {at}");
    }
}
