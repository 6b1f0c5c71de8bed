//! Arguments of the command line.

use std::collections::BTreeSet;

use workahead_workloads::tpch::QUERIES;

use crate::sessions::{Arm, Storage};

/// The rounds of a recorded run, at least.
const ROUNDS: usize = 15;
const SMALL_SCALE: f64 = 0.01;

pub(crate) struct Arguments {
    pub(crate) scale: f64,
    pub(crate) rounds: usize,
    pub(crate) threads: Vec<usize>,
    pub(crate) storages: Vec<Storage>,
    pub(crate) queries: Vec<usize>,
    /// Compared with stock.
    pub(crate) arms: Vec<Arm>,
    pub(crate) json: bool,
    /// Shows each plan with its operators' times.
    pub(crate) explain: bool,
}

impl Arguments {
    /// Reads the command line. Without `--bench` (Cargo adds it under `cargo bench`) the defaults
    /// are small.
    pub(crate) fn read() -> Result<Self, String> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let small = !words.iter().any(|word| word == "--bench");
        let mut arguments = Self {
            scale: if small { SMALL_SCALE } else { 1.0 },
            rounds: if small { 1 } else { ROUNDS },
            threads: if small { vec![2] } else { vec![1, 2] },
            storages: vec![Storage::Memory, Storage::Parquet],
            queries: (1..=QUERIES).collect(),
            arms: Arm::OURS.to_vec(),
            json: false,
            explain: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--bench" | "--nocapture" | "--quiet" => {}
                "--json" => arguments.json = true,
                "--explain" => arguments.explain = true,
                "--scale" => arguments.scale = parsed(value()?)?,
                "--rounds" => arguments.rounds = parsed::<usize>(value()?)?.max(1),
                "--threads" => arguments.threads = list(value()?)?,
                // In order and once each, like the figures.
                "--queries" => {
                    let ordered = BTreeSet::from_iter(list(value()?)?);
                    arguments.queries = ordered.into_iter().collect();
                }
                "--tables" => {
                    let names = value()?.split(',');
                    arguments.storages = names.map(Storage::named).collect::<Result<_, _>>()?;
                }
                "--arms" => {
                    let names = value()?.split(',');
                    arguments.arms = names.map(Arm::named).collect::<Result<_, _>>()?;
                }
                other => return Err(format!("unknown option {other}: see --help")),
            }
        }
        match arguments.queries.iter().find(|number| !(1..=QUERIES).contains(*number)) {
            Some(number) => Err(format!("unknown query {number}: there are {QUERIES}")),
            None => Ok(arguments),
        }
    }

    /// Whether the run is complete, with enough rounds for an interval.
    pub(crate) fn is_whole(&self) -> bool {
        self.queries.len() == QUERIES
            && self.scale >= 1.0
            && self.rounds >= ROUNDS
            && self.threads == [1, 2]
            && self.storages.len() == 2
            && self.arms == Arm::OURS
    }
}

fn parsed<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word} is not a number"))
}

fn list(words: &str) -> Result<Vec<usize>, String> {
    words.split(',').map(parsed).collect()
}
