//! The engine `modelled`: runs the cells of walks and of workloads.

#[cfg(test)]
mod tests;

use workahead_engines::configuration::CellConfiguration;
use workahead_machine::EvidenceTier;
use workahead_simulator::drivers::micro::Query;
use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, EngineContext, EngineError, Need, Sample, Stop};

use crate::machine::ModelledMachine;
use crate::walks::Walks;
use crate::workload::{Description, Workload};
use crate::{micro, orders, sysbench};

/// All workloads.
const WORKLOADS: &[&dyn Workload] = &[
    &micro::Micro(Query::Utpcc),
    &micro::Micro(Query::Uss),
    &micro::Micro(Query::Unj),
    &orders::OrderEntry,
    &sysbench::MemoryWorkload,
    &sysbench::OltpWorkload,
];

/// The description of a workload; `None` for an unknown name.
#[must_use]
pub fn description(workload: &str) -> Option<Description> {
    WORKLOADS.iter().find(|one| one.name() == workload).map(|one| one.description())
}

/// Names of all workloads.
fn workloads() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|workload| workload.name())
}

/// The engine.
#[derive(Default)]
pub struct ModelledEngine {
    walks: Walks,
}

/// The name that studies use.
pub(crate) const NAME: &str = "modelled";

impl ModelledEngine {
    /// Opens the engine. Counters are always available and there are no functions to sample:
    /// collectors change nothing.
    ///
    /// # Errors
    /// When its cells are to be instrumented.
    pub fn open(context: &EngineContext) -> Result<Self, EngineError> {
        context.without_instrumentation(NAME)?;
        Ok(Self::default())
    }
}

/// The workload of a cell; `None` for a walk.
fn workload(config: &CellConfiguration<'_>) -> Result<Option<&'static dyn Workload>, EngineError> {
    let name: String = config.text("workload", String::new())?;
    if name.is_empty() {
        return Ok(None);
    }
    let found = WORKLOADS.iter().find(|workload| workload.name() == name);
    let found = found.map(|found| Some(*found));
    found.ok_or_else(|| EngineError::unknown("workload", &name, workloads()))
}

impl Engine for ModelledEngine {
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
        let config = CellConfiguration::new(cell);
        let Some(workload) = workload(&config)? else { return self.walks.check(cell) };
        if cell.get("set").is_some() {
            return Err(EngineError::setting(
                "set",
                "only a walk's work-ahead set can be in hardware: leave it out",
            ));
        }
        let machine = ModelledMachine::read(&config)?;
        let mut need = workload.check(&config, &machine)?;
        config.nothing_else()?;
        need.memory_bytes = need.memory_bytes.saturating_add(machine.preset().state_bytes());
        Ok(need)
    }

    fn prepare(&mut self, cell: &Cell, stop: &Stop) -> Result<(), EngineError> {
        match workload(&CellConfiguration::new(cell))? {
            Some(_) => self.check(cell).map(drop),
            None => self.walks.prepare(cell, stop),
        }
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError> {
        let config = CellConfiguration::new(cell);
        match workload(&config)? {
            Some(workload) => workload.run(&config, &ModelledMachine::read(&config)?, stop),
            None => self.walks.run(cell, stop),
        }
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.walks.finish();
        Ok(())
    }
}
