//! MariaDB as the engine needs it: data is kept as copies of the whole data directory.

use workahead_study::engine::{EngineError, Stop};
use workahead_workloads::client::Workload;
use workahead_workloads::session::Dialect;

use super::database::{Pages, load};
use super::private::{self, CURRENT};
use crate::attach::Target;
use crate::fill::FillTimes;
use crate::mariadb::Server;
use crate::server::{Error, Options, Process};

/// Settings that let this number of threads work on one query.
pub(super) fn parallel(processes: usize) -> Result<Vec<(String, String)>, String> {
    match processes {
        1 => Ok(Vec::new()),
        _ => Err("MariaDB runs a query in one thread".to_owned()),
    }
}

impl private::Server for Server {
    const NAME: &'static str = "mariadb";
    const DIALECT: Dialect = Dialect::MariaDb;

    fn version() -> Result<String, Error> {
        Ok(format!("MariaDB {}", Server::installed_version()?))
    }

    fn parallel(processes: usize) -> Result<Vec<(String, String)>, String> {
        parallel(processes)
    }

    fn pages(pages: Pages) -> Vec<(String, String)> {
        let large = match pages {
            Pages::Usual => return Vec::new(),
            Pages::Small => "OFF",
            Pages::Huge => "ON",
        };
        vec![("large_pages".to_owned(), large.to_owned())]
    }

    fn start(options: &Options, stop: &Stop) -> Result<Self, Error> {
        Server::start(options, stop)
    }

    fn restart(&mut self, options: &Options, stop: &Stop) -> Result<(), Error> {
        Server::restart(self, options, stop)
    }

    fn restore(
        &mut self,
        data: &str,
        workload: &dyn Workload,
        options: &Options,
        stop: &Stop,
    ) -> Result<Option<FillTimes>, EngineError> {
        if self.keeps(data)? {
            Server::restore(self, data, options, stop)?;
            // Copies kept by an earlier version do not know them.
            self.admit(CURRENT)?;
            return Ok(None);
        }
        self.create_database_once_free(CURRENT, stop)?;
        self.admit(CURRENT)?;
        let filled = load(&self.client(CURRENT), workload, stop)?;
        self.keep(data, options, stop)?;
        Ok(Some(filled))
    }

    fn target(&self) -> Target {
        self.client(CURRENT)
    }

    fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    fn pids(&self) -> Vec<u32> {
        Server::pids(self)
    }
}
