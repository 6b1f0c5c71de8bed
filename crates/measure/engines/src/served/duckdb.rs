//! DuckDB as the engine needs it: a file in this process, its data kept as copies of that file.
//!
//! Its threads are the database's, started when it is opened and kept on the CPUs that the cell
//! gives it; each client's thread works on its own query beside them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use workahead_duckdb::{Database as OpenDatabase, Library};
use workahead_study::engine::{EngineError, Stop};
use workahead_workloads::client::Workload;
use workahead_workloads::session::Dialect;

use super::database::{Database, ProcessScope, ServerConfiguration, load};
use super::{files, settings};
use crate::connector::Connector;
use crate::duckdb::Connection;
use crate::fill::FillTimes;

/// The file that clients use.
const CURRENT: &str = "current.duckdb";

/// DuckDB.
#[derive(Default)]
pub(super) struct DuckDb {
    place: Option<(PathBuf, ServerConfiguration)>,
    open: Option<OpenDatabase>,
}

fn failed(doing: &str, error: &dyn std::fmt::Display) -> EngineError {
    EngineError::failed(format!("{doing}: {error}"))
}

fn not_started() -> EngineError {
    EngineError::failed("the database was not opened")
}

impl DuckDb {
    /// Loaded once a process.
    fn library() -> Result<Library, EngineError> {
        static LIBRARY: OnceLock<Library> = OnceLock::new();
        if let Some(library) = LIBRARY.get() {
            return Ok(*library);
        }
        let found = Library::find(None).map_err(EngineError::failed)?;
        Ok(*LIBRARY.get_or_init(|| found))
    }

    fn place(&self) -> Result<(PathBuf, ServerConfiguration), EngineError> {
        self.place.clone().ok_or_else(not_started)
    }

    /// Opens the clients' file with the configuration.
    fn reopen(&mut self) -> Result<(), EngineError> {
        self.open = None;
        let (home, running) = self.place()?;
        let current = home.join(CURRENT);
        // A pipe or link left in its place by an earlier run would be waited for, or followed.
        if fs::symlink_metadata(&current).is_ok_and(|found| !found.is_file()) {
            fs::remove_file(&current).map_err(|error| failed("make room", &error))?;
        }
        self.open = Some(open(&current, &running)?);
        Ok(())
    }
}

/// Opens a file; its threads inherit the CPUs of this thread.
fn open(file: &Path, running: &ServerConfiguration) -> Result<OpenDatabase, EngineError> {
    let pinned = running.pin();
    let _pinned = pinned.map_err(|error| failed("keep the database on its CPUs", &error))?;
    let library = DuckDb::library()?;
    let opened = OpenDatabase::open(library, file, &[]);
    let opened = opened.map_err(|error| failed(&format!("open {}", file.display()), &error))?;
    shut_in(&opened)?;
    set(&opened, &BTreeMap::new(), &running.settings)?;
    Ok(opened)
}

/// Keeps statements, and settings after this one, from files other than the database's own: a study
/// may come from somebody else, and this process has all rights of its user. Nothing switches it on
/// again while the database is open.
fn shut_in(database: &OpenDatabase) -> Result<(), EngineError> {
    let mut connection = Connection::open(database).map_err(|error| failed("connect", &error))?;
    let shut = connection.command("set global enable_external_access = false");
    shut.map_err(|error| failed("keep DuckDB from other files", &error))
}

/// Changes the settings from `now` to `wanted`.
fn set(
    database: &OpenDatabase,
    now: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
) -> Result<(), EngineError> {
    let gone = now.keys().filter(|name| !wanted.contains_key(*name));
    let changed = wanted.iter().filter(|(name, value)| now.get(*name) != Some(value));
    let texts = gone
        .map(|name| Ok(format!("reset global {}", plain(name)?)))
        .chain(changed.map(|(name, value)| {
            Ok(format!("set global {} = '{}'", plain(name)?, value.replace('\'', "''")))
        }))
        .collect::<Result<Vec<_>, EngineError>>()?;
    let mut connection = Connection::open(database).map_err(|error| failed("connect", &error))?;
    texts.iter().try_for_each(|text| {
        connection.command(text).map_err(|error| failed("settings of DuckDB", &error))
    })
}

/// A name that needs no quotes.
fn plain(name: &str) -> Result<&str, EngineError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match !name.is_empty() && name.chars().all(is_plain) {
        true => Ok(name),
        false => Err(EngineError::failed(format!("DuckDB has no setting {name:?}"))),
    }
}

impl Database for DuckDb {
    fn name(&self) -> &'static str {
        "duckdb"
    }

    fn version(&self) -> Result<String, EngineError> {
        Ok(format!("DuckDB {}", Self::library()?.version().trim_start_matches('v')))
    }

    fn dialect(&self) -> Dialect {
        Dialect::DuckDb
    }

    /// The client's own thread is one of them.
    fn parallel(&self, processes: usize) -> Result<Vec<(String, String)>, String> {
        Ok(vec![("threads".to_owned(), processes.to_string())])
    }

    fn serve(
        &mut self,
        home: &Path,
        running: &ServerConfiguration,
        _stop: &Stop,
    ) -> Result<(), EngineError> {
        settings::check("duckdb", &running.settings)?;
        settings::check_threads(&running.settings)?;
        files::make_private(home)?;
        let (new, old) = (running.clone(), self.place.replace((home.to_owned(), running.clone())));
        match (&self.open, old) {
            (Some(open), Some((place, old))) if place == home && old.cpus == new.cpus => {
                // Its memory keeps its contents.
                set(open, &old.settings, &new.settings)
            }
            _ => self.reopen(),
        }
    }

    fn chill(&mut self, _stop: &Stop) -> Result<(), EngineError> {
        self.open = None;
        files::forget(&self.place()?.0)?;
        self.reopen()
    }

    fn restore(
        &mut self,
        data: &str,
        workload: &dyn Workload,
        stop: &Stop,
    ) -> Result<Option<FillTimes>, EngineError> {
        self.open = None;
        let mut filled = None;
        let (home, running) = self.place()?;
        let kept = home.join(format!("kept-{data}.duckdb"));
        if !kept.exists() {
            let half = home.join("loading.duckdb");
            remove(&half)?;
            let database = open(&half, &running)?;
            filled = Some(load(&database, workload, stop)?);
            // Into the file itself, out of the log beside it.
            let mut connection =
                Connection::open(&database).map_err(|error| failed("connect", &error))?;
            connection.command("checkpoint").map_err(|error| failed("keep the data", &error))?;
            drop((connection, database));
            fs::rename(&half, &kept).map_err(|error| failed("keep the data", &error))?;
        }
        let current = home.join(CURRENT);
        remove(&current)?;
        files::copy(&kept, &current).map_err(|error| failed("copy the data", &error))?;
        self.reopen()?;
        Ok(filled)
    }

    fn connector(&self) -> Result<Box<dyn Connector>, EngineError> {
        Ok(Box::new(self.open.clone().ok_or_else(not_started)?))
    }

    fn scope(&self) -> ProcessScope {
        ProcessScope::Within
    }

    fn unkillable(&self) -> Option<&'static str> {
        Some("DuckDB is in this process, which would be killed with it")
    }

    fn stop(&mut self) {
        self.open = None;
    }
}

/// Removes a database and its log, where there are any.
fn remove(file: &Path) -> Result<(), EngineError> {
    let mut log = file.as_os_str().to_owned();
    log.push(".wal");
    for path in [file, Path::new(&log)] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(&format!("remove {}", path.display()), &error));
            }
            _ => {}
        }
    }
    Ok(())
}
