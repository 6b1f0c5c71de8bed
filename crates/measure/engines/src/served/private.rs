//! Private servers as databases: restarted when their configuration changes.

use std::path::Path;

use workahead_machine::Machine;
use workahead_study::engine::{EngineError, Stop};
use workahead_workloads::client::{ExplainRequest, Workload};
use workahead_workloads::session::{Dialect, SessionError};

use super::database::{Database, Pages, ProcessScope, ServerConfiguration};
use super::{files, settings};
use crate::attach::Target;
use crate::connector::Connector;
use crate::fill::FillTimes;
use crate::postgres::SingleBackend;
use crate::server::{Error, Options, Process};

/// The database that clients use.
pub(super) const CURRENT: &str = "current";

/// A server's process, and how its product keeps data.
pub(super) trait Server: Sized {
    const NAME: &'static str;
    const DIALECT: Dialect;

    /// The installed version, with the product's name.
    fn version() -> Result<String, Error>;

    /// See [`Database::parallel`].
    fn parallel(processes: usize) -> Result<Vec<(String, String)>, String>;

    /// See [`Database::pages`].
    fn pages(pages: Pages) -> Vec<(String, String)>;

    fn start(options: &Options, stop: &Stop) -> Result<Self, Error>;

    fn restart(&mut self, options: &Options, stop: &Stop) -> Result<(), Error>;

    /// Makes [`CURRENT`] a copy of a workload's data, which is loaded when no copy of it is kept.
    fn restore(
        &mut self,
        data: &str,
        workload: &dyn Workload,
        options: &Options,
        stop: &Stop,
    ) -> Result<Option<FillTimes>, EngineError>;

    fn target(&self) -> Target;

    fn process(&mut self) -> &mut Process;

    fn pids(&self) -> Vec<u32>;

    /// See [`Database::has_single_backend`].
    const HAS_SINGLE_BACKEND: bool = false;

    /// See [`Database::single_backend`].
    fn single_backend(
        &mut self,
        _: &ExplainRequest,
        _: &Stop,
    ) -> Result<SingleBackend, EngineError> {
        Err(EngineError::refused(format!("{} has no process that ends", Self::NAME)))
    }
}

/// A database behind a server of our own.
pub(super) struct Private<S> {
    serving: Option<(S, Options)>,
}

impl<S> Default for Private<S> {
    fn default() -> Self {
        Self { serving: None }
    }
}

fn stopped() -> EngineError {
    EngineError::failed("the server was not started")
}

/// Clients may notice a server's death before the system reports the end of its process.
fn answers(server: &mut impl Server) -> bool {
    server.process().is_running() && !matches!(server.target().open(), Err(SessionError::Gone(_)))
}

impl<S: Server> Database for Private<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn version(&self) -> Result<String, EngineError> {
        Ok(S::version()?)
    }

    fn dialect(&self) -> Dialect {
        S::DIALECT
    }

    fn parallel(&self, processes: usize) -> Result<Vec<(String, String)>, String> {
        S::parallel(processes)
    }

    fn pages(&self, pages: Pages) -> Result<Vec<(String, String)>, String> {
        let reserved = || Machine::here().huge_pages.reserved.iter().any(|pool| pool.pages > 0);
        if pages == Pages::Huge && !reserved() {
            return Err("no huge pages are reserved: `sysctl vm.nr_hugepages=N`".to_owned());
        }
        Ok(S::pages(pages))
    }

    fn serve(
        &mut self,
        home: &Path,
        running: &ServerConfiguration,
        stop: &Stop,
    ) -> Result<(), EngineError> {
        settings::check(S::NAME, &running.settings)?;
        let options = Options {
            directory: home.to_owned(),
            programs: None,
            settings: running.settings.clone(),
            cpus: running.cpus.clone(),
            policy: running.policy,
        };
        let Some((server, now)) = &mut self.serving else {
            self.serving = Some((S::start(&options, stop)?, options));
            return Ok(());
        };
        if *now != options || !answers(server) {
            server.restart(&options, stop)?;
            *now = options;
        }
        Ok(())
    }

    fn chill(&mut self, stop: &Stop) -> Result<(), EngineError> {
        let Some((server, options)) = self.serving.take() else { return Ok(()) };
        drop(server);
        files::forget(&options.directory)?;
        self.serving = Some((S::start(&options, stop)?, options));
        Ok(())
    }

    fn restore(
        &mut self,
        data: &str,
        workload: &dyn Workload,
        stop: &Stop,
    ) -> Result<Option<FillTimes>, EngineError> {
        let (server, options) = self.serving.as_mut().ok_or_else(stopped)?;
        server.restore(data, workload, options, stop)
    }

    fn connector(&self) -> Result<Box<dyn Connector>, EngineError> {
        let (server, _) = self.serving.as_ref().ok_or_else(stopped)?;
        Ok(Box::new(server.target()))
    }

    fn scope(&self) -> ProcessScope {
        let first = self.serving.as_ref().and_then(|(server, _)| server.pids().first().copied());
        first.map_or(ProcessScope::Unseen, ProcessScope::Process)
    }

    fn has_single_backend(&self) -> bool {
        S::HAS_SINGLE_BACKEND
    }

    fn single_backend(
        &mut self,
        statement: &ExplainRequest,
        stop: &Stop,
    ) -> Result<SingleBackend, EngineError> {
        let (server, _) = self.serving.as_mut().ok_or_else(stopped)?;
        server.single_backend(statement, stop)
    }

    fn last_words(&mut self) -> Option<String> {
        let process = self.serving.as_mut()?.0.process();
        (!process.is_running()).then(|| process.last_words().to_string())
    }

    fn kill(&mut self) {
        if let Some((server, _)) = &mut self.serving {
            server.process().kill();
        }
    }

    /// Cleanly, as every server is that is dropped.
    fn stop(&mut self) {
        self.serving = None;
    }
}
