//! A user's statements on data: another workload's, and what statements of the user's make.
//!
//! ```text
//! tables and rows of `data` ─► statements of `set_up` ─► clients run the file's
//! ```
//!
//! Statements that only read leave the data as it is; after others it is brought back by a copy.

use std::sync::Arc;

use super::SqlFile;
use crate::client::{Client, Condition, ExplainRequest, Moment, RowSink, Table, Workload};
use crate::session::{Dialect, Session, SessionError};

/// The workload.
#[derive(Clone)]
pub struct OnData {
    file: SqlFile,
    data: Option<Arc<dyn Workload>>,
    set_up: Arc<Vec<String>>,
}

impl OnData {
    /// Statements on the data of another workload, or on what `set_up` makes of an empty database.
    #[must_use]
    pub fn new(file: SqlFile, data: Option<Arc<dyn Workload>>, set_up: Option<&SqlFile>) -> Self {
        let statements = set_up.map(SqlFile::statements).unwrap_or_default();
        let set_up = statements.iter().map(|statement| statement.text.clone()).collect();
        Self { file, data, set_up: Arc::new(set_up) }
    }
}

impl Workload for OnData {
    fn name(&self) -> &'static str {
        self.file.name()
    }

    fn kinds(&self) -> Vec<String> {
        self.file.kinds()
    }

    fn tables(&self, dialect: Dialect) -> Result<Vec<Table>, SessionError> {
        self.data.as_ref().map_or(Ok(Vec::new()), |data| data.tables(dialect))
    }

    fn rows(&self, table: usize, sink: RowSink<'_>) -> Result<(), SessionError> {
        self.data.as_ref().map_or(Ok(()), |data| data.rows(table, sink))
    }

    fn set_up(&self, dialect: Dialect) -> Result<Vec<String>, SessionError> {
        let mut texts = match &self.data {
            Some(data) => data.set_up(dialect)?,
            None => Vec::new(),
        };
        texts.extend(self.set_up.iter().cloned());
        Ok(texts)
    }

    fn reset(&self, dialect: Dialect) -> Option<Vec<String>> {
        let of_data = self.data.as_ref().and_then(|data| data.reset(dialect));
        self.file.writing().is_none().then(|| of_data.unwrap_or_default())
    }

    fn client(&self, number: u32) -> Box<dyn Client> {
        self.file.client(number)
    }

    fn explained(&self, dialect: Dialect) -> Result<Vec<ExplainRequest>, SessionError> {
        self.file.explained(dialect)
    }

    fn check(
        &self,
        session: &mut dyn Session,
        when: Moment,
    ) -> Result<Vec<Condition>, SessionError> {
        let mut conditions = match (&self.data, when) {
            // Set-up may have changed the data already: only the size of the loaded data is known.
            (Some(data), Moment::Loaded) if self.set_up.is_empty() => data.check(session, when)?,
            _ => Vec::new(),
        };
        conditions.extend(self.file.check(session, when)?);
        Ok(conditions)
    }
}
