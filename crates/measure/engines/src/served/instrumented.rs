//! A statement of a served database under valgrind (evidence tier D): in a single backend, or, for
//! a database in this process, in a worker process.
//!
//! Reading and planning the statement and taking its rows are counted with it.

use workahead_study::cell::Cell;
use workahead_study::engine::{Answer, EngineContext, EngineError, Sample, Stop};
use workahead_study::worker_process::{Request, Worker};
use workahead_workloads::checksum;
use workahead_workloads::client::{ExplainRequest, Workload};
use workahead_workloads::session::{Dialect, SessionError};

use super::background::LoopCount;
use super::configuration::{Amount, Configuration};
use super::database::{Database, ProcessScope};
use super::{DatabaseEngine, sample};
use crate::cancellation::until_stopped;
use crate::connector::Connection;
use crate::postgres::single_backend;
use crate::server::Explain;
use crate::valgrind::{ValgrindOptions, ValgrindRunner, WorkerProgram, no_command};

/// Checks that its statements can run in a process that ends.
///
/// # Errors
/// When they can't.
pub(super) fn can(database: &dyn Database, context: &EngineContext) -> Result<(), EngineError> {
    let name = database.name();
    match database.scope() {
        _ if database.has_single_backend() => Ok(()),
        ProcessScope::Within if context.worker.is_none() => Err(no_command(name)),
        ProcessScope::Within => Ok(()),
        _ => Err(EngineError::refused(format!(
            "engine `{name}` can't be run under valgrind, `postgres`, `duckdb`, `datafusion` and \
             `native` can: leave `instrumented` out of the study's method"
        ))),
    }
}

/// Refuses cells that one client with one statement can't run.
pub(super) fn check(
    valgrind: &ValgrindRunner,
    config: &Configuration,
    workload: &dyn Workload,
    database: &dyn Database,
) -> Result<(), EngineError> {
    valgrind.tool(config.caches.as_deref())?;
    // It runs as the superuser, with all that views and types of the data call.
    if database.has_single_backend() && config.work.has_set_up() {
        return Err(EngineError::refused(
            "a single backend runs on data of built-in workloads only: leave `set_up` out",
        ));
    }
    let dialect = database.dialect();
    let refused = refused(config).map(|what| format!("there is no {what} under valgrind"));
    let runs = || {
        let statement = statement(workload, dialect)?;
        if !database.has_single_backend() {
            return Ok(());
        }
        // One more comes before those that are counted.
        let times = queries(config).saturating_add(1);
        single_backend::check_input(&single_backend::checked(&statement)?, times)
    };
    let why = refused.map_or_else(|| runs().err(), Some);
    why.map_or(Ok(()), |why| Err(EngineError::refused(why)))
}

impl DatabaseEngine {
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
        let sample = match self.database.has_single_backend() {
            true => valgrind.count(&self.database.single_backend(&statement, stop)?, how, stop)?,
            false => valgrind.count(&self.worker_program(cell, &statement, stop)?, how, stop)?,
        };
        Ok(Sample { plan: plan.map(|(plan, _)| plan), ..sample })
    }

    /// Runs the statement here once, then closes the database: another process may open its data.
    fn worker_program(
        &mut self,
        cell: &Cell,
        statement: &ExplainRequest,
        stop: &Stop,
    ) -> Result<WorkerProgram, EngineError> {
        let mut connection = self.database.connector()?.open().map_err(failed)?;
        let asked = until_stopped(connection.as_mut(), stop, |one| query(one, statement));
        let expected = asked?.map_err(failed)?;
        drop(connection);
        self.database.stop();
        let name = self.database.name();
        let command = self.command.as_ref().ok_or_else(|| no_command(name))?;
        // The folder is the database's own, below the engine's.
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

impl Worker for DatabaseEngine {
    fn run_once(&mut self, cell: &Cell) -> Result<Answer, EngineError> {
        let config = Configuration::read(cell)?;
        let workload = self.workload(&config.work)?;
        let statement = statement(workload.as_ref(), self.database.dialect());
        let statement = statement.map_err(EngineError::refused)?;
        let mut connection = self.database.connector()?.open().map_err(failed)?;
        query(connection.as_mut(), &statement).map_err(failed)
    }
}

fn failed(error: SessionError) -> EngineError {
    EngineError::failed(format!("query the database: {error}"))
}

/// The answer of a statement.
fn query(
    connection: &mut dyn Connection,
    statement: &ExplainRequest,
) -> Result<Answer, SessionError> {
    let session = connection.session();
    statement.settings.iter().try_for_each(|text| session.run(text))?;
    let prepared = session.prepare(&statement.text)?;
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

/// The setting of a cell that a single client can't have.
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

/// The one statement, whose answer comes back: only a returned answer can be checked.
fn statement(workload: &dyn Workload, dialect: Dialect) -> Result<ExplainRequest, String> {
    let name = workload.name();
    let explained = workload.explained(dialect).map_err(|error| error.to_string())?;
    let count = explained.len();
    let Ok([statement]) = <[ExplainRequest; 1]>::try_from(explained) else {
        return Err(format!(
            "one statement is run under valgrind, and this `{name}` has {count} to explain: choose \
             one query of `dbmbench`, `tpch` or `sql`"
        ));
    };
    let first = statement.text.split_whitespace().next().unwrap_or_default().to_lowercase();
    match first.as_str() {
        "select" | "with" | "values" | "table" => {
            // Before anything of it is sent: a single backend is a superuser's.
            if dialect == Dialect::Postgres {
                single_backend::checked(&statement)?;
            }
            Ok(statement)
        }
        _ => Err(format!(
            "the answer of a statement that begins with `{first}` is not seen under valgrind: give \
             `answers = \"returned\"`, or a statement that reads"
        )),
    }
}
