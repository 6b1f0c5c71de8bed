//! What is modelled: the operators of [`native`](crate::native) walking on a modelled machine, and
//! whole workloads whose code is a footprint.
//!
//! ```text
//!   workload = "…" ──► a driver of `workahead-simulator` ──► counts ──► figures by counters' names
//!   operator = "…" ──► native::modelled, the walks themselves
//! ```
//!
//! | key | values |
//! |---|---|
//! | `workload` | what is run; without it `operator` says which walk |
//! | `machine` | a modelled machine, with variants: `p4-ht-2m`, `ppro-quad/4p-512k` |
//! | `model.PATH` | a figure of it that is changed: `"model.cache.L2.bytes" = 1048576` |
//! | `siblings` | `on`; `off` for one thread a core, which has all of it |
//! | `placement` | `compact` fills a core's threads first, `scatter` the cores |
//!
//! The other keys are those of the workload. Every figure is modelled: tier E.

pub(crate) mod counted;
mod figures;
mod micro;
mod orders;
pub(crate) mod queues;
mod sysbench;

use workahead_machine::EvidenceTier;
use workahead_simulator::drivers::micro::Query;
use workahead_study::cell::Cell;
use workahead_study::engine::{
    Engine, EngineContext, EngineEntry, EngineError, EngineRegistry, Need, Sample, Stop,
};

use crate::given::Given;
use crate::native::modelled::{Model, Walks};

/// A workload that a model runs.
trait Workload: Sync {
    /// Its name in studies.
    fn name(&self) -> &'static str;

    /// How a run of it is told.
    fn told(&self) -> Told;

    /// Reads its settings, and says what a run needs.
    fn check(&self, given: &Given<'_>, model: &Model) -> Result<Need, EngineError>;

    /// Runs it once, its warming up before.
    fn run(&self, given: &Given<'_>, model: &Model, stop: &Stop) -> Result<Sample, EngineError>;
}

/// All of them.
const WORKLOADS: &[&dyn Workload] = &[
    &micro::Micro(Query::Utpcc),
    &micro::Micro(Query::Uss),
    &micro::Micro(Query::Unj),
    &orders::OrderEntry,
    &sysbench::OfMemory,
    &sysbench::OfOltp,
];

/// A run in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// What is counted: `queries`.
    pub tuples: &'static str,
    /// What its code is, and where that is from.
    pub code: &'static str,
    /// What its answer was held against.
    pub checked: &'static str,
}

/// How a run of a workload is told; none where there is no workload of that name.
#[must_use]
pub fn told(workload: &str) -> Option<Told> {
    WORKLOADS.iter().find(|one| one.name() == workload).map(|one| one.told())
}

/// Names of all workloads.
pub fn workloads() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|workload| workload.name())
}

/// The engine.
#[derive(Default)]
pub struct Modelled {
    walks: Walks,
}

/// The name that studies use.
const NAME: &str = "modelled";

/// Adds the engine to those of a program.
pub fn register(registry: &mut EngineRegistry) {
    registry.register(EngineEntry {
        name: NAME,
        description: "walks and whole workloads on modelled machines",
        open: |context| Ok(Box::new(Modelled::open(context)?)),
        open_worker: None,
    });
}

impl Modelled {
    /// Opens it. Counters are always there and there are no functions to sample: what is to be
    /// watched changes nothing.
    ///
    /// # Errors
    /// When its cells are to be instrumented.
    pub fn open(context: &EngineContext) -> Result<Self, EngineError> {
        context.without_instrumentation(NAME)?;
        Ok(Self::default())
    }
}

/// The workload of a cell, unless it is a walk's.
fn workload(given: &Given<'_>) -> Result<Option<&'static dyn Workload>, EngineError> {
    let name: String = given.text("workload", String::new())?;
    if name.is_empty() {
        return Ok(None);
    }
    let found = WORKLOADS.iter().find(|workload| workload.name() == name);
    let found = found.map(|found| Some(*found));
    found.ok_or_else(|| EngineError::unknown("workload", &name, workloads()))
}

fn failed(error: impl std::fmt::Display) -> EngineError {
    EngineError::Failed(error.to_string())
}

impl Engine for Modelled {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        format!("{} (model)", env!("CARGO_PKG_VERSION"))
    }

    fn tier(&self) -> Option<(EvidenceTier, String)> {
        Some((EvidenceTier::E, "every figure is modelled: nothing was measured".to_owned()))
    }

    fn check(&self, cell: &Cell) -> Result<Need, EngineError> {
        let given = Given::new(cell);
        let Some(workload) = workload(&given)? else { return self.walks.check(cell) };
        if cell.get("set").is_some() {
            return Err(failed(
                "setting `set`: only a walk's work-ahead set can be in hardware: leave it out",
            ));
        }
        let need = workload.check(&given, &Model::read(&given)?)?;
        given.nothing_else()?;
        Ok(need)
    }

    fn prepare(&mut self, cell: &Cell, stop: &Stop) -> Result<(), EngineError> {
        match workload(&Given::new(cell))? {
            Some(_) => self.check(cell).map(drop),
            None => self.walks.prepare(cell, stop),
        }
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError> {
        let given = Given::new(cell);
        match workload(&given)? {
            Some(workload) => workload.run(&given, &Model::read(&given)?, stop),
            None => self.walks.run(cell, stop),
        }
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.walks.finish()
    }
}
