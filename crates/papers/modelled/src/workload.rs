//! Workloads of a modelled machine other than walks: their code is a synthetic footprint.

use workahead_engines::configuration::CellConfiguration;
use workahead_study::engine::{EngineError, Need, Sample, Stop};

use crate::machine::ModelledMachine;

/// A workload of a modelled machine.
pub(crate) trait Workload: Sync {
    /// Its name in studies.
    fn name(&self) -> &'static str;

    /// Description of a run.
    fn description(&self) -> Description;

    /// Checks its settings, and returns the resources that a run needs.
    fn check(
        &self,
        config: &CellConfiguration<'_>,
        machine: &ModelledMachine,
    ) -> Result<Need, EngineError>;

    /// Runs it once, after its warm-up.
    fn run(
        &self,
        config: &CellConfiguration<'_>,
        machine: &ModelledMachine,
        stop: &Stop,
    ) -> Result<Sample, EngineError>;
}

/// Description of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// The counted unit: `queries`.
    pub tuples: &'static str,
    /// Description and source of its code.
    pub code: &'static str,
    /// How its answer is checked.
    pub checked: &'static str,
}
