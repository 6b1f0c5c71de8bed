//! The interface of a product: a configured server with data in it.

use std::collections::BTreeMap;
use std::path::Path;

use workahead_machine::scheduling::Policy;
use workahead_machine::{CpuSet, Machine, pin};
use workahead_study::engine::{EngineError, Reason, Stop};
use workahead_study::protocol::Protocol;
use workahead_workloads::client::{ExplainRequest, Moment, Outcome, Workload};
use workahead_workloads::session::Dialect;

use crate::cancellation::until_stopped;
use crate::connector::Connector;
use crate::fill::{FillTimes, fill};
use crate::postgres::SingleBackend;

/// The configuration of a server; any change restarts it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ServerConfiguration {
    /// The server's settings, by their names.
    pub(super) settings: BTreeMap<String, String>,
    /// The CPUs it is kept on; all of this process when not given.
    pub(super) cpus: Option<CpuSet>,
    /// How the system schedules it.
    pub(super) policy: Policy,
}

impl ServerConfiguration {
    /// Pins threads started by this thread, until the guard is dropped.
    pub(super) fn pin(&self) -> Result<Option<pin::PinGuard>, workahead_machine::Error> {
        let pin = |cpus| pin::among(cpus, Machine::here().allowed_cpus());
        self.cpus.as_ref().map(pin).transpose()
    }
}

/// The processes of a database, as far as they are visible from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessScope {
    /// A process and its descendants.
    Process(u32),
    /// This process: the clients' time is in the database's.
    Within,
    /// Not visible, as on another machine.
    Unseen,
}

/// Pages of a database's buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    /// The product's default.
    Usual,
    /// The system's smallest.
    Small,
    /// Huge ones, reserved beforehand.
    Huge,
}

impl Pages {
    /// As studies spell them.
    pub(super) const NAMED: [(&str, Pages); 3] =
        [("usual", Pages::Usual), ("small", Pages::Small), ("huge", Pages::Huge)];
}

/// A product whose servers the engine starts.
pub(super) trait Database {
    /// The name that studies use.
    fn name(&self) -> &'static str;

    /// The folder of its data.
    fn folder(&self) -> &'static str {
        self.name()
    }

    /// The installed version.
    fn version(&self) -> Result<String, EngineError>;

    /// Its SQL dialect.
    fn dialect(&self) -> Dialect;

    /// Settings that let at most `processes` work on one query, or why that is impossible.
    fn parallel(&self, processes: usize) -> Result<Vec<(String, String)>, String>;

    /// Settings that give its buffers pages of a size, or why that is impossible.
    fn pages(&self, pages: Pages) -> Result<Vec<(String, String)>, String> {
        match pages {
            Pages::Usual => Ok(Vec::new()),
            Pages::Small | Pages::Huge => {
                Err(format!("{} has no setting for its pages", self.name()))
            }
        }
    }

    /// Why it can't run with a configuration.
    fn impossible(&self, _: &ServerConfiguration, _: Protocol) -> Option<Reason> {
        None
    }

    /// The part of it that is not visible from here.
    fn limitation(&self) -> Option<Reason> {
        None
    }

    /// Whether we started it: then its processes may be put into a control group.
    fn is_ours(&self) -> bool {
        true
    }

    /// Whether studies may write to it.
    fn may_write(&self) -> bool {
        true
    }

    /// Starts the server in a directory, or starts it anew where it runs otherwise.
    fn serve(
        &mut self,
        home: &Path,
        running: &ServerConfiguration,
        stop: &Stop,
    ) -> Result<(), EngineError>;

    /// Restarts it with its files dropped from the page cache.
    fn chill(&mut self, stop: &Stop) -> Result<(), EngineError>;

    /// Makes the database a copy of a workload's data as it was loaded; loads it the first time,
    /// and keeps a copy below the directory for later runs. Returns the times of loading, when it
    /// did.
    fn restore(
        &mut self,
        data: &str,
        workload: &dyn Workload,
        stop: &Stop,
    ) -> Result<Option<FillTimes>, EngineError>;

    /// Opens connections for clients.
    fn connector(&self) -> Result<Box<dyn Connector>, EngineError>;

    /// Its processes.
    fn scope(&self) -> ProcessScope;

    /// Whether a statement can run without its server, in a process that ends.
    fn has_single_backend(&self) -> bool {
        false
    }

    /// A statement in a single backend, if it [has one](Self::has_single_backend); the server is
    /// stopped.
    fn single_backend(
        &mut self,
        _: &ExplainRequest,
        _: &Stop,
    ) -> Result<SingleBackend, EngineError> {
        Err(EngineError::refused(format!("{} has no process that ends", self.name())))
    }

    /// Its last words, when it ended by itself.
    fn last_words(&mut self) -> Option<String> {
        None
    }

    /// Why it can't be killed.
    fn unkillable(&self) -> Option<&'static str> {
        None
    }

    /// Kills it at once, without a chance to write anything, unless it is
    /// [unkillable](Self::unkillable).
    fn kill(&mut self) {}

    /// Stops it.
    fn stop(&mut self);
}

/// Loads a workload's data into an empty database, and checks it.
pub(super) fn load(
    connector: &dyn Connector,
    workload: &dyn Workload,
    stop: &Stop,
) -> Result<FillTimes, EngineError> {
    let filled = fill(connector, workload, stop)?;
    holds(connector, workload, Moment::Loaded, stop)?;
    Ok(filled)
}

/// Checks the workload's conditions on the database.
pub(super) fn holds(
    connector: &dyn Connector,
    workload: &dyn Workload,
    when: Moment,
    stop: &Stop,
) -> Result<(), EngineError> {
    let failed = |error| EngineError::failed(format!("check the data: {error}"));
    let mut connection = connector.open().map_err(failed)?;
    let conditions =
        until_stopped(connection.as_mut(), stop, |one| workload.check(one.session(), when))?;
    let broken =
        conditions.map_err(failed)?.into_iter().find_map(|condition| match condition.outcome {
            Outcome::Broken(found) => {
                Some(format!("it does not hold that {}: {found}", condition.says))
            }
            _ => None,
        });
    broken.map_or(Ok(()), |broken| Err(EngineError::failed(broken)))
}
