//! DataFusion, in this process: its sessions as those of workloads.
//!
//! It has no server, no transactions and no values in statements: values are written into a kept
//! text, and changes of rows take effect at once. Tables are Parquet files, or are in memory where
//! they began without rows, as those that answers are stored in.

mod columns;
mod literal;
mod row;
mod store;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use workahead_sql::session::{Session as Engine, SessionError as Refusal};
use workahead_study::plans::{PlanText, Planner};
use workahead_workloads::client::Table;
use workahead_workloads::session::{
    Counts, Dialect, OnRow, Row, Session, SessionError, StatementId, Value,
};

use crate::connector::{self, Cancel, Connector, RowSource};
use crate::error_context;
use crate::server::Explain;
use row::BatchRow;
pub(crate) use store::THREADS;
pub use store::{Store, open};

/// A session that any number of connections share, as they share its threads, and where its files
/// are.
#[derive(Clone)]
pub struct Database {
    engine: Arc<Engine>,
    store: Store,
}

/// A connection. Its settings apply to all connections.
pub struct Connection {
    database: Database,
    texts: Vec<String>,
    /// The session needs a static flag: each connection leaks a byte.
    stop: &'static AtomicBool,
}

/// A refusal as a session's error.
pub(crate) fn refused(refusal: Refusal) -> SessionError {
    let says = refusal.to_string();
    SessionError::Failed(says.split_whitespace().collect::<Vec<_>>().join(" "))
}

impl Connection {
    fn open(database: Database) -> Connection {
        Connection {
            database,
            texts: Vec::new(),
            stop: Box::leak(Box::new(AtomicBool::new(false))),
        }
    }

    /// Runs a text of any number of statements. Returns the number of rows.
    fn query_text(&mut self, text: &str, row: OnRow<'_>) -> Result<u64, SessionError> {
        self.stop.store(false, Ordering::Relaxed);
        let mut rows = 0;
        let engine = &self.database.engine;
        for statement in engine.statements(text, self.stop).map_err(refused)? {
            let mut answer = engine.run(&statement, self.stop).map_err(refused)?;
            while let Some(batch) = answer.next_batch().map_err(refused)? {
                for at in 0..batch.num_rows() {
                    row(Row::new(&BatchRow { batch: &batch, row: at }))?;
                }
                rows += batch.num_rows() as u64;
            }
        }
        Ok(rows)
    }

    /// The texts of a column of the result of a text.
    fn texts(&mut self, text: &str, column: usize) -> Result<Vec<String>, SessionError> {
        let mut all = Vec::new();
        let result = self.query_text(text, &mut |row| {
            all.push(row.text(column)?.to_owned());
            Ok(())
        });
        result.map(|_| all).map_err(|error| error_context::on(text, error))
    }
}

impl Session for Connection {
    fn dialect(&self) -> Dialect {
        Dialect::DataFusion
    }

    fn run(&mut self, text: &str) -> Result<(), SessionError> {
        let ran = self.query_text(text, &mut |_| Ok(()));
        ran.map(drop).map_err(|error| error_context::on(text, error))
    }

    /// Its names are looked up when it is run.
    fn prepare(&mut self, text: &str) -> Result<StatementId, SessionError> {
        let read = self.database.engine.statements(text, self.stop).map_err(refused);
        read.map_err(|error| error_context::on(text, error))?;
        self.texts.push(text.to_owned());
        Ok(StatementId(self.texts.len() as u32 - 1))
    }

    fn exchange(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        row: OnRow<'_>,
    ) -> Result<Counts, SessionError> {
        let text = self.texts.get(statement.0 as usize);
        let text = text.ok_or_else(|| error_context::unprepared(statement))?;
        let text = literal::filled(text, values)?;
        let rows = self.query_text(&text, row).map_err(|error| error_context::on(&text, error))?;
        Ok(Counts { rows, changed: 0 })
    }

    fn execute(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, SessionError> {
        let mut changed = 0;
        // A statement that changes rows answers with their number.
        self.exchange(statement, values, &mut |row| {
            changed += row.int(0)?.unsigned_abs();
            Ok(())
        })?;
        Ok(changed)
    }

    fn begin(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        Err(SessionError::Failed("DataFusion has no rollback".to_owned()))
    }
}

impl connector::Connection for Connection {
    fn version(&mut self) -> Result<String, SessionError> {
        Ok(self.texts("select version()", 0)?.concat())
    }

    fn plan(&mut self, text: &str, how: Explain) -> Result<PlanText, SessionError> {
        let explain = match how {
            Explain::Planned => "explain format indent",
            Explain::Run => "explain analyze",
        };
        // Kinds of plans, the logical ones first.
        let plans = self.texts(&format!("{explain} {text}"), 1)?;
        let none = || SessionError::Failed(format!("there is no plan of `{text}`"));
        let text = plans.into_iter().next_back().ok_or_else(none)?;
        Ok(PlanText::new(Planner::Datafusion, text))
    }

    fn fill_table(
        &mut self,
        table: &Table,
        row_source: RowSource<'_>,
    ) -> Result<u64, SessionError> {
        let engine = Arc::clone(&self.database.engine);
        let schema = {
            let text = format!("select * from {}", table.name);
            let statements = engine.statements(&text, self.stop).map_err(refused)?;
            let Some(statement) = statements.first() else { unreachable!("one was written") };
            engine.run(statement, self.stop).map_err(refused)?.schema()
        };
        let rows = self.database.store.write(table, &schema, row_source)?;
        if rows > 0 {
            self.run(&format!("drop table {}", table.name))?;
            self.database.store.register(&engine, &table.name)?;
        }
        Ok(rows)
    }

    /// Parquet files have statistics of their own.
    fn analyse_table(&mut self, _table: &str) -> Result<(), SessionError> {
        Ok(())
    }

    fn cancel(&self) -> Cancel {
        let stop = self.stop;
        Arc::new(move || stop.store(true, Ordering::Relaxed))
    }
}

impl Connector for Database {
    fn open(&self) -> Result<Box<dyn connector::Connection>, SessionError> {
        Ok(Box::new(Connection::open(self.clone())))
    }
}
