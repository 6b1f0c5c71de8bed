//! A session for tests that records statements and answers what the test says.

use super::{Columns, Counts, Dialect, OnRow, Row, Session, SessionError, StatementId, Value};

/// A request that a session executed, with the values as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    Run(String),
    Prepare(String),
    Statement(String, Vec<String>),
    Begin,
    Commit,
    Rollback,
}

/// The answer of a statement: its rows, or why not. Statements that change rows change as many.
pub(crate) type Response = Result<Vec<Vec<Value<'static>>>, SessionError>;

/// The session.
pub(crate) struct Recorder {
    dialect: Dialect,
    pub(crate) log: Vec<Request>,
    texts: Vec<String>,
    answer: Box<dyn FnMut(&Request) -> Response + Send>,
}

impl Recorder {
    pub(crate) fn new(
        dialect: Dialect,
        answer: impl FnMut(&Request) -> Response + Send + 'static,
    ) -> Self {
        Self { dialect, log: Vec::new(), texts: Vec::new(), answer: Box::new(answer) }
    }

    fn record(&mut self, request: Request) -> Response {
        let response = (self.answer)(&request);
        self.log.push(request);
        response
    }

    fn statement(&mut self, statement: StatementId, values: &[Value<'_>]) -> Response {
        let text = self.texts[statement.0 as usize].clone();
        let values = values.iter().map(|value| format!("{value:?}")).collect();
        self.record(Request::Statement(text, values))
    }
}

impl Session for Recorder {
    fn dialect(&self) -> Dialect {
        self.dialect
    }
    fn run(&mut self, text: &str) -> Result<(), SessionError> {
        self.record(Request::Run(text.to_owned())).map(drop)
    }
    fn prepare(&mut self, text: &str) -> Result<StatementId, SessionError> {
        self.record(Request::Prepare(text.to_owned()))?;
        self.texts.push(text.to_owned());
        Ok(StatementId(self.texts.len() as u32 - 1))
    }
    fn exchange(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        row: OnRow<'_>,
    ) -> Result<Counts, SessionError> {
        let rows = self.statement(statement, values)?;
        for values in &rows {
            let values: &[Value<'_>] = values;
            let columns: &dyn Columns = &values;
            row(Row::new(columns))?;
        }
        let rows = rows.len() as u64;
        Ok(Counts { rows, changed: rows })
    }
    fn begin(&mut self) -> Result<(), SessionError> {
        self.record(Request::Begin).map(drop)
    }
    fn commit(&mut self) -> Result<(), SessionError> {
        self.record(Request::Commit).map(drop)
    }
    fn rollback(&mut self) -> Result<(), SessionError> {
        self.record(Request::Rollback).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::super::transaction;
    use super::*;

    fn ends_of(failing: Option<Request>, error: SessionError) -> (Vec<Request>, bool) {
        let mut session = Recorder::new(Dialect::MariaDb, move |request| match &failing {
            Some(failing) if failing == request => Err(error.clone()),
            _ => Ok(Vec::new()),
        });
        let done = transaction(&mut session, |session| session.run("x")).is_ok();
        (session.log, done)
    }

    #[test]
    fn transactions_commit_or_roll_back() {
        let retry = || SessionError::Retry("deadlock".to_owned());
        let work = || Request::Run("x".to_owned());
        use Request::{Begin, Commit, Rollback};
        assert_eq!(ends_of(None, retry()), (vec![Begin, work(), Commit], true));
        assert_eq!(ends_of(Some(work()), retry()), (vec![Begin, work(), Rollback], false));
        let failed_commit = vec![Begin, work(), Commit, Rollback];
        assert_eq!(ends_of(Some(Commit), retry()), (failed_commit, false));
        let gone = SessionError::Gone("reset".to_owned());
        assert_eq!(ends_of(Some(work()), gone), (vec![Begin, work()], false));
    }
}
