//! A workload's tables, made and filled in a database, each step timed: loading, making indexes and
//! gathering statistics are not part of later measurements, and are reported separately.

use std::time::Instant;

use workahead_study::engine::Stop;
use workahead_workloads::client::{Table, Workload};
use workahead_workloads::session::SessionError;

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
/// The server's error for a statement or a row; [`Error::Stopped`] between two rows.
pub fn fill(
    connector: &dyn Connector,
    workload: &dyn Workload,
    stop: &Stop,
) -> Result<FillTimes, Error> {
    let name = workload.name();
    let wrong = |doing: &str, source| Error::session(&format!("{doing} of {name}"), source);
    let mut connection =
        connector.open().map_err(|error| wrong("connect for the tables", error))?;
    let dialect = connection.session().dialect();
    let tables = workload.tables(dialect).map_err(|error| wrong("have the tables", error))?;
    let mut filled = FillTimes::default();
    for (index, table) in tables.iter().enumerate() {
        let begun = Instant::now();
        let rows = rows(connection.as_mut(), table, workload, index, stop);
        if stop.is_requested() {
            return Err(Error::Stopped);
        }
        filled.rows += rows.map_err(|error| wrong(&format!("fill `{}`", table.name), error))?;
        filled.rows_s += begun.elapsed().as_secs_f64();
    }
    let begun = Instant::now();
    for text in tables.iter().flat_map(|table| &table.finish) {
        connection.session().run(text).map_err(|error| wrong("finish the tables", error))?;
    }
    let set_up = workload.set_up(dialect).map_err(|error| wrong("set up the data", error))?;
    for text in &set_up {
        connection.session().run(text).map_err(|error| wrong("set up the data", error))?;
    }
    filled.finish_s = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    for table in &tables {
        let analysed = connection.analyse_table(&table.name);
        analysed.map_err(|error| wrong("gather statistics", error))?;
    }
    filled.statistics_s = begun.elapsed().as_secs_f64();
    Ok(filled)
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
    let go_on = || match stop.is_requested() {
        true => Err(SessionError::Failed("stopped".to_owned())),
        false => Ok(()),
    };
    connection.fill_table(table, &mut |sink| {
        workload.rows(index, &mut |row| go_on().and_then(|()| sink(row)))
    })
}
