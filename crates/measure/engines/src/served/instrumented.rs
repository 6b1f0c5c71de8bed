//! A statement of a served database below valgrind (evidence tier D): in a backend alone, or, for
//! a database in this process, in a process of our own.
//!
//! Reading and planning the statement and taking its rows are counted with it.

use workahead_study::cell::Cell;
use workahead_study::engine::{Answer, EngineContext, EngineError, Sample, Stop};
use workahead_study::worker_process::{Request, Worker};
use workahead_workloads::checksum;
use workahead_workloads::client::{Explained, Workload};
use workahead_workloads::session::{Dialect, Session, SessionError};

use super::background::LoopCount;
use super::configuration::{Amount, Configuration};
use super::database::{Database, Seat};
use super::{Served, sample};
use crate::server::Explain;
use crate::valgrind::{ValgrindOptions, ValgrindRunner, WorkerProgram, no_command};

/// Whether its statements can be run in a process that ends.
///
/// # Errors
/// When they can't.
pub(super) fn can(database: &dyn Database, context: &EngineContext) -> Result<(), EngineError> {
    let name = database.name();
    match database.seat() {
        _ if database.stands_alone() => Ok(()),
        Seat::Within if context.worker.is_none() => Err(no_command(name)),
        Seat::Within => Ok(()),
        _ => Err(EngineError::refused(format!(
            "engine `{name}` can't be run below valgrind, `postgres`, `duckdb`, `datafusion` and \
             `native` can: leave `instrumented` out of the study's method"
        ))),
    }
}

/// Refuses what one client that runs one statement can't do.
pub(super) fn check(
    valgrind: &ValgrindRunner,
    config: &Configuration,
    workload: &dyn Workload,
    dialect: Dialect,
) -> Result<(), EngineError> {
    valgrind.tool(config.caches.as_deref())?;
    let refused = refused(config).map(|what| format!("there is no {what} below valgrind"));
    let why = refused.map_or_else(|| statement(workload, dialect).err(), Some);
    why.map_or(Ok(()), |why| Err(EngineError::refused(why)))
}

impl Served {
    /// One repetition. The server is stopped when it returns.
    pub(super) fn count(
        &mut self,
        valgrind: &ValgrindRunner,
        cell: &Cell,
        config: &Configuration,
        workload: &dyn Workload,
        stop: &Stop,
    ) -> Result<Sample, EngineError> {
        let dialect = self.database.dialect();
        let statement = statement(workload, dialect).map_err(EngineError::refused)?;
        let connector = self.database.connector()?;
        let plan = sample::plan(connector.as_ref(), workload, dialect, Explain::Planned, stop)?;
        // It holds the database open, and so its lock, which the worker process needs.
        drop(connector);
        let (start, caches) = (cell.protocol.start, config.caches.as_deref());
        let how = ValgrindOptions { caches, start, runs: queries(config), tuples: 1 };
        let sample = match self.database.stands_alone() {
            true => valgrind.count(&self.database.alone(&statement)?, how, stop)?,
            false => valgrind.count(&self.inside(cell, &statement)?, how, stop)?,
        };
        Ok(Sample { plan: plan.map(|(plan, _)| plan), ..sample })
    }

    /// Asks the database here once, then closes it: another process may open its data.
    fn inside(&mut self, cell: &Cell, statement: &Explained) -> Result<WorkerProgram, EngineError> {
        let expected = ask(self.database.as_ref(), statement)?;
        self.database.stop();
        let name = self.database.name();
        let command = self.command.as_ref().ok_or_else(|| no_command(name))?;
        // The folder is the database's own, below the one that it was told of.
        let home = self.home.parent().unwrap_or(&self.home);
        let request = Request {
            engine: name.to_owned(),
            cell: cell.clone(),
            home: home.to_owned(),
            limits: None,
            runs: 0,
        };
        Ok(WorkerProgram::new(command, request, expected))
    }
}

impl Worker for Served {
    fn run_once(&mut self, cell: &Cell) -> Result<Answer, EngineError> {
        let config = Configuration::read(cell)?;
        let workload = self.workload(&config.work)?;
        let statement = statement(workload.as_ref(), self.database.dialect());
        ask(self.database.as_ref(), &statement.map_err(EngineError::refused)?)
    }
}

/// The answer of a statement on a connection of its own.
fn ask(database: &dyn Database, statement: &Explained) -> Result<Answer, EngineError> {
    let failed = |error| EngineError::failed(format!("ask the database: {error}"));
    let mut connection = database.connector()?.open().map_err(failed)?;
    let session = connection.session();
    statement.settings.iter().try_for_each(|text| session.run(text)).map_err(failed)?;
    answer(session, &statement.text).map_err(failed)
}

fn answer(session: &mut dyn Session, text: &str) -> Result<Answer, SessionError> {
    let prepared = session.prepare(text)?;
    let mut checksum = 0_u64;
    let rows = session.query(prepared, &[], &mut |row| {
        // A sum: the order of rows is not part of the answer.
        checksum = checksum.wrapping_add(checksum::of_row(row)?);
        Ok(())
    })?;
    Ok(Answer { rows, checksum })
}

fn queries(config: &Configuration) -> u64 {
    match config.amount {
        Amount::Count(count) => count,
        Amount::Seconds(_) => 1,
    }
}

/// What a cell asks for and one client alone does not have.
fn refused(config: &Configuration) -> Option<&'static str> {
    let nothing = [
        (config.clients != 1 || config.ramp, "second client: leave `clients` out"),
        (
            matches!(config.amount, Amount::Seconds(_)),
            "measure of time: give `queries` in place of `seconds`",
        ),
        (config.rate.is_some(), "rate: leave `rate` out"),
        (config.parallel != 1, "second process: leave `parallel` out"),
        (config.loops != LoopCount::Number(0), "second program: leave `loops` out"),
    ];
    nothing.into_iter().find_map(|(asks, what)| asks.then_some(what))
}

/// The one statement, whose answer comes back: only an answer that is seen can be checked.
fn statement(workload: &dyn Workload, dialect: Dialect) -> Result<Explained, String> {
    let name = workload.name();
    let explained = workload.explained(dialect).map_err(|error| error.to_string())?;
    let count = explained.len();
    let Ok([statement]) = <[Explained; 1]>::try_from(explained) else {
        return Err(format!(
            "one statement is run below valgrind, and this `{name}` has {count} to explain: choose \
             one query of `dbmbench`, `tpch` or `sql`"
        ));
    };
    let first = statement.text.split_whitespace().next().unwrap_or_default().to_lowercase();
    match first.as_str() {
        "select" | "with" | "values" | "table" => Ok(statement),
        _ => Err(format!(
            "the answer of a statement that begins with `{first}` is not seen below valgrind: give \
             `answers = \"returned\"`, or a statement that reads"
        )),
    }
}
