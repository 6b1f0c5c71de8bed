//! A workload's tables, made and filled in a database, each step timed: loading, making indexes and
//! gathering statistics are not part of later measurements, and are reported separately.

use std::time::Instant;

use workahead_study::engine::Stop;
use workahead_workloads::client::{Table, Workload};
use workahead_workloads::session::SessionError;

use crate::cancellation::until_stopped;
use crate::connector::{Connection, Connector};
use crate::server::Error;

/// Rows and times of filling a database.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FillTimes {
    /// Rows of all tables.
    pub rows: u64,
    /// Making the tables, and their rows.
    pub rows_s: f64,
    /// Indexes and constraints, and other set-up of the workload.
    pub finish_s: f64,
    /// The planner's statistics; in PostgreSQL also the visibility map, which plans depend on.
    pub statistics_s: f64,
}

/// Makes and fills the tables of a workload in an empty database.
///
/// # Errors
/// The server's error for a statement or a row; [`Error::Stopped`], between two rows or within a
/// statement, which is cancelled.
pub fn fill(
    connector: &dyn Connector,
    workload: &dyn Workload,
    stop: &Stop,
) -> Result<FillTimes, Error> {
    let opened = connector.open();
    let mut connection =
        opened.map_err(|error| failed("connect for the tables", workload, error))?;
    until_stopped(connection.as_mut(), stop, |connection| filled(connection, workload, stop))?
}

fn failed(doing: &str, workload: &dyn Workload, source: SessionError) -> Error {
    Error::session(&format!("{doing} of {}", workload.name()), source)
}

fn filled(
    connection: &mut dyn Connection,
    workload: &dyn Workload,
    stop: &Stop,
) -> Result<FillTimes, Error> {
    let wrong = |doing: &str, error| failed(doing, workload, error);
    let dialect = connection.session().dialect();
    let tables = workload.tables(dialect).map_err(|error| wrong("have the tables", error))?;
    let mut filled = FillTimes::default();
    for (index, table) in tables.iter().enumerate() {
        let begun = Instant::now();
        let rows = rows(connection, table, workload, index, stop);
        go_on(stop)?;
        filled.rows += rows.map_err(|error| wrong(&format!("fill `{}`", table.name), error))?;
        filled.rows_s += begun.elapsed().as_secs_f64();
    }
    let begun = Instant::now();
    for text in tables.iter().flat_map(|table| &table.finish) {
        go_on(stop)?;
        connection.session().run(text).map_err(|error| wrong("finish the tables", error))?;
    }
    let set_up = workload.set_up(dialect).map_err(|error| wrong("set up the data", error))?;
    for text in &set_up {
        go_on(stop)?;
        connection.session().run(text).map_err(|error| wrong("set up the data", error))?;
    }
    filled.finish_s = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    for table in &tables {
        go_on(stop)?;
        let analysed = connection.analyse_table(&table.name);
        analysed.map_err(|error| wrong("gather statistics", error))?;
    }
    filled.statistics_s = begun.elapsed().as_secs_f64();
    Ok(filled)
}

fn go_on(stop: &Stop) -> Result<(), Error> {
    if stop.is_requested() { Err(Error::Stopped) } else { Ok(()) }
}

/// Makes one table, and its rows.
fn rows(
    connection: &mut dyn Connection,
    table: &Table,
    workload: &dyn Workload,
    index: usize,
    stop: &Stop,
) -> Result<u64, SessionError> {
    connection.session().run(&table.create)?;
    let stopped = |error: Error| SessionError::Failed(error.to_string());
    connection.fill_table(table, &mut |sink| {
        workload.rows(index, &mut |row| go_on(stop).map_err(stopped).and_then(|()| sink(row)))
    })
}

#[cfg(test)]
mod tests;
