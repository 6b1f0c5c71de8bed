//! A text of SQL, planned, and run while its rows are read.

use std::num::NonZero;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use _workahead::errors::Error;
use _workahead::running::{Driver, Work};
use arrow_schema::SchemaRef;
use serde_json::json;
use workahead_sql::session::{Answer, Joiner, PlannedStatement, Session};

use crate::tables::Table;
use crate::{Options, exception};

/// Batches that wait for a reader.
const WAITING: usize = 4;
/// How often the driver looks whether the reader was closed.
const TICK: Duration = Duration::from_millis(20);
/// A query is stopped by dropping it, never by this flag.
static NEVER_STOP: AtomicBool = AtomicBool::new(false);

/// A query whose rows are computed while they are read.
pub(crate) struct Query {
    planned: PlannedStatement,
}

impl Query {
    /// Runs all statements but the last one, whose rows are the result.
    pub(crate) fn plan(text: &str, tables: Vec<Table>, options: Options) -> Result<Self, Error> {
        let threads = options.threads.and_then(NonZero::new);
        let available = || std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
        let options = workahead_sql::session::Options {
            joiner: if options.stock { Joiner::Stock } else { Joiner::Ours },
            threads: threads.unwrap_or_else(available),
            memory_limit: options.memory_limit,
            spill_directory: options.spill_dir,
        };
        let session = Session::new(&options).map_err(exception)?;
        tables.into_iter().try_for_each(|table| table.register(&session))?;
        let mut statements = session.statements(text).map_err(exception)?;
        let last = statements.pop();
        let Some(last) = last else {
            return Err(Error::WrongUse("there is no statement to run".to_owned()));
        };
        for statement in &statements {
            let mut answer = session.run(statement, &NEVER_STOP).map_err(exception)?;
            while answer.next_batch().map_err(exception)?.is_some() {}
        }
        Ok(Self { planned: session.plan(&last).map_err(exception)? })
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.planned.schema()
    }

    /// The rows as work for a driver.
    pub(crate) fn work(self) -> Work {
        Work { waiting: WAITING, run: Box::new(move |driver| give(self.planned, driver)) }
    }
}

fn give(planned: PlannedStatement, driver: &Driver) -> Result<(), Error> {
    let mut answer = planned.start(&NEVER_STOP).map_err(exception)?;
    let mut rows = 0;
    note(&answer, rows, driver);
    while !driver.is_stopped() {
        let Some(next) = answer.next_within(TICK) else { continue };
        let Some(batch) = next.map_err(exception)? else { break };
        if batch.num_rows() > 0 {
            rows += batch.num_rows();
            driver.send(batch)?;
        }
    }
    note(&answer, rows, driver);
    Ok(())
}

/// Under the names that `workahead sql --json` gives them.
fn note(answer: &Answer, rows: usize, driver: &Driver) {
    let joins = answer.joins();
    let facts = json!({
        "rows": rows,
        "joins": joins.ours,
        "joins_left_to_datafusion": joins.stock,
        "joins_spilled": joins.spilled,
        "spill_files": joins.spill_files,
        "spilled_bytes": joins.spilled_bytes,
    });
    driver.notes().set(facts.to_string());
}
