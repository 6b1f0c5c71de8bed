//! PostgreSQL as the engine needs it: data is kept as template databases.

use workahead_study::engine::{EngineError, Stop};
use workahead_workloads::client::{ExplainRequest, Workload};
use workahead_workloads::session::{Dialect, Session, SessionError};

use super::database::{Pages, load};
use super::digest;
use super::private::{self, CURRENT};
use crate::attach::Target;
use crate::cancellation::until_stopped;
use crate::connector::Connector;
use crate::fill::FillTimes;
use crate::postgres::{NAME_BYTES_MAX, Server, SingleBackend, disconnect, identifier, literal};
use crate::server::{Error, Options, Process};

/// The database that always exists.
const MAINTENANCE: &str = "postgres";

/// One process is the client's own, the others are workers beside it.
pub(super) fn parallel(processes: usize) -> Result<Vec<(String, String)>, String> {
    let workers = processes.saturating_sub(1).to_string();
    Ok(vec![("max_parallel_workers_per_gather".to_owned(), workers)])
}

impl private::Server for Server {
    const NAME: &'static str = "postgres";
    const DIALECT: Dialect = Dialect::Postgres;
    const HAS_SINGLE_BACKEND: bool = true;

    fn version() -> Result<String, Error> {
        Ok(format!("PostgreSQL {}", Server::installed_version()?))
    }

    fn parallel(processes: usize) -> Result<Vec<(String, String)>, String> {
        parallel(processes)
    }

    fn pages(pages: Pages) -> Vec<(String, String)> {
        let huge = match pages {
            Pages::Usual => return Vec::new(),
            Pages::Small => "off",
            Pages::Huge => "on",
        };
        vec![("huge_pages".to_owned(), huge.to_owned())]
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
        _: &Options,
        stop: &Stop,
    ) -> Result<Option<FillTimes>, EngineError> {
        let data = &database_of(data);
        let kept = keeps(self, data).map_err(|error| Error::session("look for data", error))?;
        let mut filled = None;
        if !kept {
            self.create_database(data)?;
            filled = Some(load(&self.client(data), workload, stop)?);
            settle(self, data, stop)?;
            keep(self, data).map_err(|error| Error::session("keep the data", error))?;
        }
        Server::restore(self, CURRENT, data)?;
        Ok(filled)
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

    fn single_backend(
        &mut self,
        statement: &ExplainRequest,
        stop: &Stop,
    ) -> Result<SingleBackend, EngineError> {
        Server::single_backend(self, CURRENT, statement, stop)
    }
}

/// The database in which data is kept; a name that the server would cut off has a digest of its
/// whole length at its end.
fn database_of(data: &str) -> String {
    if data.len() <= NAME_BYTES_MAX {
        return data.to_owned();
    }
    let digits = digest::digits(data.as_bytes());
    let room = NAME_BYTES_MAX - digits.len() - 1;
    let start = (0..=room).rev().find(|at| data.is_char_boundary(*at)).unwrap_or(0);
    format!("{}_{digits}", &data[..start])
}

/// Vacuums and analyses the data, so that nothing of it is due later: the server would do it by
/// itself, in the data as it is kept and beside the studies that follow, and with it run the
/// functions of a study's indexes. They may not write here: that would make more due.
fn settle(server: &Server, data: &str, stop: &Stop) -> Result<(), EngineError> {
    let failed = |error| Error::session("vacuum the data", error);
    // Changes by a client are counted when its process ends, at the latest.
    let ended = server.connect(MAINTENANCE).and_then(|mut session| disconnect(&mut session, data));
    ended.map_err(failed)?;
    let mut connection = server.client(data).open().map_err(failed)?;
    let vacuumed = until_stopped(connection.as_mut(), stop, |one| {
        one.session().run("SET default_transaction_read_only = on")?;
        one.session().run("VACUUM (ANALYZE)")
    })?;
    vacuumed.map_err(failed)?;
    Ok(())
}

/// Whether a finished copy of the data is kept, which no client can change.
fn keeps(server: &Server, data: &str) -> Result<bool, SessionError> {
    let text = format!(
        "SELECT datname::text FROM pg_database WHERE datistemplate AND NOT datallowconn \
         AND datname = {} AND pg_get_userbyid(datdba) = current_user",
        literal(data)
    );
    Ok(!server.connect(MAINTENANCE)?.texts(&text)?.is_empty())
}

/// Marks it finished. Its tables stay the clients', the database itself does not: they could drop
/// it.
fn keep(server: &Server, data: &str) -> Result<(), SessionError> {
    let (mut session, name) = (server.connect(MAINTENANCE)?, identifier(data));
    session.run(&format!("ALTER DATABASE {name} RESET ALL"))?;
    session.run(&format!("ALTER DATABASE {name} OWNER TO CURRENT_USER"))?;
    session.run(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS false"))?;
    session.run(&format!("ALTER DATABASE {name} IS_TEMPLATE true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_of_data_stay_apart() {
        let fits = "é".repeat(31) + "1";
        assert_eq!(database_of(&fits), fits);
        let names = ["12", "13"].map(|end| database_of(&("é".repeat(31) + end)));
        assert_ne!(names[0], names[1]);
        for name in names {
            assert!(name.len() <= NAME_BYTES_MAX && name.starts_with(&"é".repeat(15)), "{name}");
        }
        assert_eq!(database_of(&"a".repeat(64)).len(), NAME_BYTES_MAX);
    }
}
