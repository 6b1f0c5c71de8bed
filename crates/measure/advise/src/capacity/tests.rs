//! Answers on servers whose ceiling is known, and refusals.

use super::simulated::{ObservationConditions, SEEN, SERVER, Serial, Server};
use super::*;

/// Trials of each server.
const TRIALS: u64 = 40;

/// The outcomes of the trials of a server.
#[derive(Debug)]
struct Tally {
    answers: usize,
    /// Answers whose interval has the true ceiling.
    covered: usize,
    /// Answers that name what saturates first.
    right: usize,
    /// Errors of the ceiling, and of that by the share of busy CPUs.
    median_error: f64,
    median_naive: f64,
}

fn tally(server: Server, seen: ObservationConditions, first: Resource) -> Tally {
    let truth = server.ceiling();
    let answers: Vec<Capacity> =
        (0..TRIALS).filter_map(|seed| server.observed(seen, seed).capacity().ok()).collect();
    let median = |of: &dyn Fn(&Capacity) -> f64| {
        let mut all: Vec<f64> = answers.iter().map(|a| (of(a) / truth - 1.0).abs()).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    };
    let named = |answer: &&Capacity| answer.first == first || answer.or.contains(&first);
    Tally {
        answers: answers.len(),
        covered: answers.iter().filter(|a| a.ceiling_interval.includes(truth)).count(),
        right: answers.iter().filter(named).count(),
        median_error: median(&|answer| answer.ceiling_per_s),
        median_naive: median(&|answer| answer.naive_ceiling_per_s),
    }
}

const CONTENDED: Server = Server { contention: 0.06, ..SERVER };
const COHERENT: Server = Server { cpus: 16.0, contention: 0.03, coherence: 0.001, ..SERVER };
const CHEAPER: Server = Server { contention: -0.04, ..SERVER };

#[test]
fn ceilings_of_cpus_are_covered() {
    for (server, seen, error) in [
        (SERVER, SEEN, 0.03),
        (SERVER, ObservationConditions { noise: 0.1, ..SEEN }, 0.06),
        (SERVER, ObservationConditions { windows: 15, noise: 0.02, ..SEEN }, 0.08),
        (CONTENDED, SEEN, 0.03),
        (CONTENDED, ObservationConditions { loads: (0.4, 0.9), ..SEEN }, 0.02),
        (CONTENDED, ObservationConditions { loads: (0.35, 0.5), ..SEEN }, 0.1),
        (COHERENT, SEEN, 0.08),
        (COHERENT, ObservationConditions { windows: 60, ..SEEN }, 0.1),
        (CHEAPER, SEEN, 0.04),
    ] {
        let found = tally(server, seen, Resource::Cpus);
        let says = format!("{server:?} {seen:?}: {found:?}");
        assert!(found.answers >= 36 && found.right == found.answers, "{says}");
        assert!(10 * found.covered >= 9 * found.answers, "{says}");
        assert!(found.median_error <= error, "{says}");
    }
}

#[test]
fn the_share_of_busy_cpus_is_further_off_where_cost_changes() {
    for server in [CONTENDED, COHERENT, CHEAPER] {
        let found = tally(server, SEEN, Resource::Cpus);
        assert!(found.median_naive > 3.0 * found.median_error, "{server:?}: {found:?}");
    }
}

/// Something that one transaction at a time may hold, for times that are exponential or all alike.
/// Of ten intervals `covered` at least have the ceiling.
fn a_queue_is_covered(resource: Resource, covered: usize) {
    let mut all = (0, 0);
    for is_constant in [false, true] {
        let serial = Some(Serial { resource, hold_s: 0.001, is_constant });
        let found = tally(Server { serial, ..SERVER }, SEEN, resource);
        assert!(10 * found.right >= 9 * found.answers, "{serial:?}: {found:?}");
        assert!(found.median_error < 0.15, "{serial:?}: {found:?}");
        assert!(found.median_naive > 5.0 * found.median_error, "{serial:?}: {found:?}");
        all = (all.0 + found.answers, all.1 + found.covered);
    }
    assert!(10 * all.1 >= covered * all.0, "{resource:?}: {all:?}");
    assert!(all.0 as u64 >= TRIALS / 2, "{resource:?}: {all:?}");
}

#[test]
fn ceilings_of_locks_are_covered() {
    a_queue_is_covered(Resource::Locks, 9);
}

/// Fewer, and half of the trials have no answer: what is written and what waits look alike at low
/// loads.
#[test]
fn ceilings_of_the_log_are_covered_less_often() {
    a_queue_is_covered(Resource::Log, 8);
}

#[test]
fn a_lock_that_is_seldom_held_hides_nothing() {
    let serial = Some(Serial { resource: Resource::Locks, hold_s: 0.0002, is_constant: false });
    let found = tally(Server { serial, ..SERVER }, SEEN, Resource::Cpus);
    assert!(10 * found.covered >= 9 * found.answers && found.answers >= 36, "{found:?}");
    assert_eq!(found.right, found.answers, "{found:?}");
}

fn refused(observed: &ServerObservation) -> Refusal {
    observed.capacity().expect_err("it can't be said")
}

#[test]
fn unsupported_answers_are_refused_with_the_missing_data() {
    let seen = |loads| ObservationConditions { loads, windows: 60, ..SEEN };
    for (observed, reason, needed) in [
        (SERVER.observed(seen((0.001, 0.005)), 1), Reason::Idle, "more than 3 %"),
        (SERVER.observed(seen((0.5, 0.52)), 1), Reason::Steady, "a third at least"),
        (SERVER.observed(seen((0.99, 1.3)), 1), Reason::Saturated, "less to do"),
        (
            SERVER.observed(ObservationConditions { noise: 0.3, ..seen((0.4, 0.5)) }, 1),
            Reason::Unclear,
            "narrow it enough",
        ),
        (
            SERVER.observed(ObservationConditions { windows: 11, ..SEEN }, 1),
            Reason::TooShort,
            "--for",
        ),
    ] {
        let found = refused(&observed);
        assert_eq!(found.reason, reason, "{found}");
        assert!(found.says.contains(needed) && !found.says.contains('\n'), "{found}");
    }
    let mut observed = SERVER.observed(SEEN, 1);
    observed.lost = Some("the server restarted".to_owned());
    assert_eq!(refused(&observed).reason, Reason::Restarted);
    assert!(refused(&observed).says.starts_with("after 5 minutes the server restarted"));
    observed.lost = None;
    observed.windows[7].cpu = None;
    let found = refused(&observed);
    assert_eq!(found.reason, Reason::Unseen);
    assert!(found.says.contains("through the server's socket"), "{found}");
}

#[test]
fn other_programs_are_named_where_they_take_the_cpus() {
    let mut observed = SERVER.observed(SEEN, 1);
    for window in &mut observed.windows {
        window.cpu = window.cpu.map(|cpu| CpuWindow { busy: cpu.cpus, server: Some(1.0), ..cpu });
    }
    let found = refused(&observed);
    assert_eq!(found.reason, Reason::Saturated);
    assert!(found.says.contains("other programs kept all CPUs busy, with 88 %"), "{found}");
}

#[test]
fn a_sentence_a_table_and_notes() {
    let answer = CONTENDED.observed(SEEN, 3).capacity().unwrap();
    let sentence = &answer.sentence;
    let busy =
        format!("At {:.0} % busy you use {:.0} % (", 100.0 * answer.busy, 100.0 * answer.used);
    assert!(sentence.starts_with(&busy), "{sentence}");
    assert!(sentence.contains("the first thing to saturate is its CPUs, at "), "{sentence}");
    assert!(answer.notes[0].contains("as `top` shows it"), "{:?}", answer.notes);
    assert_eq!(answer.resources[0].resource, Resource::Cpus);
    assert_eq!(answer.resources.len(), 5);
    assert!(answer.resources[1..].iter().all(|one| one.ceiling_per_s.is_none()));
    assert!((answer.used * answer.ceiling_per_s - answer.load_per_s).abs() < 1e-9);
    let again = CONTENDED.observed(SEEN, 3).capacity().unwrap();
    assert_eq!(again, answer, "the draws are seeded");
}

#[test]
fn what_is_hidden_widens_the_answer() {
    let mut observed = CONTENDED.observed(SEEN, 3);
    let all = observed.capacity().unwrap();
    let says = "the waits of 3 sessions of other users".to_owned();
    observed.missing = vec![Missing { says, hides_a_limit: true }];
    let less = observed.capacity().unwrap();
    assert_eq!(less.ceiling_interval.low, less.loads_per_s.high);
    assert!(less.used_interval.high > all.used_interval.high);
    assert_eq!(less.ceiling_interval.high, all.ceiling_interval.high);
    assert!(less.notes[1].contains("a limit may be hidden there"), "{:?}", less.notes);
    observed.missing[0].hides_a_limit = false;
    assert_eq!(observed.capacity().unwrap().ceiling_interval, all.ceiling_interval);
}

#[test]
fn a_quota_saturates_before_the_cpus_do() {
    let mut observed = SERVER.observed(SEEN, 5);
    for window in &mut observed.windows {
        window.cpu = window.cpu.map(|cpu| CpuWindow { quota: Some(6.0), ..cpu });
    }
    let answer = observed.capacity().unwrap();
    assert_eq!(answer.first, Resource::Quota);
    // Of the server's own work: 4 ms a transaction, six CPUs.
    assert!(answer.ceiling_interval.includes(1500.0), "{:?}", answer.ceiling_interval);
    assert!(answer.sentence.contains("the CPU quota of its control group"), "{}", answer.sentence);
}
