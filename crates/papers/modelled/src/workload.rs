//! What a modelled machine runs beside walks: whole workloads whose code is a footprint.

use workahead_engines::configuration::CellConfiguration;
use workahead_study::engine::{EngineError, Need, Sample, Stop};

use crate::machine::ModelledMachine;

/// A workload that a modelled machine runs.
pub(crate) trait Workload: Sync {
    /// Its name in studies.
    fn name(&self) -> &'static str;

    /// A run of it in words.
    fn description(&self) -> Description;

    /// Reads its settings, and says what a run needs.
    fn check(
        &self,
        config: &CellConfiguration<'_>,
        machine: &ModelledMachine,
    ) -> Result<Need, EngineError>;

    /// Runs it once, its warming up before.
    fn run(
        &self,
        config: &CellConfiguration<'_>,
        machine: &ModelledMachine,
        stop: &Stop,
    ) -> Result<Sample, EngineError>;
}

/// A run in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// What is counted: `queries`.
    pub tuples: &'static str,
    /// What its code is, and where that is from.
    pub code: &'static str,
    /// What its answer was held against.
    pub checked: &'static str,
}
