//! A session that only reads: every statement in a transaction of its own that the server keeps
//! from writing, and that is rolled back.
//!
//! ```text
//! prepare   check the text
//! exchange  BEGIN READ ONLY ─► statement ─► ROLLBACK     the outer two are not part of its time
//! begin … commit            ─► BEGIN READ ONLY … ROLLBACK
//! ```

use std::time::{Duration, Instant};

use workahead_statements::query::{self, Functions};
use workahead_study::plans::PlanText;
use workahead_workloads::client::Table;
use workahead_workloads::session::{
    Counts, Dialect, OnRow, Session, SessionError, StatementId, Value,
};

use crate::connector::{Cancel, Connection, RowSource};
use crate::server::Explain;

/// A connection of which only reading is left.
pub(super) struct ReadOnly {
    connection: Box<dyn Connection>,
    origin: Origin,
    /// Whether the client began a transaction itself.
    begun: bool,
    overhead: Duration,
}

/// Where its texts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// A user, a study: they are checked, and may call these functions.
    Outside(Functions),
    /// This crate.
    Ours,
}

impl ReadOnly {
    pub(super) fn new(connection: Box<dyn Connection>, origin: Origin) -> Self {
        Self { connection, origin, begun: false, overhead: Duration::ZERO }
    }

    /// The statement that the server is sent for a text.
    fn check(&self, text: &str) -> Result<String, SessionError> {
        let Origin::Outside(functions) = self.origin else { return Ok(text.to_owned()) };
        query::check(text, self.connection.dialect(), functions).map_err(|says| {
            SessionError::Failed(format!(
                "only queries run on a server that is not ours, and {says}: --allow-writes lets \
                 the run write"
            ))
        })
    }

    fn begin_reading(&mut self) -> Result<(), SessionError> {
        let text = match self.connection.dialect() {
            Dialect::MariaDb => "START TRANSACTION READ ONLY",
            _ => "BEGIN READ ONLY",
        };
        self.connection.run(text)
    }

    /// Runs `work` between the begin and the end of a transaction that reads.
    fn around<T>(
        &mut self,
        work: impl FnOnce(&mut dyn Connection) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        if self.begun {
            return work(self.connection.as_mut());
        }
        let before = Instant::now();
        self.begin_reading()?;
        self.overhead += before.elapsed();
        let done = work(self.connection.as_mut());
        if matches!(done, Err(SessionError::Gone(_))) {
            return done;
        }
        let after = Instant::now();
        let ended = self.connection.rollback();
        self.overhead += after.elapsed();
        let done = done?;
        ended.map(|()| done)
    }
}

fn refused() -> SessionError {
    SessionError::Failed("a session that only reads fills and analyses no table".to_owned())
}

impl Session for ReadOnly {
    fn dialect(&self) -> Dialect {
        self.connection.dialect()
    }

    /// As a prepared statement: a message with one cannot hold two.
    fn run(&mut self, text: &str) -> Result<(), SessionError> {
        let statement = self.prepare(text)?;
        self.exchange(statement, &[], &mut |_| Ok(())).map(drop)
    }

    fn prepare(&mut self, text: &str) -> Result<StatementId, SessionError> {
        let text = self.check(text)?;
        self.connection.prepare(&text)
    }

    fn exchange(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        row: OnRow<'_>,
    ) -> Result<Counts, SessionError> {
        self.around(|connection| connection.exchange(statement, values, row))
    }

    fn begin(&mut self) -> Result<(), SessionError> {
        self.begin_reading()?;
        self.begun = true;
        Ok(())
    }

    /// There is nothing to commit.
    fn commit(&mut self) -> Result<(), SessionError> {
        self.rollback()
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        self.begun = false;
        self.connection.rollback()
    }

    fn overhead(&self) -> Duration {
        self.overhead
    }
}

impl Connection for ReadOnly {
    fn version(&mut self) -> Result<String, SessionError> {
        self.connection.version()
    }

    fn plan(&mut self, text: &str, how: Explain) -> Result<PlanText, SessionError> {
        let text = self.check(text)?;
        self.around(|connection| connection.plan(&text, how))
    }

    fn fill_table(&mut self, _: &Table, _: RowSource<'_>) -> Result<u64, SessionError> {
        Err(refused())
    }

    fn analyse_table(&mut self, _: &str) -> Result<(), SessionError> {
        Err(refused())
    }

    fn cancel(&self) -> Cancel {
        self.connection.cancel()
    }

    fn limit_answers(&mut self) {
        self.connection.limit_answers();
    }
}
