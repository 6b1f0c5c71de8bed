//! Candidates in turn, round after round, so that what disturbs the machine disturbs all of them.
//!
//! Times are those of the thread's own CPU clock: a machine that others use too takes the processor
//! away, which the clock does not count. What they do to caches it can't leave out.

use std::hint::black_box;

use serde_json::{Value, json};

/// Something timed, by the number of a round: in each it must answer what the others do.
pub struct Candidate<'a> {
    name: String,
    run: Box<dyn FnMut(usize) -> u64 + 'a>,
}

impl<'a> Candidate<'a> {
    pub fn new(name: impl Into<String>, run: impl FnMut(usize) -> u64 + 'a) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// Nanoseconds for which this thread has had a processor.
pub fn cpu_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the structure that it is given.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "the thread's clock can be read");
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Runs all candidates in round 0, where their answers are compared, then in rounds 1 to `rounds`,
/// in an order that rotates. Nanoseconds for each of `operations`.
///
/// Each runs twice, with the keys of another round first: the second of two candidates that look up
/// in one table would find a part of it in caches of hundreds of megabytes, and its translations,
/// where the first finds what others left (30 ns instead of 17 in a virtual machine).
///
/// # Panics
/// If two answers differ.
pub fn interleaved(
    group: &str,
    mut all: Vec<Candidate<'_>>,
    rounds: usize,
    operations: usize,
) -> Value {
    let answers: Vec<u64> = all.iter_mut().map(|one| black_box((one.run)(0))).collect();
    for (one, answer) in all.iter().zip(&answers) {
        assert_eq!(*answer, answers[0], "{} answers otherwise than {}", one.name, all[0].name);
    }
    let mut timed = vec![Vec::with_capacity(rounds); all.len()];
    for round in 1..=rounds {
        for place in 0..all.len() {
            let at = (round + place) % all.len();
            black_box((all[at].run)(1 + (round + rounds / 2) % rounds));
            let begun = cpu_ns();
            black_box((all[at].run)(round));
            timed[at].push((cpu_ns() - begun) / operations as f64);
        }
    }
    let candidates: Vec<Value> =
        all.iter().zip(timed).map(|(one, rounds)| summary(&one.name, rounds)).collect();
    for one in &candidates {
        eprintln!("{group:32} {:28} {:>8.2} ns", one["name"].as_str().unwrap(), one["ns"]);
    }
    json!({ "group": group, "operations": operations, "candidates": candidates })
}

/// Median and range of a candidate's rounds.
pub fn summary(name: &str, mut rounds: Vec<f64>) -> Value {
    rounds.sort_by(f64::total_cmp);
    let hundredths = |ns: f64| (ns * 100.0).round() / 100.0;
    json!({
        "name": name,
        "ns": hundredths(rounds[rounds.len() / 2]),
        "ns_least": hundredths(rounds[0]),
        "ns_most": hundredths(rounds[rounds.len() - 1]),
    })
}
