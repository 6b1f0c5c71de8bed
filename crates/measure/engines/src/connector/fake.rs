//! A connection to no server, for tests: every statement succeeds, but for one that only ends when
//! it is cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use workahead_study::engine::Stop;
use workahead_study::plans::{PlanText, Planner};
use workahead_workloads::client::Table;
use workahead_workloads::session::{
    Counts, Dialect, OnRow, Session, SessionError, StatementId, Value,
};

use super::{Cancel, Connection, Connector, RowSource};
use crate::server::Explain;

#[derive(Default, Clone)]
pub(crate) struct Fake {
    /// How often a statement was cancelled.
    pub(crate) cancelled: Arc<AtomicU32>,
    /// The statement that has no end, and the run that is stopped once it has begun.
    held: Option<(String, Stop)>,
}

impl Fake {
    /// One whose statement of this text has no end: `rows of TABLE` fills a table, `analyse TABLE`
    /// gathers its statistics.
    pub(crate) fn holding(text: &str, stop: &Stop) -> Self {
        Self { held: Some((text.to_owned(), stop.clone())), ..Self::default() }
    }
}

impl Connector for Fake {
    fn open(&self) -> Result<Box<dyn Connection>, SessionError> {
        Ok(Box::new(self.clone()))
    }
}

impl Connection for Fake {
    fn version(&mut self) -> Result<String, SessionError> {
        Ok("none".to_owned())
    }
    fn plan(&mut self, _: &str, _: Explain) -> Result<PlanText, SessionError> {
        Ok(PlanText::new(Planner::Postgres, String::new()))
    }
    fn fill_table(&mut self, table: &Table, rows: RowSource<'_>) -> Result<u64, SessionError> {
        let mut filled = 0;
        rows(&mut |_| {
            filled += 1;
            Ok(())
        })?;
        self.run(&format!("rows of {}", table.name)).map(|()| filled)
    }
    fn analyse_table(&mut self, table: &str) -> Result<(), SessionError> {
        self.run(&format!("analyse {table}"))
    }
    fn cancel(&self) -> Cancel {
        let cancelled = Arc::clone(&self.cancelled);
        Arc::new(move || {
            cancelled.fetch_add(1, Ordering::Relaxed);
        })
    }
}

impl Session for Fake {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }
    fn run(&mut self, text: &str) -> Result<(), SessionError> {
        match &self.held {
            Some((held, stop)) if held == text => stop.request(),
            _ => return Ok(()),
        }
        while self.cancelled.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(SessionError::Failed("cancelled".to_owned()))
    }
    fn prepare(&mut self, _: &str) -> Result<StatementId, SessionError> {
        Ok(StatementId(0))
    }
    fn exchange(
        &mut self,
        _: StatementId,
        _: &[Value<'_>],
        _: OnRow<'_>,
    ) -> Result<Counts, SessionError> {
        Ok(Counts::default())
    }
    fn begin(&mut self) -> Result<(), SessionError> {
        Ok(())
    }
    fn commit(&mut self) -> Result<(), SessionError> {
        Ok(())
    }
    fn rollback(&mut self) -> Result<(), SessionError> {
        Ok(())
    }
}
