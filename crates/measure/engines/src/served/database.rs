//! What the engine needs of a product: a server that runs as asked, with data in it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use workahead_machine::scheduling::Policy;
use workahead_machine::{CpuSet, Machine, pin};
use workahead_study::engine::{EngineError, Reason, Stop};
use workahead_study::protocol::Protocol;
use workahead_workloads::client::{Explained, Moment, Outcome, Workload};
use workahead_workloads::session::Dialect;

use crate::connector::{Connection, Connector};
use crate::fill::{Filled, fill};
use crate::postgres::Alone;

/// How a server is to run; it is started anew when any of this changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Running {
    /// The server's settings, by their names.
    pub(super) settings: BTreeMap<String, String>,
    /// The CPUs it is kept on; all of this process when not given.
    pub(super) cpus: Option<CpuSet>,
    /// How the system schedules it.
    pub(super) policy: Policy,
}

impl Running {
    /// Keeps what this thread starts on the CPUs, until the guard goes.
    pub(super) fn pin(&self) -> Result<Option<pin::Pinned>, workahead_machine::Error> {
        let pin = |cpus| pin::among(cpus, Machine::here().allowed_cpus());
        self.cpus.as_ref().map(pin).transpose()
    }
}

/// Where a database's work is done, as far as it can be counted from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seat {
    /// In a process and those below it.
    Process(u32),
    /// In this one, with its clients: their time is in the database's.
    Within,
    /// Out of sight, as on another machine.
    Unseen,
}

/// Pages of a database's buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pages {
    /// Whatever it takes by itself.
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

    /// The folder of what is kept of it.
    fn folder(&self) -> &'static str {
        self.name()
    }

    /// The installed version.
    fn version(&self) -> Result<String, EngineError>;

    /// What its texts are to be in.
    fn dialect(&self) -> Dialect;

    /// Settings that let at most so many processes work on one query; why that can't be.
    fn parallel(&self, processes: usize) -> Result<Vec<(String, String)>, String>;

    /// Settings that give its buffers pages of a size; why that can't be.
    fn pages(&self, pages: Pages) -> Result<Vec<(String, String)>, String> {
        match pages {
            Pages::Usual => Ok(Vec::new()),
            Pages::Small | Pages::Huge => {
                Err(format!("the pages of {} can't be chosen from here", self.name()))
            }
        }
    }

    /// Why it can't be run so.
    fn impossible(&self, _: &Running, _: Protocol) -> Option<Reason> {
        None
    }

    /// What can't be seen of it from here.
    fn limitation(&self) -> Option<Reason> {
        None
    }

    /// Whether we started it: then its processes may be put into a control group.
    fn is_ours(&self) -> bool {
        true
    }

    /// Whether anything may be written to it.
    fn may_write(&self) -> bool {
        true
    }

    /// Starts the server in a directory, or starts it anew where it runs otherwise.
    fn serve(&mut self, home: &Path, running: &Running, stop: &Stop) -> Result<(), EngineError>;

    /// Starts it anew after the system forgot what it kept of its files in memory.
    fn chill(&mut self, stop: &Stop) -> Result<(), EngineError>;

    /// Makes the database a copy of a workload's data as it was loaded; loads it the first time,
    /// and keeps a copy below the directory for later runs. What loading took, when it did.
    fn restore(
        &mut self,
        data: &str,
        workload: &dyn Workload,
        stop: &Stop,
    ) -> Result<Option<Filled>, EngineError>;

    /// Where clients come in.
    fn connector(&self) -> Result<Box<dyn Connector>, EngineError>;

    /// Where its work is done.
    fn seat(&self) -> Seat;

    /// Whether a statement can be run without its server, in a process that ends.
    fn stands_alone(&self) -> bool {
        false
    }

    /// A statement without its server, which is stopped, if it [can be](Self::stands_alone).
    fn alone(&mut self, _: &Explained) -> Result<Alone, EngineError> {
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

/// Loads a workload's data into an empty database, and looks at it.
pub(super) fn load(
    connector: &dyn Connector,
    workload: &dyn Workload,
    stop: &Stop,
) -> Result<Filled, EngineError> {
    let filled = fill(connector, workload, stop)?;
    holds(connector, workload, Moment::Loaded, stop)?;
    Ok(filled)
}

/// How often long statements are asked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Statements of minutes, ended when the run is asked to stop.
pub(super) fn until_asked<T>(
    connection: &mut dyn Connection,
    stop: &Stop,
    statements: impl FnOnce(&mut dyn Connection) -> T,
) -> Result<T, EngineError> {
    let (cancel, over) = (connection.cancel(), AtomicBool::new(false));
    let found = std::thread::scope(|scope| {
        let stopping = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if stop.asked() {
                    cancel();
                }
                std::thread::park_timeout(LOOK_EVERY);
            }
        });
        let found = statements(connection);
        over.store(true, Ordering::Relaxed);
        stopping.thread().unpark();
        found
    });
    if stop.asked() { Err(EngineError::Stopped) } else { Ok(found) }
}

/// Whether the database is as the workload says it must be.
pub(super) fn holds(
    connector: &dyn Connector,
    workload: &dyn Workload,
    when: Moment,
    stop: &Stop,
) -> Result<(), EngineError> {
    let failed = |error| EngineError::failed(format!("look at the data: {error}"));
    let mut connection = connector.open().map_err(failed)?;
    let conditions =
        until_asked(connection.as_mut(), stop, |one| workload.check(one.session(), when))?;
    let broken =
        conditions.map_err(failed)?.into_iter().find_map(|condition| match condition.outcome {
            Outcome::Broken(found) => {
                Some(format!("it does not hold that {}: {found}", condition.says))
            }
            _ => None,
        });
    broken.map_or(Ok(()), |broken| Err(EngineError::failed(broken)))
}
