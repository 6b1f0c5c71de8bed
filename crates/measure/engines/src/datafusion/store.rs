//! A directory of tables: a Parquet file for each table with rows, and the `create` statement of
//! each that began without.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use workahead_machine::regular_file;
use workahead_sql::session::{Joiner, Options, Session as Engine};
use workahead_workloads::client::Table;
use workahead_workloads::session::{Session as _, SessionError};

use super::columns::Columns;
use super::{Connection, Database, refused};
use crate::connector::RowSource;

/// Rows gathered before they are written: a batch of DataFusion's.
const BATCH_ROWS: u64 = 8192;
/// Rows of a row group, which is what threads share a file by: of DataFusion's default size, a
/// table of a hundred megabytes would be read by one.
const GROUP_ROWS: usize = 128 * 1024;

/// Of a table's `create` statement.
const CREATE_BYTES_MAX: u64 = 1 << 20;

/// Settings of ours: whose joins, and how many threads.
const JOINS: &str = "joins";
pub(crate) const THREADS: &str = "threads";

/// The directory.
#[derive(Clone)]
pub struct Store {
    directory: PathBuf,
}

/// Opens a directory of tables, which may be empty. The threads start here.
///
/// # Errors
/// When a setting is unknown, or a file can't be read.
pub fn open(
    directory: &Path,
    settings: &BTreeMap<String, String>,
) -> Result<Database, SessionError> {
    let failed = |says: String| SessionError::Failed(says);
    let threads = settings.get(THREADS).map_or(Ok(NonZero::<usize>::MIN), |text| {
        text.parse().map_err(|_| failed(format!("`{text}` is not a number of threads")))
    })?;
    let joiner = match settings.get(JOINS).map(String::as_str) {
        None | Some("stock") => Joiner::Stock,
        Some("workahead") => Joiner::Ours,
        Some(other) => {
            return Err(failed(format!(
                "unknown join implementation `{other}`: choose stock or workahead"
            )));
        }
    };
    let engine = Engine::new(&Options { joiner, threads, ..Options::default() });
    // A study may be somebody else's.
    let engine = engine.map_err(refused)?.without_files();
    let store = Store { directory: directory.to_owned() };
    let database = Database { engine: Arc::new(engine), store };
    let mut connection = Connection::open(database.clone());
    for (name, value) in
        settings.iter().filter(|(name, _)| ![JOINS, THREADS].contains(&name.as_str()))
    {
        connection.run(&format!("set {name} = '{}'", value.replace('\'', "''")))?;
    }
    database.store.open_all(&mut connection)?;
    Ok(database)
}

impl Store {
    fn failed(&self, doing: &str, error: &dyn std::fmt::Display) -> SessionError {
        SessionError::Failed(format!("{doing} {}: {error}", self.directory.display()))
    }

    fn open_all(&self, connection: &mut Connection) -> Result<(), SessionError> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(|error| self.failed("list", &error))?,
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            let (Some(name), Some(ending)) = (path.file_stem(), path.extension()) else { continue };
            let name = name.to_string_lossy();
            if ending == "parquet" {
                self.register(&connection.database.engine, &name)?;
            } else if ending == "sql" {
                let text = regular_file::read_text(&path, CREATE_BYTES_MAX)
                    .map_err(|error| self.failed("read", &error))?;
                connection.run(&text)?;
            }
        }
        Ok(())
    }

    fn file(&self, table: &str) -> PathBuf {
        self.directory.join(format!("{table}.parquet"))
    }

    pub(super) fn register(&self, engine: &Engine, table: &str) -> Result<(), SessionError> {
        engine.register(table, &self.file(table), &AtomicBool::new(false)).map_err(refused)
    }

    /// Writes a table's rows, or only its definition if there are none. Returns the number of rows.
    pub(super) fn write(
        &self,
        table: &Table,
        schema: &SchemaRef,
        row_source: RowSource<'_>,
    ) -> Result<u64, SessionError> {
        fs::create_dir_all(&self.directory).map_err(|error| self.failed("make", &error))?;
        let half = self.directory.join(format!("{}.workahead-tmp", table.name));
        let rows = self.write_to(&half, schema, row_source)?;
        let failed = |error| self.failed("write into", &error);
        match rows {
            0 => {
                fs::remove_file(&half).map_err(failed)?;
                let made = self.directory.join(format!("{}.sql", table.name));
                fs::write(made, &table.create).map_err(failed)?;
            }
            _ => fs::rename(&half, self.file(&table.name)).map_err(failed)?,
        }
        Ok(rows)
    }

    fn write_to(
        &self,
        path: &Path,
        schema: &SchemaRef,
        row_source: RowSource<'_>,
    ) -> Result<u64, SessionError> {
        let failed = |error: &dyn std::fmt::Display| self.failed("write into", error);
        let file = File::create(path).map_err(|error| failed(&error))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        let writer = ArrowWriter::try_new(file, Arc::clone(schema), Some(properties));
        let mut writer = writer.map_err(|error| failed(&error))?;
        let (mut columns, mut rows) = (Columns::new(schema)?, 0);
        row_source(&mut |row| {
            columns.push(row)?;
            rows += 1;
            match rows % BATCH_ROWS {
                0 => writer.write(&columns.take()?).map_err(|error| failed(&error)),
                _ => Ok(()),
            }
        })?;
        writer.write(&columns.take()?).map_err(|error| failed(&error))?;
        writer.close().map_err(|error| failed(&error))?;
        Ok(rows)
    }
}
