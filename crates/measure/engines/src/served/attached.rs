//! A server that already runs as a database of studies: nothing of it is started, stopped or set
//! except session settings.
//!
//! Read-only, the data must be there already. With writes allowed, a workload's tables are made in
//! the database of the URL, which has none of their names yet, and a [`Mark`] names them and their
//! data set; later runs find them by it, and make them again where a workload changes its data.

mod mark;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::Path;

use workahead_machine::scheduling::Policy;
use workahead_study::engine::{EngineError, Reason, Stop};
use workahead_study::protocol::{Before, Protocol, Start};
use workahead_workloads::client::{Moment, Workload};
use workahead_workloads::session::{Dialect, Session, SessionError, Value};

use super::database::{Database, ProcessScope, ServerConfiguration, holds, load};
use crate::attach::{Access, Software, Target, tunes};
use crate::cancellation::until_stopped;
use crate::connector::Connector;
use crate::fill::FillTimes;
use crate::{mariadb, postgres};
use mark::Mark;

/// A database of a server that already runs.
pub(super) struct AttachedDatabase {
    target: Target,
    version: String,
    scope: ProcessScope,
    /// Why no setting is tried any more: the server left one unanswered.
    unanswered: OnceCell<Reason>,
}

impl AttachedDatabase {
    /// Connects once, for the version and the user's rights.
    pub(super) fn new(target: Target) -> Result<Self, EngineError> {
        let failed = EngineError::failed;
        target.examine().map_err(failed)?;
        let mut connection = target.connect_briefly().map_err(failed)?;
        let product = match target.software {
            Software::Postgres => "PostgreSQL",
            Software::MariaDb => "MariaDB",
        };
        let place = &target.address.place;
        let version = connection.version().map_err(failed)?;
        let version = format!("{product} {version}, which ran already at {place}");
        let scope = target.process().map_or(ProcessScope::Unseen, ProcessScope::Process);
        Ok(Self { target, version, scope, unanswered: OnceCell::new() })
    }

    /// Runs statements in a session of their own, cancelled when the run is stopped: others may
    /// hold locks on the tables for as long as they like.
    fn in_session<T>(
        &self,
        doing: &str,
        stop: &Stop,
        statements: impl FnOnce(&mut dyn Session) -> Result<T, SessionError>,
    ) -> Result<T, EngineError> {
        let failed = |error: SessionError| EngineError::failed(format!("{doing}: {error}"));
        let mut connection = self.target.connect().map_err(failed)?;
        until_stopped(connection.as_mut(), stop, |one| statements(one.session()))?.map_err(failed)
    }

    /// The names of a workload's tables.
    fn tables(&self, workload: &dyn Workload) -> Result<Vec<String>, EngineError> {
        let tables = workload.tables(self.dialect()).map_err(EngineError::failed)?;
        Ok(tables.into_iter().map(|table| table.name).collect())
    }

    /// Drops tables of earlier runs that are made again, once it is known that nothing else has one
    /// of the names. Returns the other tables of earlier runs.
    fn clear(
        &self,
        data: &str,
        tables: &[String],
        stop: &Stop,
    ) -> Result<BTreeSet<String>, EngineError> {
        let cleared = self.in_session("make room", stop, |session| {
            let mut made = Mark::read(session)?.made(data, tables);
            for name in tables {
                if !made.contains(name) && mark::is_there(session, name)? {
                    return Ok(Err(name));
                }
            }
            for name in tables {
                if made.remove(name) {
                    session.run(&format!("DROP TABLE IF EXISTS {name}"))?;
                }
            }
            Mark::leave(session, "", &made)?;
            Ok(Ok(made))
        });
        cleared?.map_err(|name| {
            EngineError::failed(format!(
                "the database has a table `{name}` that is not ours: create an empty database for \
                 {data}, and give its name in the URL"
            ))
        })
    }

    fn fill(
        &self,
        data: &str,
        workload: &dyn Workload,
        stop: &Stop,
    ) -> Result<FillTimes, EngineError> {
        let tables = self.tables(workload)?;
        let mut made = self.clear(data, &tables, stop)?;
        let filled = load(&self.target, workload, stop)?;
        made.extend(tables);
        self.in_session("mark the data", stop, |session| Mark::leave(session, data, &made))?;
        Ok(filled)
    }

    /// Whether a workload needs nothing in the database.
    fn makes_nothing(&self, workload: &dyn Workload) -> Result<bool, EngineError> {
        let set_up = workload.set_up(self.dialect()).map_err(EngineError::failed)?;
        Ok(set_up.is_empty() && self.tables(workload)?.is_empty())
    }

    /// Settings of every session.
    fn settings(&self, running: &ServerConfiguration) -> Vec<(String, String)> {
        let setting = |(name, value): (&String, &String)| match self.target.software {
            Software::Postgres => (name.clone(), value.clone()),
            Software::MariaDb => (name.clone(), mariadb_value(value)),
        };
        running.settings.iter().map(setting).collect()
    }

    /// Why a session rejects a setting.
    fn refusal(&self, name: &str, value: &str) -> Option<Reason> {
        if self.target.access == Access::ReadOnly && !tunes(name) {
            return Some(Reason::new(format_args!(
                "`{name}` is not among the settings of memory, planning and time, and a run that \
                 only reads sets no others: --allow-writes lets it"
            )));
        }
        if let Some(unanswered) = self.unanswered.get() {
            return Some(unanswered.clone());
        }
        match self.rejection(name, value) {
            Ok(rejection) => rejection,
            // The next setting, and the next cell's, would be waited for as long.
            Err(SessionError::Gone(says)) => {
                let unanswered = Reason::new(format_args!(
                    "the server does not say whether `{name}` can be set: {says}"
                ));
                Some(self.unanswered.get_or_init(|| unanswered).clone())
            }
            Err(_) => None,
        }
    }

    /// Sets it in a session of its own. Returns why that fails, unless it has the value already.
    fn rejection(&self, name: &str, value: &str) -> Result<Option<Reason>, SessionError> {
        let values = [Value::Text(name), Value::Text(value)];
        let (set, values, show) = match self.target.software {
            Software::Postgres => {
                let show = format!("SHOW {}", postgres::identifier(name));
                ("SELECT set_config($1, $2, false)".to_owned(), values.as_slice(), show)
            }
            Software::MariaDb => {
                let (name, value) = (mariadb::identifier(name), mariadb_value(value));
                let show = format!("SELECT @@{name}");
                (format!("SET SESSION {name} = {value}"), [].as_slice(), show)
            }
        };
        let mut session = self.target.connect_briefly()?;
        // A message of a prepared statement holds no second one.
        let mut set = || {
            let statement = session.prepare(&set)?;
            session.exchange(statement, values, &mut |_| Ok(()))
        };
        let says = match set() {
            Ok(_) => return Ok(None),
            Err(gone @ SessionError::Gone(_)) => return Err(gone),
            Err(says) => says,
        };
        let mut now = None;
        let mut look = || {
            let statement = session.prepare(&show)?;
            session.query(statement, &[], &mut |row| {
                now = row.text(0).map(ToOwned::to_owned).ok();
                Ok(())
            })
        };
        match look() {
            Ok(_) if now.as_deref() == Some(value) => Ok(None),
            Err(gone @ SessionError::Gone(_)) => Err(gone),
            _ => Ok(Some(Reason::new(format_args!(
                "only session settings can be changed on a server that is not ours: {says}"
            )))),
        }
    }
}

/// Numbers and words such as `ON` as they are, other texts in quotes.
fn mariadb_value(value: &str) -> String {
    let plain = value.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    if plain && !value.is_empty() { value.to_owned() } else { mariadb::literal(value) }
}

impl Database for AttachedDatabase {
    fn is_ours(&self) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        match self.target.software {
            Software::Postgres => "postgres",
            Software::MariaDb => "mariadb",
        }
    }

    fn folder(&self) -> &'static str {
        "attached"
    }

    fn version(&self) -> Result<String, EngineError> {
        Ok(self.version.clone())
    }

    fn dialect(&self) -> Dialect {
        self.target.software.dialect()
    }

    fn parallel(&self, processes: usize) -> Result<Vec<(String, String)>, String> {
        match self.target.software {
            Software::Postgres => super::postgres::parallel(processes),
            Software::MariaDb => super::mariadb::parallel(processes),
        }
    }

    fn impossible(&self, running: &ServerConfiguration, protocol: Protocol) -> Option<Reason> {
        let ours = "the server is not ours";
        if running.cpus.is_some() {
            return Some(Reason::new(format_args!("{ours} to put on CPUs")));
        }
        if running.policy != Policy::Other {
            return Some(Reason::new(format_args!("{ours} to schedule")));
        }
        if protocol.start == Start::Cold || protocol.restart == Before::Always {
            return Some(Reason::new(format_args!("{ours} to start anew")));
        }
        running.settings.iter().find_map(|(name, value)| self.refusal(name, value))
    }

    fn limitation(&self) -> Option<Reason> {
        (self.scope == ProcessScope::Unseen).then(|| {
            "the server's processor time is not visible from here: connect through its socket"
                .into()
        })
    }

    fn may_write(&self) -> bool {
        self.target.access == Access::Write
    }

    fn serve(
        &mut self,
        _: &Path,
        running: &ServerConfiguration,
        _: &Stop,
    ) -> Result<(), EngineError> {
        self.target.address.settings = self.settings(running);
        Ok(())
    }

    fn chill(&mut self, _: &Stop) -> Result<(), EngineError> {
        Err(EngineError::failed("the server is not ours to start anew"))
    }

    /// Data that a workload changes is made again before every repetition: slow, but right.
    fn restore(
        &mut self,
        data: &str,
        workload: &dyn Workload,
        stop: &Stop,
    ) -> Result<Option<FillTimes>, EngineError> {
        if self.target.access == Access::Write {
            if self.makes_nothing(workload)? {
                return holds(&self.target, workload, Moment::Loaded, stop).map(|()| None);
            }
            let there = self.in_session("look for data", stop, Mark::read)?;
            if there.data == data && workload.reset(self.dialect()).is_some() {
                match holds(&self.target, workload, Moment::Loaded, stop) {
                    Ok(()) => return Ok(None),
                    // Data that was not looked at is not made again.
                    Err(EngineError::Stopped) => return Err(EngineError::Stopped),
                    Err(_) => {}
                }
            }
            return self.fill(data, workload, stop).map(Some);
        }
        let holds = holds(&self.target, workload, Moment::Loaded, stop);
        holds.map(|()| None).map_err(|error| match error {
            EngineError::Failed(says) => EngineError::failed(format!(
                "{says}; --allow-writes lets the run make the tables of `{}`",
                workload.name()
            )),
            other => other,
        })
    }

    fn connector(&self) -> Result<Box<dyn Connector>, EngineError> {
        Ok(Box::new(self.target.clone()))
    }

    fn scope(&self) -> ProcessScope {
        self.scope
    }

    fn unkillable(&self) -> Option<&'static str> {
        Some("the server is not ours to kill")
    }

    /// It keeps running.
    fn stop(&mut self) {}
}
