//! Shared code of the benches: cases that take turns, whose answers are compared.
//!
//! Every round runs every case once, so that a disturbance falls on all of them alike; a case is
//! worth its median over the rounds, and times are CPU time of the threads (the slowest of them,
//! from a common start), so that another program's turn on the CPU does not count. Figures to trust
//! are therefore the ratios of one run.
//!
//! Without `--bench` among its words (Cargo gives it under `cargo bench`, not under `cargo test`)
//! a bench runs small: a wrong answer ends it either way.

use serde_json::{Map, Value, json};

/// The arguments of the command line.
pub(crate) struct Arguments {
    /// Small sizes and one round: that the bench still runs, and its answers are right.
    pub(crate) small: bool,
    /// One JSON object instead of a table.
    json: bool,
    /// Only cases whose name contains one of these texts, separated by `|`, or is one of them
    /// behind a `=`; and the first of a group always.
    only: String,
    words: Vec<String>,
}

impl Arguments {
    /// Reads the command line: `[--bench] [--small] [--json] [--only TEXT] [--rounds N]`.
    pub(crate) fn read() -> Self {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let has = |name: &str| words.iter().any(|word| word == name);
        let (small, json) = (has("--small") || !has("--bench"), has("--json"));
        let mut arguments = Self { small, json, only: String::new(), words };
        arguments.only = arguments.after("--only").unwrap_or_default().to_owned();
        arguments
    }

    /// The word after another.
    fn after(&self, name: &str) -> Option<&str> {
        let at = self.words.iter().position(|word| word == name)?;
        self.words.get(at + 1).map(String::as_str)
    }

    /// The number after a word.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.after(name).and_then(|word| word.parse().ok())
    }

    /// How often every case runs.
    pub(crate) fn rounds(&self, usual: usize) -> usize {
        self.number("--rounds").unwrap_or(if self.small { 1 } else { usual }).max(1)
    }
}

/// One run of a case.
pub(crate) struct Run {
    /// CPU time of its slowest thread.
    pub(crate) seconds: f64,
    /// The answer: hits and a checksum, equal in all cases of a group; of a limit, nothing.
    pub(crate) answer: Option<(usize, u64)>,
}

/// A case: its name, and how to run it on the group's scratch memory.
pub(crate) struct Case<'a, T: ?Sized> {
    name: String,
    run: Box<dyn Fn(&mut T) -> Run + 'a>,
}

impl<'a, T: ?Sized> Case<'a, T> {
    /// A case.
    pub(crate) fn new(name: impl Into<String>, run: impl Fn(&mut T) -> Run + 'a) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// A case's name and its seconds in every round.
pub(crate) struct Timing {
    /// Its name.
    pub(crate) name: String,
    rounds: Vec<f64>,
}

impl Timing {
    /// The median.
    pub(crate) fn seconds(&self) -> f64 {
        median(self.rounds.clone())
    }

    /// How many times as fast as another case: the median over the rounds, in each of which both
    /// ran on the machine as it was then.
    pub(crate) fn times_as_fast_as(&self, other: &Timing) -> f64 {
        median(other.rounds.iter().zip(&self.rounds).map(|(theirs, own)| theirs / own).collect())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs a group's cases in turn. All answers must equal the first.
///
/// # Panics
/// When two cases disagree.
pub(crate) fn in_turns<T: ?Sized>(
    arguments: &Arguments,
    rounds: usize,
    cases: &[Case<'_, T>],
    scratch: &mut T,
) -> Vec<Timing> {
    let wanted = |name: &str| {
        let mut texts = arguments.only.split('|');
        texts.any(|text| text.strip_prefix('=').map_or(name.contains(text), |whole| whole == name))
    };
    let chosen: Vec<_> =
        (cases[..1].iter()).chain(cases[1..].iter().filter(|case| wanted(&case.name))).collect();
    let timed = |case: &&Case<'_, T>| Timing { name: case.name.clone(), rounds: Vec::new() };
    let mut times: Vec<Timing> = chosen.iter().map(timed).collect();
    let mut expected = None;
    for round in 0..rounds {
        // There and back: the case after one that leaves the caches full is not always the
        // same one.
        let there = 0..chosen.len();
        let turns: Vec<usize> =
            if round % 2 == 0 { there.collect() } else { there.rev().collect() };
        for turn in turns {
            let (case, timed) = (chosen[turn], &mut times[turn]);
            let run = (case.run)(scratch);
            if let Some(answer) = run.answer {
                let (first, wanted) = *expected.get_or_insert((&case.name, answer));
                assert_eq!(answer, wanted, "{} has another answer than {first}", case.name);
            }
            timed.rounds.push(run.seconds);
        }
    }
    times
}

/// The result of a bench: rows of named values, printed in the order they came.
pub(crate) struct Report<'a> {
    arguments: &'a Arguments,
    title: &'static str,
    rows: Vec<Map<String, Value>>,
}

impl<'a> Report<'a> {
    /// No rows yet.
    pub(crate) fn new(arguments: &'a Arguments, title: &'static str) -> Self {
        if !arguments.json {
            println!("{title}");
        }
        Self { arguments, title, rows: Vec::new() }
    }

    /// Adds a row, and prints it at once unless JSON was requested.
    pub(crate) fn row(&mut self, values: &[(&str, Value)]) {
        if !self.arguments.json {
            let cells = values.iter().map(|(name, value)| match value {
                Value::String(text) => format!("{text:<28}"),
                Value::Number(number) if number.is_f64() => {
                    format!("{name} {:>7.2}", number.as_f64().unwrap_or(f64::NAN))
                }
                value => format!("{name} {value:>4}"),
            });
            println!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
        let owned = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        self.rows.push(owned.collect());
    }

    /// Ends the report.
    pub(crate) fn finish(self, notes: &[&str]) {
        if self.arguments.json {
            let object = json!({ "title": self.title, "rows": self.rows, "notes": notes });
            println!("{object:#}");
        } else {
            notes.iter().for_each(|note| println!("{note}"));
        }
    }
}
