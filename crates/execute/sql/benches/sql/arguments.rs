//! Arguments of the command line.

use std::collections::BTreeSet;

use workahead_workloads::tpch;

use crate::sessions::{Arm, Storage};
use crate::shapes::Shape;
use crate::{data, orders, shapes};

/// The rounds of a recorded run, at least.
const ROUNDS: usize = 15;
const SMALL_SCALE: f64 = 0.01;

/// The benchmark that the queries are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SuiteName {
    Tpch,
    Tpcds,
    Shapes,
    Orders,
}

impl SuiteName {
    fn named(name: &str) -> Result<Self, String> {
        match name {
            "tpch" => Ok(Self::Tpch),
            "tpcds" => Ok(Self::Tpcds),
            "shapes" => Ok(Self::Shapes),
            "orders" => Ok(Self::Orders),
            _ => Err(format!("unknown suite {name}: choose from tpch, tpcds, shapes, orders")),
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Tpch => "TPC-H",
            Self::Tpcds => "TPC-DS",
            Self::Shapes => "Shapes of joins",
            Self::Orders => "Orders of joins",
        }
    }

    fn queries(self) -> usize {
        match self {
            Self::Tpch => tpch::QUERIES,
            Self::Tpcds => data::QUERIES,
            Self::Shapes | Self::Orders => self.shapes().len(),
        }
    }

    /// Queries of our own, over tables in memory.
    pub(crate) fn shapes(self) -> Vec<Shape> {
        match self {
            Self::Tpch | Self::Tpcds => Vec::new(),
            Self::Shapes => shapes::all(),
            Self::Orders => orders::all(),
        }
    }

    /// TPC-DS's tables are read as DuckDB wrote them.
    fn storages(self) -> &'static [Storage] {
        match self {
            Self::Tpch => &[Storage::Memory, Storage::Parquet],
            Self::Tpcds => &[Storage::Parquet],
            Self::Shapes | Self::Orders => &[Storage::Memory],
        }
    }
}

pub(crate) struct Arguments {
    pub(crate) suite: SuiteName,
    pub(crate) scale: f64,
    pub(crate) rounds: usize,
    pub(crate) threads: Vec<usize>,
    pub(crate) storages: Vec<Storage>,
    pub(crate) queries: Vec<usize>,
    /// Compared with stock.
    pub(crate) arms: Vec<Arm>,
    /// Of each session's pool; without it there is no limit.
    pub(crate) memory_mb: Option<usize>,
    /// DuckDB runs beside them.
    pub(crate) duckdb: bool,
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
            suite: SuiteName::Tpch,
            scale: if small { SMALL_SCALE } else { 1.0 },
            rounds: if small { 1 } else { ROUNDS },
            threads: if small { vec![2] } else { vec![1, 2] },
            storages: Vec::new(),
            queries: Vec::new(),
            arms: Arm::OURS.to_vec(),
            memory_mb: None,
            duckdb: false,
            json: false,
            explain: false,
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--bench" | "--nocapture" | "--quiet" => {}
                "--duckdb" => arguments.duckdb = true,
                "--json" => arguments.json = true,
                "--explain" => arguments.explain = true,
                "--suite" => arguments.suite = SuiteName::named(value()?)?,
                "--memory" => arguments.memory_mb = Some(parsed(value()?)?),
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
        arguments.of_suite()
    }

    /// An option that is left out means all that the suite has; named values must be part of it.
    fn of_suite(mut self) -> Result<Self, String> {
        let (count, storages) = (self.suite.queries(), self.suite.storages());
        if self.queries.is_empty() {
            self.queries = (1..=count).collect();
        }
        if self.storages.is_empty() {
            self.storages = storages.to_vec();
        }
        if let Some(number) = self.queries.iter().find(|number| !(1..=count).contains(*number)) {
            return Err(format!("unknown query {number}: there are {count}"));
        }
        if self.duckdb && !self.suite.storages().contains(&Storage::Parquet) {
            let title = self.suite.title();
            return Err(format!("{title}: the tables are in no file that DuckDB could read"));
        }
        match self.storages.iter().find(|storage| !storages.contains(storage)) {
            Some(other) => {
                let title = self.suite.title();
                Err(format!("{title}'s tables are not in {}: leave --tables out", other.name()))
            }
            None => Ok(self),
        }
    }

    /// Whether the run is complete, with enough rounds for an interval. Of TPC-DS that is ours with
    /// one thread: all arms with two take two hours.
    pub(crate) fn is_whole(&self) -> bool {
        let (threads, arms) = match self.suite {
            SuiteName::Tpcds => (&[1][..], &[Arm::Ours][..]),
            _ => (&[1, 2][..], &Arm::OURS[..]),
        };
        self.queries.len() == self.suite.queries()
            && self.scale >= 1.0
            && self.rounds >= ROUNDS
            && threads.iter().all(|threads| self.threads.contains(threads))
            && self.storages == self.suite.storages()
            && (self.duckdb || arms.iter().all(|arm| self.arms.contains(arm)))
            && self.memory_mb.is_none()
    }
}

fn parsed<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word} is not a number"))
}

fn list(words: &str) -> Result<Vec<usize>, String> {
    words.split(',').map(parsed).collect()
}
