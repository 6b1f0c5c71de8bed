//! What the engine needs of a product: a server that runs as asked, with data in it.

use std::collections::BTreeMap;
use std::path::Path;

use workahead_machine::CpuSet;
use workahead_study::engine::{EngineError, Stop};
use workahead_workloads::client::{Moment, Outcome, Workload};
use workahead_workloads::session::Dialect;

use crate::attach::Target;
use crate::fill::fill;

/// How a server is to run; it is started anew when any of this changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Running {
    /// The server's settings, by their names.
    pub(super) settings: BTreeMap<String, String>,
    /// The CPUs it is kept on; all of this process when not given.
    pub(super) cpus: Option<CpuSet>,
}

/// A product whose servers the engine starts.
pub(super) trait Database {
    /// The name that studies use.
    fn name(&self) -> &'static str;

    /// The installed version.
    fn version(&self) -> Result<String, EngineError>;

    /// What its texts are to be in.
    fn dialect(&self) -> Dialect;

    /// Settings that let at most so many processes work on one query; why that can't be.
    fn parallel(&self, processes: usize) -> Result<Vec<(String, String)>, String>;

    /// Starts the server in a directory, or starts it anew where it runs otherwise.
    fn serve(&mut self, home: &Path, running: &Running, stop: &Stop) -> Result<(), EngineError>;

    /// Starts it anew after the system forgot what it kept of its files in memory.
    fn chill(&mut self, stop: &Stop) -> Result<(), EngineError>;

    /// Makes the database a copy of a workload's data as it was loaded; loads it the first time,
    /// and keeps a copy below the directory for later runs.
    fn restore(
        &mut self,
        data: &str,
        workload: &dyn Workload,
        stop: &Stop,
    ) -> Result<(), EngineError>;

    /// Where clients come in.
    fn target(&self) -> Result<Target, EngineError>;

    /// The server's first process.
    fn pid(&self) -> Option<u32>;

    /// Its last words, when it ended by itself.
    fn last_words(&mut self) -> Option<String>;

    /// Stops it.
    fn stop(&mut self);
}

/// Loads a workload's data into an empty database, and looks at it.
pub(super) fn load(
    target: &Target,
    workload: &dyn Workload,
    stop: &Stop,
) -> Result<(), EngineError> {
    fill(target, workload, stop)?;
    holds(target, workload, Moment::Loaded)
}

/// Whether the database is as the workload says it must be.
pub(super) fn holds(
    target: &Target,
    workload: &dyn Workload,
    when: Moment,
) -> Result<(), EngineError> {
    let failed = |error| EngineError::Failed(format!("look at the data: {error}"));
    let mut connection = target.connect().map_err(failed)?;
    let conditions = workload.check(connection.session(), when).map_err(failed)?;
    let broken = conditions.into_iter().find_map(|condition| match condition.outcome {
        Outcome::Broken(found) => {
            Some(format!("it does not hold that {}: {found}", condition.says))
        }
        _ => None,
    });
    broken.map_or(Ok(()), |broken| Err(EngineError::Failed(broken)))
}
