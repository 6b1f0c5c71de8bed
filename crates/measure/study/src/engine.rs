//! What a study runs on: the one trait between the runner and everything that can be measured.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use workahead_machine::EvidenceTier;
use workahead_machine::limits::Limits;

use crate::cell::Cell;
use crate::inside::Command;
use crate::instrument::Instrumentation;
use crate::nearest;
use crate::plans::PlanText;
use crate::watch::{Watch, Watched};

/// Runs cells. The runner calls, for every block, `prepare` before each `run`; `finish` at the end,
/// also after an error. Before all of it the engine may `learn` what the machine can do.
pub trait Engine {
    /// The name that studies use.
    fn name(&self) -> &str;

    /// What exactly was run: enough to tell two builds apart.
    fn version(&self) -> String;

    /// Takes note of the machine's measured limits. From then on sizes that are named after caches
    /// may follow them, and samples may say what the machine allows; without them nothing does.
    fn learn(&mut self, _limits: &Limits) {}

    /// Takes note of a directory in which data may be kept between runs.
    fn keep_in(&mut self, _home: &Path) {}

    /// Takes note of what to watch in every sample beside its time.
    ///
    /// # Errors
    /// When it can't watch anything, or not that.
    fn watch(&mut self, watch: &Watch) -> Result<(), EngineError> {
        match watch.is_nothing() {
            true => Ok(()),
            false => Err(EngineError::Failed(format!(
                "engine `{}` counts and profiles nothing: leave `counters` and `profile_hz` out of \
                 the study's method",
                self.name()
            ))),
        }
    }

    /// Takes note of what runs one of its cells in a process of its own
    /// ([`inside`](crate::inside)). Engines that are run in ours need it to be
    /// [instrumented](Self::instrument).
    fn run_alone_by(&mut self, _command: &Command) {}

    /// Takes note of what every cell is to be run below, to be counted by a model.
    ///
    /// # Errors
    /// When it can't be run so, or the tool is not there.
    fn instrument(&mut self, _with: &Instrumentation) -> Result<(), EngineError> {
        Err(EngineError::Failed(format!(
            "engine `{}` can't be run below valgrind: leave `instrumented` out of the study's \
             method",
            self.name()
        )))
    }

    /// How much its samples can prove and why no more, where that is not up to the machine.
    fn tier(&self) -> Option<(EvidenceTier, String)> {
        None
    }

    /// Refuses unknown settings and values before anything is run, and says what the cell needs.
    fn check(&self, cell: &Cell) -> Result<Need, EngineError>;

    /// Brings the data of this cell into place; the same data again costs nothing.
    fn prepare(&mut self, cell: &Cell, stop: &Stop) -> Result<(), EngineError>;

    /// One repetition, timed by the engine itself, its answer checked.
    fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError>;

    /// Puts back what was changed.
    fn finish(&mut self) -> Result<(), EngineError>;
}

/// What a cell needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// Memory at the peak, data and result included.
    pub memory_bytes: u64,
    /// What this machine cannot show of it, in words; the cell is run all the same.
    pub cannot: Option<String>,
    /// Why the cell can't be run here at all, in words; the others are.
    #[serde(default)]
    pub impossible: Option<String>,
}

impl Need {
    /// What this machine leaves open of the cell, or of all of it.
    #[must_use]
    pub fn unshown(&self) -> Option<String> {
        let impossible = self.impossible.as_ref().map(|why| format!("not run: {why}"));
        impossible.or_else(|| self.cannot.clone())
    }
}

/// What one repetition gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Elapsed time.
    pub wall_s: f64,
    /// Processor time of all threads; none where they can't be seen, as on another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// Tuples handled; what counts as one, the study says (`method.tuples`).
    pub tuples: u64,
    /// The answer, equal for every repetition of a cell.
    pub answer: Answer,
    /// Anything else, by name with its unit last, e.g. `table_bytes`, `limit_mtuples_per_s`.
    #[serde(default)]
    pub measures: BTreeMap<String, f64>,
    /// The plan that the engine chose, as it prints it, where it plans. It is kept once per cell,
    /// so an engine may ask for it once only, and need not.
    #[serde(rename = "query_plan", default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanText>,
    /// What was watched beside time, where a study asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Box<Watched>>,
}

/// The answer of a query, short.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Rows of the result.
    pub rows: u64,
    /// A checksum over them that does not depend on their order.
    pub checksum: u64,
}

/// A request to stop, set from anywhere (Ctrl-C), looked at between and inside long runs.
#[derive(Debug, Clone)]
pub struct Stop(Flag);

#[derive(Debug, Clone)]
enum Flag {
    Own(Arc<AtomicBool>),
    /// A signal handler can only reach a static one.
    Static(&'static AtomicBool),
}

impl Stop {
    /// Nothing asked for yet.
    pub fn new() -> Stop {
        Stop(Flag::Own(Arc::default()))
    }

    /// Asks everyone to stop.
    pub fn ask(&self) {
        self.flag().store(true, Ordering::Relaxed);
    }

    /// Whether someone asked.
    pub fn asked(&self) -> bool {
        self.flag().load(Ordering::Relaxed)
    }

    /// What is raised, for those who know nothing of studies.
    pub fn flag(&self) -> &AtomicBool {
        match &self.0 {
            Flag::Own(flag) => flag,
            Flag::Static(flag) => flag,
        }
    }
}

impl Default for Stop {
    fn default() -> Stop {
        Stop::new()
    }
}

impl From<&'static AtomicBool> for Stop {
    fn from(flag: &'static AtomicBool) -> Stop {
        Stop(Flag::Static(flag))
    }
}

/// Why an engine did not give a sample.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A setting or a value it does not know.
    #[error("unknown {what} `{given}`: {remedy}")]
    Unknown {
        /// What it is: "setting", or the setting's name when the value is unknown.
        what: String,
        /// What was given.
        given: String,
        /// What to write instead.
        remedy: String,
    },
    /// The machine does not have the memory.
    #[error("not enough memory: {needed_bytes} bytes needed, {available_bytes} available")]
    Memory {
        /// What the cell needs.
        needed_bytes: u64,
        /// What there is.
        available_bytes: u64,
    },
    /// Someone asked to stop; there is no sample.
    #[error("stopped")]
    Stopped,
    /// The answer is not the oracle's.
    #[error(
        "wrong answer: {got_rows} rows (checksum {got_checksum:016x}), \
         expected {expected_rows} (checksum {expected_checksum:016x})",
        got_rows = got.rows, got_checksum = got.checksum,
        expected_rows = expected.rows, expected_checksum = expected.checksum
    )]
    WrongAnswer {
        /// What came out.
        got: Answer,
        /// What should have.
        expected: Answer,
    },
    /// Anything else, with its remedy.
    #[error("{0}")]
    Failed(String),
}

impl EngineError {
    /// An unknown name, with the nearest known one as the remedy.
    pub fn unknown<'a>(
        what: &str,
        given: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> EngineError {
        let known: Vec<&str> = known.into_iter().collect();
        EngineError::Unknown {
            what: what.to_owned(),
            given: given.to_owned(),
            remedy: nearest::remedy(given, &known),
        }
    }
}
