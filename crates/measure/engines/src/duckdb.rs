//! DuckDB, in this process: its connections as sessions of workloads.
//!
//! There is no server and no other process: a client's thread works on its own query together with
//! the threads that the database keeps, so that CPU seconds of engine and clients are one figure.

mod row;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use workahead_duckdb::{Cell, Database, Error, RefusalKind, StatementId as TheirId};
use workahead_study::plans::{PlanText, Planner};
use workahead_workloads::client::Table;
use workahead_workloads::session::{
    Counts, Dialect, OnRow, Row, Session, SessionError, StatementId, Value,
};

use crate::connector::{self, Cancel, Connector, RowSource};
use crate::error_context;
use crate::server::Explain;
use row::{ChunkRow, cell};

/// A connection.
pub struct Connection {
    connection: workahead_duckdb::Connection,
    texts: Vec<String>,
}

/// An error as a session's.
pub(crate) fn refused(error: Error) -> SessionError {
    match error {
        Error::Refused { why: RefusalKind::Conflict, says } => SessionError::Retry(says),
        Error::Refused { why: RefusalKind::Duplicate, says } => SessionError::Duplicate(says),
        Error::Refused { why: RefusalKind::Fatal, says } => SessionError::Gone(says),
        other => SessionError::Failed(other.to_string()),
    }
}

/// Names that would end this process, as deeper expressions do than DuckDB's own limit, print to
/// its outputs, run a text that was made of parts, or take bytes of the study's for DuckDB's own:
/// files beside the database, states of aggregates, addresses. The statements that would set any of
/// it are refused by their kind.
const DISABLED: [&str; 23] = [
    "max_expression_depth",
    "peg_parser",
    "parser_override",
    "sql_auto_complete",
    "logging",
    "parquet_",
    "profil",
    "progress_bar",
    "query_table",
    "serialized",
    "export_state",
    "arrow_scan",
    "read_avro",
    "read_blob",
    "read_csv",
    "read_duckdb",
    "read_json",
    "read_ndjson",
    "read_parquet",
    "read_text",
    "read_xlsx",
    "sniff_csv",
    "variant_bytes",
];
/// Functions of that kind whose names columns, or an operator, may have.
const CALLS: [&str; 4] = ["query", "glob", "finalize", "combine"];

/// Refuses a text with one of them, wherever it stands: nothing here has to know where quotes and
/// comments end.
fn check(text: &str) -> Result<(), SessionError> {
    let text = text.to_ascii_lowercase();
    let called = CALLS.iter().find(|name| is_called(&text, name)).copied();
    let disabled = DISABLED.iter().find(|word| text.contains(**word)).copied();
    match disabled.or(called) {
        Some(word) => Err(SessionError::Failed(format!("`{word}` is disabled in a study"))),
        None => Ok(()),
    }
}

/// Whether a bracket or a comment comes after a name, with nothing between that DuckDB may take for
/// a space: some of its are not white space to Unicode.
fn is_called(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_token = |c: char| c.is_ascii() && !c.is_ascii_whitespace() && !c.is_ascii_control();
    text.match_indices(name).any(|(at, _)| {
        let rest = text[at + name.len()..].trim_start_matches(|c| !is_token(c) || c == '"');
        !text[..at].ends_with(is_part) && rest.starts_with(['(', '-', '/'])
    })
}

impl Connection {
    /// Connects to a database that is open.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub fn open(database: &Database) -> Result<Connection, SessionError> {
        let connection = database.connect().map_err(refused)?;
        Ok(Connection { connection, texts: Vec::new() })
    }

    /// Runs a text of this program's own: no statement of it is refused.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub(crate) fn command(&mut self, text: &str) -> Result<(), SessionError> {
        self.connection.run(text).map_err(|error| error_context::on(text, refused(error)))
    }

    /// The first row of the result of a text of this program's own, as text; nulls are empty.
    ///
    /// # Errors
    /// See [`SessionError`].
    fn first_row(&mut self, text: &str) -> Result<Vec<String>, SessionError> {
        let mut taken = || -> Result<Vec<String>, Error> {
            let mut answer = self.connection.ask(text)?;
            let Some(chunk) = answer.next_chunk() else { return Ok(Vec::new()) };
            let cell = |column| {
                chunk.cell(column, 0).map(|cell| match cell {
                    Cell::Null => String::new(),
                    cell => cell.to_string(),
                })
            };
            (0..chunk.columns()).map(cell).collect()
        };
        taken().map_err(|error| error_context::on(text, refused(error)))
    }

    /// The plan of a statement without values, as JSON.
    ///
    /// # Errors
    /// DuckDB's error for the statement.
    fn explain(&mut self, text: &str, how: Explain) -> Result<String, SessionError> {
        let explain = match how {
            Explain::Planned => "explain (format json)",
            Explain::Run => "explain (analyze, format json)",
        };
        // Whatever it is, below `explain` it would be run.
        self.prepare(text)?;
        // A kind of plan, and the plan.
        let row = self.first_row(&format!("{explain} {text}"))?;
        let plan = row.into_iter().nth(1);
        plan.ok_or_else(|| SessionError::Failed(format!("there is no plan of `{text}`")))
    }

    fn append(&mut self, table: &Table, row_source: RowSource<'_>) -> Result<u64, SessionError> {
        let mut appender = self.connection.append(&table.name).map_err(refused)?;
        row_source(&mut |values| appender.row(values.iter().map(cell)).map_err(refused))?;
        appender.finish().map_err(refused)
    }
}

impl Session for Connection {
    fn dialect(&self) -> Dialect {
        Dialect::DuckDb
    }

    fn run(&mut self, text: &str) -> Result<(), SessionError> {
        check(text)?;
        self.connection.run_plain(text).map_err(|error| error_context::on(text, refused(error)))
    }

    fn prepare(&mut self, text: &str) -> Result<StatementId, SessionError> {
        check(text)?;
        let prepared = self.connection.prepare_plain(text);
        let TheirId(number) = prepared.map_err(|error| error_context::on(text, refused(error)))?;
        self.texts.push(text.to_owned());
        Ok(StatementId(number))
    }

    fn exchange(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        row: OnRow<'_>,
    ) -> Result<Counts, SessionError> {
        let Self { connection, texts } = self;
        let text = texts.get(statement.0 as usize).map_or("", String::as_str);
        let cells: Vec<Cell<'_>> = values.iter().map(cell).collect();
        let answered = connection.execute(TheirId(statement.0), &cells);
        let mut answer = answered.map_err(|error| error_context::on(text, refused(error)))?;
        let mut counts = Counts { rows: 0, changed: answer.changed() };
        while let Some(chunk) = answer.next_chunk() {
            for at in 0..chunk.rows() {
                row(Row::new(&ChunkRow { chunk: &chunk, row: at }))?;
            }
            counts.rows += chunk.rows() as u64;
        }
        Ok(counts)
    }

    fn begin(&mut self) -> Result<(), SessionError> {
        self.command("begin transaction")
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        self.command("commit")
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        self.command("rollback")
    }
}

impl connector::Connection for Connection {
    fn version(&mut self) -> Result<String, SessionError> {
        Ok(self.first_row("select version()")?.concat())
    }

    fn plan(&mut self, text: &str, how: Explain) -> Result<PlanText, SessionError> {
        Ok(PlanText::new(Planner::Duckdb, self.explain(text, how)?))
    }

    /// All of it or nothing.
    fn fill_table(
        &mut self,
        table: &Table,
        row_source: RowSource<'_>,
    ) -> Result<u64, SessionError> {
        self.begin()?;
        match self.append(table, row_source) {
            Ok(rows) => self.commit().map(|()| rows),
            Err(error) => {
                // The first error says more than one of the rollback.
                let _ = self.rollback();
                Err(error)
            }
        }
    }

    fn analyse_table(&mut self, table: &str) -> Result<(), SessionError> {
        self.run(&format!("analyze {table}"))
    }

    fn cancel(&self) -> Cancel {
        let interrupter = self.connection.interrupter();
        Arc::new(move || interrupter.interrupt())
    }
}

impl Connector for Database {
    fn open(&self) -> Result<Box<dyn connector::Connection>, SessionError> {
        Ok(Box::new(Connection::open(self)?))
    }
}
