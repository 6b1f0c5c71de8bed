//! The context that an engine is opened with.

use std::path::PathBuf;

use workahead_machine::limits::Limits;

use super::EngineError;
use crate::collection::CollectionOptions;
use crate::instrument::Instrumentation;
use crate::worker_process::Command;

/// Everything that an engine receives when it is opened.
#[derive(Debug, Clone)]
pub struct EngineContext {
    /// Directory in which data may be kept between runs.
    pub data_dir: PathBuf,
    /// Counters and function profiles to collect with every sample.
    pub collection: CollectionOptions,
    /// Command that runs one cell in a process of its own. Engines that run in this process need
    /// it to be instrumented.
    pub worker: Option<Command>,
    /// Tool that every cell is run under, to be counted by a model instead of timed.
    pub instrumentation: Option<Instrumentation>,
    /// The machine's measured limits. With them, sizes that are named after caches follow the
    /// measured sizes, and samples state what the machine allows.
    pub limits: Option<Limits>,
}

impl Default for EngineContext {
    /// Nothing but times, data in the system's temporary directory.
    fn default() -> Self {
        Self {
            data_dir: std::env::temp_dir().join("workahead"),
            collection: CollectionOptions::default(),
            worker: None,
            instrumentation: None,
            limits: None,
        }
    }
}

impl EngineContext {
    /// Refuses instrumentation, for an engine that can't be run under a tool.
    ///
    /// # Errors
    /// When the study's method is instrumented.
    pub fn without_instrumentation(&self, engine: &str) -> Result<(), EngineError> {
        match &self.instrumentation {
            None => Ok(()),
            Some(_) => Err(EngineError::refused(format!(
                "engine `{engine}` can't be run under valgrind: leave `instrumented` out of the \
                 study's method"
            ))),
        }
    }
}
