//! A planned query, which runs while its rows are read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use _workahead::driver::{Driver, Work};
use _workahead::errors::Error;
use _workahead::resources;
use arrow_schema::SchemaRef;
use serde_json::json;
use workahead_sql::session::{Answer, Joiner, PlannedStatement, Session};

use crate::tables::Table;
use crate::{Options, exception};

/// Batches that are queued for the reader.
const QUEUED: usize = 4;
/// The interval at which the driver checks whether the reader was closed.
pub(crate) const TICK: Duration = Duration::from_millis(20);
/// A query is stopped by dropping it and not by this flag.
static NEVER_STOP: AtomicBool = AtomicBool::new(false);

/// A query whose rows are computed while they are read.
pub(crate) struct Query {
    planned: PlannedStatement,
}

impl Query {
    /// Runs all statements but the last one, whose rows are the result, until `stop` is set.
    pub(crate) fn plan(
        text: &str,
        tables: Vec<Table>,
        options: Options,
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        // Without a limit nothing is spilled.
        let spill_directory = match options.memory_limit {
            Some(_) => Some(resources::spill_directory(options.spill_dir)?),
            None => options.spill_dir,
        };
        let options = workahead_sql::session::Options {
            joiner: if options.stock { Joiner::Stock } else { Joiner::Ours },
            threads: resources::threads(options.threads)?,
            memory_limit: options.memory_limit,
            spill_directory,
        };
        let session = Session::new(&options).map_err(exception)?;
        tables.into_iter().try_for_each(|table| table.register(&session, stop))?;
        let mut statements = session.statements(text, stop).map_err(exception)?;
        let last = statements.pop();
        let Some(last) = last else {
            return Err(Error::WrongUse("no statement to run".to_owned()));
        };
        for statement in &statements {
            let planned = session.plan(statement, stop).map_err(exception)?;
            let mut answer = planned.start(&NEVER_STOP).map_err(exception)?;
            while !stop.load(Ordering::Relaxed) {
                let Some(next) = answer.next_within(TICK) else { continue };
                if next.map_err(exception)?.is_none() {
                    break;
                }
            }
        }
        Ok(Self { planned: session.plan(&last, stop).map_err(exception)? })
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.planned.schema()
    }

    /// The rows as work for a driver.
    pub(crate) fn work(self) -> Work {
        Work { queued: QUEUED, run: Box::new(move |driver| send_rows(self.planned, driver)) }
    }
}

fn send_rows(planned: PlannedStatement, driver: &Driver) -> Result<(), Error> {
    let mut answer = planned.start(&NEVER_STOP).map_err(exception)?;
    let mut rows = 0;
    set_facts(&answer, rows, driver);
    while !driver.is_stopped() {
        let Some(next) = answer.next_within(TICK) else { continue };
        let Some(batch) = next.map_err(exception)? else { break };
        if batch.num_rows() > 0 {
            rows += batch.num_rows();
            driver.send(batch)?;
        }
    }
    set_facts(&answer, rows, driver);
    Ok(())
}

/// Updates the facts, with the names of `workahead sql --json`.
fn set_facts(answer: &Answer, rows: usize, driver: &Driver) {
    let joins = answer.joins();
    let facts = json!({
        "rows": rows,
        "joins": joins.ours,
        "joins_left_to_datafusion": joins.stock,
        "joins_spilled": joins.spilled,
        "spill_files": joins.spill_files,
        "spilled_bytes": joins.spilled_bytes,
    });
    driver.facts().set(facts.to_string());
}
