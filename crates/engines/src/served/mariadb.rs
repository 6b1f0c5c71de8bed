//! MariaDB as the engine needs it: data is kept as copies of the whole data directory.

use std::path::Path;

use workahead_study::engine::{EngineError, Stop};
use workahead_workloads::client::Workload;
use workahead_workloads::session::Dialect;

use super::database::{Database, Running, load};
use super::files;
use crate::attach::Target;
use crate::mariadb::Server;
use crate::server::Options;

/// The database that clients use.
const CURRENT: &str = "current";

/// A private MariaDB.
#[derive(Default)]
pub(super) struct MariaDb {
    serving: Option<(Server, Options)>,
}

fn stopped() -> EngineError {
    EngineError::Failed("the server was not started".to_owned())
}

impl Database for MariaDb {
    fn name(&self) -> &'static str {
        "mariadb"
    }

    fn version(&self) -> Result<String, EngineError> {
        Ok(format!("MariaDB {}", Server::installed_version()?))
    }

    fn dialect(&self) -> Dialect {
        Dialect::MariaDb
    }

    fn parallel(&self, processes: usize) -> Result<Vec<(String, String)>, String> {
        match processes {
            1 => Ok(Vec::new()),
            _ => Err("MariaDB runs a query in one thread".to_owned()),
        }
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
        let (server, options) = self.serving.as_mut().ok_or_else(stopped)?;
        if server.keeps(data)? {
            server.restore(data, options, stop)?;
        } else {
            server.create_database(CURRENT)?;
            load(&server.target(CURRENT), workload, stop)?;
            server.keep(data, options, stop)?;
        }
        Ok(())
    }

    fn target(&self) -> Result<Target, EngineError> {
        let (server, _) = self.serving.as_ref().ok_or_else(stopped)?;
        Ok(server.target(CURRENT))
    }

    fn pid(&self) -> Option<u32> {
        self.serving.as_ref()?.0.pids().first().copied()
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
