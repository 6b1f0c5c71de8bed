//! A client that asks one query again and again.

use super::{Answer, Dbmbench, Form, Query, Range, data, pinning, texts};
use crate::client::{AttemptResult, Client, Next};
use crate::random::Random;
use crate::session::{Session, SessionError, StatementId, Value};

pub(super) struct OneQuery {
    workload: Dbmbench,
    random: Random,
    statement: Option<StatementId>,
    request: Option<Request>,
}

/// A query to ask, and what it must answer. Kept for as long as the bounds stay the same.
#[derive(Clone, Copy)]
struct Request {
    range: Range,
    expected: Answer,
}

impl OneQuery {
    pub(super) fn new(workload: Dbmbench, number: u32) -> Self {
        let random = Random::new(workload.options.seed, data::CLIENTS, number);
        Self { workload, random, statement: None, request: None }
    }

    fn request(&mut self, range: Range) -> Request {
        if let Some(request) = self.request.filter(|request| request.range == range) {
            return request;
        }
        let expected = self.workload.answers().of_query(self.workload.options.query, range);
        Request { range, expected }
    }
}

impl Client for OneQuery {
    fn connected(&mut self, session: &mut dyn Session) -> Result<(), SessionError> {
        let (dialect, options) = (session.dialect(), &self.workload.options);
        for setting in pinning(dialect, options.query, options.plan)?.settings {
            session.run(setting)?;
        }
        let text = dialect.placeholders(&texts::query(dialect, options));
        self.statement = Some(session.prepare(&text)?);
        Ok(())
    }

    fn next(&mut self) -> Next {
        let range = self.workload.range(&mut self.random);
        self.request = Some(self.request(range));
        Next::at_once(0)
    }

    fn attempt(&mut self, session: &mut dyn Session) -> Result<AttemptResult, SessionError> {
        let (Some(statement), Some(Request { range, expected })) = (self.statement, self.request)
        else {
            return Err(SessionError::Failed("a client must connect and draw first".to_owned()));
        };
        let query = self.workload.options.query;
        let selected = self.workload.answers().selected(range);
        match self.workload.options.form {
            Form::ToClient => {
                let answer = ask(session, statement, query, range)?;
                if !answer.agrees(&expected) {
                    let (Range { low, high }, name) = (range, query.name());
                    return Err(SessionError::Failed(format!(
                        "{name} between {low} and {high} answered {answer:?}, not {expected:?}"
                    )));
                }
            }
            Form::IntoResult => store(&self.workload, session, statement, (range, expected))?,
        }
        let mut stored = self.workload.stored();
        stored.queries += 1;
        stored.selected += selected;
        let (rows, checksum) = (expected.rows, expected.checksum);
        Ok(AttemptResult { rows, checksum, statements: 1, rolled_back: false })
    }
}

/// Asks and reads the answer.
pub(super) fn ask(
    session: &mut dyn Session,
    statement: StatementId,
    query: Query,
    range: Range,
) -> Result<Answer, SessionError> {
    let mut answer = Answer::empty();
    let values = [range.low, range.high].map(|bound| Value::Int(i64::from(bound)));
    session.query(statement, &values, &mut |row| {
        match query {
            Query::Utpcc | Query::Unj => answer = Answer::average(row.real(0)?),
            Query::Uss => answer.push(row.int(0)?.unsigned_abs()),
        }
        Ok(())
    })?;
    Ok(answer)
}

/// Lets the server store the answer, and remembers what must be there now.
fn store(
    workload: &Dbmbench,
    session: &mut dyn Session,
    statement: StatementId,
    (range, expected): (Range, Answer),
) -> Result<(), SessionError> {
    let values = [range.low, range.high].map(|bound| Value::Int(i64::from(bound)));
    let written = session.execute(statement, &values);
    let mut stored = workload.stored();
    match written {
        Ok(rows) if rows == expected.rows => {
            stored.rows += rows;
            stored.sum += expected.sum;
            Ok(())
        }
        Ok(rows) => Err(SessionError::Failed(format!(
            "{} stored {rows} rows where {} are right",
            workload.options.query.name(),
            expected.rows,
        ))),
        Err(error) => {
            if matches!(error, SessionError::Gone(_)) {
                stored.unsure += expected.rows;
            }
            Err(error)
        }
    }
}
