//! PostgreSQL as the engine needs it: data is kept as template databases.

use std::path::Path;

use workahead_study::engine::{EngineError, Stop};
use workahead_workloads::client::Workload;
use workahead_workloads::session::{Dialect, Session, SessionError};

use super::database::{Database, Running, load};
use super::files;
use crate::attach::Target;
use crate::postgres::{Server, identifier, literal};
use crate::server::{Error, Options};

/// The database that clients use.
const CURRENT: &str = "current";

/// A private PostgreSQL.
#[derive(Default)]
pub(super) struct Postgres {
    serving: Option<(Server, Options)>,
}

impl Postgres {
    fn server(&self) -> Result<&Server, EngineError> {
        let serving = self.serving.as_ref().map(|(server, _)| server);
        serving.ok_or_else(|| EngineError::Failed("the server was not started".to_owned()))
    }

    /// Whether a finished copy of the data is kept.
    fn keeps(&self, data: &str) -> Result<bool, EngineError> {
        let look = || {
            self.server_session()?.texts(&format!(
                "SELECT datname::text FROM pg_database WHERE datistemplate AND datname = {}",
                literal(data)
            ))
        };
        let kept = look().map_err(|error| Error::session("look for data", error))?;
        Ok(!kept.is_empty())
    }

    /// To the database that is always there.
    fn server_session(&self) -> Result<crate::postgres::Connection, SessionError> {
        let server = self.server().map_err(|error| SessionError::Failed(error.to_string()))?;
        server.connect("postgres")
    }

    /// Loads the data under its own name, and marks it finished at the very end.
    fn load(&self, data: &str, workload: &dyn Workload, stop: &Stop) -> Result<(), EngineError> {
        let server = self.server()?;
        server.create_database(data)?;
        load(&server.target(data), workload, stop)?;
        let text = format!("ALTER DATABASE {} IS_TEMPLATE true", identifier(data));
        let kept = self.server_session().and_then(|mut session| session.run(&text));
        Ok(kept.map_err(|error| Error::session("keep the data", error))?)
    }
}

impl Database for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn version(&self) -> Result<String, EngineError> {
        Ok(format!("PostgreSQL {}", Server::installed_version()?))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    /// One process is the client's own, the others are workers beside it.
    fn parallel(&self, processes: usize) -> Result<Vec<(String, String)>, String> {
        let workers = processes.saturating_sub(1).to_string();
        Ok(vec![("max_parallel_workers_per_gather".to_owned(), workers)])
    }

    fn serve(&mut self, home: &Path, running: &Running, stop: &Stop) -> Result<(), EngineError> {
        let options = Options {
            directory: home.to_owned(),
            programs: None,
            settings: running.settings.clone(),
            cpus: running.cpus.clone(),
        };
        let Some((server, now)) = &mut self.serving else {
            self.serving = Some((Server::start(&options, stop)?, options));
            return Ok(());
        };
        if *now != options || !server.is_running() {
            server.restart(&options, stop)?;
            *now = options;
        }
        Ok(())
    }

    fn chill(&mut self, stop: &Stop) -> Result<(), EngineError> {
        let Some((server, options)) = self.serving.take() else { return Ok(()) };
        server.stop();
        files::forget(&options.directory)?;
        self.serving = Some((Server::start(&options, stop)?, options));
        Ok(())
    }

    fn restore(
        &mut self,
        data: &str,
        workload: &dyn Workload,
        stop: &Stop,
    ) -> Result<(), EngineError> {
        if !self.keeps(data)? {
            self.load(data, workload, stop)?;
        }
        self.server()?.restore(CURRENT, data)?;
        Ok(())
    }

    fn target(&self) -> Result<Target, EngineError> {
        Ok(self.server()?.target(CURRENT))
    }

    fn pid(&self) -> Option<u32> {
        self.server().ok()?.pids().first().copied()
    }

    fn last_words(&mut self) -> Option<String> {
        let (server, _) = self.serving.as_mut()?;
        (!server.is_running()).then(|| server.last_words().to_string())
    }

    fn stop(&mut self) {
        if let Some((server, _)) = self.serving.take() {
            server.stop();
        }
    }
}
