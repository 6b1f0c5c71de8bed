//! Answers of results whose throughputs are known.

use workahead_study::observation::Outcome;
use workahead_study::testing::{self, Mock};

use super::*;
use crate::request::{Request, Workload};

/// A result of 30 rounds, the first `rounds` kept: throughput and p99 by level, noise of 2 %.
fn results(question: Question, rounds: u32, truth: &[(f64, f64)]) -> Results {
    let request = Request {
        question,
        engine: "mock".to_owned(),
        workload: Workload::Sql("select 1".to_owned()),
        levels: (0..truth.len()).map(|level| 1 << level).collect(),
        clients: 32,
        seconds: 1.0,
        hotplug: false,
    };
    let dir = tempfile::tempdir().unwrap();
    let mut mock = Mock::new();
    mock.extra =
        vec!["workload", "sql", "clients", "seconds", "warmup_s", "cpus", "parallel", "smt"];
    let mut results = testing::results(dir.path(), &request.study().unwrap(), &mut mock);
    results.spec.id = question.study_id();
    results.observations.retain(|seen| seen.repetition < rounds);
    for (at, seen) in results.observations.iter_mut().enumerate() {
        seen.unix_ms = at as u64 * 2000;
        let Outcome::Sample(sample) = &mut seen.outcome else { panic!("a mock has no failures") };
        let (throughput, p99_ms) = truth[seen.cell];
        let wobble = [0.0, 0.02, -0.02, 0.01, -0.01][(at * 7 + seen.cell * 3) % 5];
        sample.tuples = 1000;
        sample.wall_s = 1000.0 / throughput * (1.0 + wobble);
        sample.measures.insert(P99.to_owned(), p99_ms);
    }
    results
}

fn answer(question: Question, rounds: u32, truth: &[(f64, f64)]) -> Answer {
    Answer::of(&results(question, rounds, truth), 0.05).unwrap()
}

#[test]
fn the_fewest_that_suffice() {
    let truth = [(1000.0, 3.0), (1900.0, 3.2), (3000.0, 4.0), (3050.0, 9.0)];
    let clients = answer(Question::Clients, 30, &truth);
    assert_eq!(clients.choice.as_deref(), Some("4"));
    let begins = "4 clients suffice: 98 % (";
    assert!(clients.sentence.starts_with(begins), "{}", clients.sentence);
    let ends = "of the throughput with 8, the best; p99 4.00 ms, with 8 clients 9.00 ms.";
    assert!(clients.sentence.ends_with(ends), "{}", clients.sentence);
    let verdicts: Vec<Verdict> = clients.levels.iter().map(|level| level.verdict).collect();
    use Verdict::{FallsShort, Suffices};
    assert_eq!(verdicts, [FallsShort, FallsShort, Suffices, Suffices]);
    assert_eq!(clients.unit, "queries/s");
}

#[test]
fn all_are_of_use() {
    let cores = answer(Question::Cores, 30, &[(1000.0, 3.0), (1900.0, 3.2)]);
    assert_eq!(cores.choice.as_deref(), Some("2"));
    assert!(
        cores.sentence.starts_with("Both CPUs are of use: with 1 CPU throughput is 53 % ("),
        "{cores:?}"
    );
    let one = answer(Question::Cores, 30, &[(1000.0, 3.0), (1001.0, 3.2)]);
    assert!(one.sentence.starts_with("1 CPU suffices: 100 % ("), "{}", one.sentence);
    let fewer = answer(Question::Parallelism, 30, &[(1000.0, 3.0), (600.0, 3.2)]);
    assert!(fewer.sentence.starts_with("Degree 1 suffices: no other does more"), "{fewer:?}");
}

#[test]
fn siblings_on_off_or_the_same() {
    let on = answer(Question::Smt, 30, &[(1000.0, 15.0), (1140.0, 12.0)]);
    assert_eq!(on.choice.as_deref(), Some("on"));
    let says = "Keep SMT on: +14 % (";
    assert!(on.sentence.starts_with(says), "{}", on.sentence);
    assert!(on.sentence.ends_with("throughput at 32 clients, p99 −3.00 ms."), "{}", on.sentence);
    let off = answer(Question::Smt, 30, &[(1000.0, 3.0), (800.0, 4.0)]);
    assert_eq!(off.choice.as_deref(), Some("off"));
    assert!(off.sentence.starts_with("Turn SMT off: with it −20 % ("), "{}", off.sentence);
    let same = answer(Question::Smt, 30, &[(1000.0, 3.0), (1001.0, 3.0)]);
    assert!(same.sentence.starts_with("SMT makes no difference of 5 %"), "{}", same.sentence);
}

#[test]
fn what_is_not_decided_says_how_long_it_would_take() {
    let cores = answer(Question::Cores, 4, &[(1000.0, 3.0), (2000.0, 3.0), (2100.0, 3.0)]);
    assert!(!cores.decided);
    let begins = "Not decided after 4 rounds: the answer is 2 or 4 CPUs; about ";
    assert!(cores.sentence.starts_with(begins), "{}", cores.sentence);
    assert!(cores.sentence.ends_with(" in all would show it."), "{}", cores.sentence);
    let none = answer(Question::Cores, 0, &[(1000.0, 3.0), (2000.0, 3.0)]);
    let begins = "Not decided: 0 of the 4 rounds that an answer takes at least are measured";
    assert!(none.sentence.starts_with(begins), "{}", none.sentence);
    assert!(none.levels.iter().all(|level| level.of_best.is_none()), "{none:?}");
}

#[test]
fn looks_are_after_whole_rounds_of_the_list() {
    let truth = [(1000.0, 3.0), (1900.0, 3.2)];
    let at = |rounds| {
        let look = Answer::at_look(&results(Question::Cores, rounds, &truth), 0.05);
        look.is_some_and(|look| look.is_decided)
    };
    assert_eq!([3, 4, 5, 6].map(at), [false, true, false, true]);
}

#[test]
fn a_level_that_failed_is_named_and_left_out() {
    let mut results = results(Question::Cores, 9, &[(1000.0, 3.0), (1900.0, 3.2), (3000.0, 3.0)]);
    let last = results.observations.iter_mut().rfind(|seen| seen.cell == 2).unwrap();
    last.outcome = Outcome::Failed { failure: "out of memory".to_owned() };
    let answer = Answer::of(&results, 0.05).unwrap();
    assert_eq!(answer.levels.len(), 2);
    assert!(answer.notes.iter().any(|note| note == "4 CPUs: failed: out of memory."), "{answer:?}");
    results.spec.id = "quick".to_owned();
    assert_eq!(Answer::of(&results, 0.05), None);
}

#[test]
fn what_falls_short_is_left_out_and_said_so() {
    let truth = [(1000.0, 3.0), (2900.0, 3.2), (3000.0, 4.0)];
    let whole = results(Question::Cores, 9, &truth);
    let look = Answer::at_look(&whole, 0.05).unwrap();
    assert_eq!(look.fallen, [0], "{look:?}");
    let mut raced = results(Question::Cores, 9, &truth);
    raced.observations.retain(|seen| seen.cell != 0 || seen.repetition < 4);
    let answer = Answer::of(&raced, 0.05).unwrap();
    assert_eq!((answer.rounds, answer.levels[0].verdict), (9, Verdict::FallsShort));
    let said = answer.notes.join(" ");
    assert!(said.contains("not sampled in all 9 rounds: 1 CPU after 4."), "{said}");
    assert_eq!(answer.levels[1].of_best, Answer::of(&whole, 0.05).unwrap().levels[1].of_best);
}
