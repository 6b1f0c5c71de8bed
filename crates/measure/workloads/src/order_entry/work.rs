//! A transaction under way: its session, its statements, and counts of what it did.

use super::statements::{Ask, PreparedStatements};
use crate::session::{
    AnswerLimit, Row, Session, SessionError, StatementId, Value, first, rows_within,
};

/// A district has 3,000 customers, an order fifteen lines.
const LIMIT: AnswerLimit = AnswerLimit { rows: 3_000, bytes: 1 << 20 };

pub(super) struct Work<'a> {
    pub(super) session: &'a mut dyn Session,
    pub(super) prepared: &'a PreparedStatements,
    pub(super) rows: u64,
    pub(super) statements: u32,
}

impl<'a> Work<'a> {
    pub(super) fn new(session: &'a mut dyn Session, prepared: &'a PreparedStatements) -> Self {
        Self { session, prepared, rows: 0, statements: 0 }
    }

    /// The row that must be there.
    pub(super) fn one<T>(
        &mut self,
        ask: Ask,
        values: &[Value<'_>],
        take: impl FnMut(Row<'_>) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        let found = self.maybe(self.prepared.ask(ask), values, take)?;
        found.ok_or_else(|| SessionError::Failed(format!("{ask:?} found no row for {values:?}")))
    }

    /// The first row, if there is one.
    pub(super) fn maybe<T>(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        take: impl FnMut(Row<'_>) -> Result<T, SessionError>,
    ) -> Result<Option<T>, SessionError> {
        self.statements += 1;
        let found = first(self.session, statement, values, take)?;
        self.rows += u64::from(found.is_some());
        Ok(found)
    }

    /// The values that `take` makes of the rows.
    pub(super) fn all<T>(
        &mut self,
        ask: Ask,
        values: &[Value<'_>],
        take: impl FnMut(Row<'_>) -> Result<T, SessionError>,
    ) -> Result<Vec<T>, SessionError> {
        self.statements += 1;
        let taken = rows_within(self.session, self.prepared.ask(ask), values, LIMIT, take)?;
        self.rows += taken.len() as u64;
        Ok(taken)
    }

    /// Changes exactly one row.
    pub(super) fn change(&mut self, ask: Ask, values: &[Value<'_>]) -> Result<(), SessionError> {
        match self.change_any(ask, values)? {
            1 => Ok(()),
            rows => Err(SessionError::Failed(format!(
                "{ask:?} changed {rows} rows where one is right, for {values:?}"
            ))),
        }
    }

    /// Changes rows; how many.
    pub(super) fn change_any(
        &mut self,
        ask: Ask,
        values: &[Value<'_>],
    ) -> Result<u64, SessionError> {
        self.statements += 1;
        let rows = self.session.execute(self.prepared.ask(ask), values)?;
        self.rows += rows;
        Ok(rows)
    }
}

/// Numbers as values.
pub(super) fn ints<const N: usize>(numbers: [u32; N]) -> [Value<'static>; N] {
    numbers.map(|number| Value::Int(i64::from(number)))
}
