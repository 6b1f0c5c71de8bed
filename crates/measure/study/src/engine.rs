//! The trait between the runner and everything that can be measured.

mod context;
mod error;
mod reason;
mod registry;
mod stop;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use workahead_machine::EvidenceTier;

use crate::cell::Cell;
use crate::collection::Collection;
use crate::plans::PlanText;

pub use context::EngineContext;
pub use error::EngineError;
pub use reason::Reason;
pub use registry::{EngineEntry, EngineRegistry, OpenEngine, OpenWorker};
pub use stop::Stop;

/// Runs cells. It is opened with an [`EngineContext`]; the runner then calls, for every block,
/// `prepare` before each `run`, and `finish` at the end, also after an error.
pub trait Engine {
    /// The name that studies use.
    fn name(&self) -> &str;

    /// The exact version, enough to distinguish two builds.
    fn version(&self) -> String;

    /// The evidence tier of its samples and the reason, where it does not depend on the machine.
    fn tier(&self) -> Option<(EvidenceTier, String)> {
        None
    }

    /// Refuses unknown settings and values before anything is run, and returns the cell's needs.
    fn check(&self, cell: &Cell) -> Result<Need, EngineError>;

    /// Prepares the data of this cell; preparing the same data again costs nothing.
    fn prepare(&mut self, cell: &Cell, stop: &Stop) -> Result<(), EngineError>;

    /// One repetition, timed and its answer checked by the engine itself.
    fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError>;

    /// Restores everything that was changed.
    fn finish(&mut self) -> Result<(), EngineError>;
}

/// The requirements of a cell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Need {
    /// Memory at the peak, data and result included.
    pub memory_bytes: u64,
    /// A limitation of this machine; the cell is run all the same.
    #[serde(rename = "cannot")]
    pub limitation: Option<Reason>,
    /// Why the cell can't be run on this machine; other cells are.
    #[serde(default)]
    pub impossible: Option<Reason>,
}

impl Need {
    /// The note of a run plan: its limitation, or why it is not run.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let impossible = self.impossible.as_ref().map(|why| format!("not run: {why}"));
        impossible.or_else(|| self.limitation.as_ref().map(ToString::to_string))
    }
}

/// The result of one repetition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Elapsed time.
    pub wall_s: f64,
    /// Processor time of all threads; `None` if they are not visible, as on another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// Tuples handled; the study defines the unit (`method.tuples`).
    pub tuples: u64,
    /// The answer, equal for every repetition of a cell.
    pub answer: Answer,
    /// Anything else, by name with its unit last, e.g. `table_bytes`, `limit_mtuples_per_s`.
    #[serde(default)]
    pub measures: BTreeMap<String, f64>,
    /// The query plan as the engine prints it. It is kept once per cell, so an engine may explain
    /// only once, or never.
    #[serde(rename = "query_plan", default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanText>,
    /// Counters and profiles, where a study asks for them.
    #[serde(rename = "collector", alias = "watched", default)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection: Option<Box<Collection>>,
}

/// The answer of a query, short.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Rows of the result.
    pub rows: u64,
    /// A checksum over them that does not depend on their order.
    pub checksum: u64,
}
