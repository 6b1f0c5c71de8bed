//! DataFusion as the engine needs it: a directory of Parquet files, read in this process.
//!
//! `parallel` is its partitions and its threads, `server.joins` chooses the joins (`stock`,
//! `workahead`), and any other `server.NAME` is a setting of DataFusion's (`SET NAME = …`).

use std::fs;
use std::path::{Path, PathBuf};

use workahead_study::engine::{EngineError, Stop};
use workahead_workloads::client::Workload;
use workahead_workloads::session::Dialect;

use super::database::{Database, ProcessScope, ServerConfiguration, load};
use super::{files, settings};
use crate::datafusion::{self, THREADS};
use crate::fill::FillTimes;

/// DataFusion.
#[derive(Default)]
pub(super) struct DataFusion {
    place: Option<(PathBuf, ServerConfiguration)>,
    /// The data that clients query, and its tables.
    data: Option<String>,
    open: Option<datafusion::Database>,
}

fn failed(doing: &str, error: &dyn std::fmt::Display) -> EngineError {
    EngineError::failed(format!("{doing}: {error}"))
}

fn not_started() -> EngineError {
    EngineError::failed("the tables were not opened")
}

/// Opens a directory; its threads inherit the CPUs of this thread.
fn open(
    directory: &Path,
    running: &ServerConfiguration,
) -> Result<datafusion::Database, EngineError> {
    let pinned = running.pin();
    let _pinned = pinned.map_err(|error| failed("keep DataFusion on its CPUs", &error))?;
    datafusion::open(directory, &running.settings)
        .map_err(|error| failed(&format!("open {}", directory.display()), &error))
}

impl DataFusion {
    fn place(&self) -> Result<(PathBuf, ServerConfiguration), EngineError> {
        self.place.clone().ok_or_else(not_started)
    }

    /// Opens the tables that clients query, if there are any.
    fn reopen(&mut self) -> Result<(), EngineError> {
        self.open = None;
        let (home, running) = self.place()?;
        let directory = home.join(self.data.as_deref().unwrap_or("none"));
        self.open = Some(open(&directory, &running)?);
        Ok(())
    }
}

impl Database for DataFusion {
    fn name(&self) -> &'static str {
        "datafusion"
    }

    fn version(&self) -> Result<String, EngineError> {
        Ok(format!("DataFusion {}", workahead_sql::DATAFUSION_VERSION))
    }

    fn dialect(&self) -> Dialect {
        Dialect::DataFusion
    }

    fn parallel(&self, processes: usize) -> Result<Vec<(String, String)>, String> {
        Ok(vec![(THREADS.to_owned(), processes.to_string())])
    }

    fn serve(
        &mut self,
        home: &Path,
        running: &ServerConfiguration,
        _stop: &Stop,
    ) -> Result<(), EngineError> {
        settings::check_threads(&running.settings)?;
        files::make_private(home)?;
        let place = Some((home.to_owned(), running.clone()));
        match self.open.is_some() && self.place == place {
            true => Ok(()),
            false => {
                self.place = place;
                self.reopen()
            }
        }
    }

    fn chill(&mut self, _stop: &Stop) -> Result<(), EngineError> {
        self.open = None;
        files::forget(&self.place()?.0)?;
        self.reopen()
    }

    /// Files never change once written: clients' changes are in memory.
    fn restore(
        &mut self,
        data: &str,
        workload: &dyn Workload,
        stop: &Stop,
    ) -> Result<Option<FillTimes>, EngineError> {
        self.open = None;
        let mut filled = None;
        let (home, running) = self.place()?;
        let kept = home.join(data);
        if !kept.exists() {
            let half = home.join("loading");
            if half.exists() {
                fs::remove_dir_all(&half).map_err(|error| failed("load anew", &error))?;
            }
            fs::create_dir_all(&half).map_err(|error| failed("keep the data", &error))?;
            filled = Some(load(&open(&half, &running)?, workload, stop)?);
            fs::rename(&half, &kept).map_err(|error| failed("keep the data", &error))?;
        }
        self.data = Some(data.to_owned());
        self.reopen()?;
        Ok(filled)
    }

    fn connector(&self) -> Result<Box<dyn crate::connector::Connector>, EngineError> {
        Ok(Box::new(self.open.clone().ok_or_else(not_started)?))
    }

    fn scope(&self) -> ProcessScope {
        ProcessScope::Within
    }

    fn unkillable(&self) -> Option<&'static str> {
        Some("DataFusion is in this process, which would be killed with it")
    }

    fn stop(&mut self) {
        self.open = None;
    }
}
