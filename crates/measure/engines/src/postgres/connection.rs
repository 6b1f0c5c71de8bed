//! One client's connection to PostgreSQL: a thin blocking client, because its cost is in every
//! measurement.
//!
//! ```text
//! prepare  Parse, Describe, Sync           ─► types of values and columns, kept
//! execute  Bind, Execute, Sync in one write ─► rows …, count, ready
//! run      Query                            ─► as many answers as the text has statements
//! ```
//!
//! After an error the server skips to the Sync, so every exchange is read to ReadyForQuery and the
//! connection is good for the next (manual, "Frontend/Backend Protocol: Message Flow").

use postgres_protocol::message::{backend, frontend};
use workahead_workloads::session::{
    Counts, Dialect, OnRow, Row, Session, SessionError, StatementId, Value,
};

use super::login::{Key, login};
use super::statement::{Cell, PreparedStatement, parse, texts};
use super::wire::{Message, Wire, garbled};
use super::{copy, encryption, refusal};
use crate::address::Address;
use crate::bounded_texts::BoundedTexts;
use crate::error_context;
use crate::stream::{Patience, despite_interruption};

/// A connection.
pub struct Connection {
    wire: Wire,
    address: Address,
    key: Key,
    statements: Vec<PreparedStatement>,
    cells: Vec<Cell>,
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// [`SessionError::Gone`] when nothing answers or the server is not ready, otherwise
    /// [`SessionError::Failed`] with what the server says.
    pub fn open(address: &Address) -> Result<Connection, SessionError> {
        let mut connection = Connection::open_briefly(address)?;
        connection.lift_limit();
        Ok(connection)
    }

    /// The same, with a time limit for the login and all that follows, until it is lifted.
    pub(crate) fn open_briefly(address: &Address) -> Result<Connection, SessionError> {
        let mut wire = Wire::new(encryption::dial(address)?);
        let key = login(&mut wire, address)?;
        let (address, statements, cells) = (address.clone(), Vec::new(), Vec::new());
        Ok(Connection { wire, address, key, statements, cells })
    }

    /// Waits for the answers that follow without a limit, as statements need it.
    pub(crate) fn lift_limit(&mut self) {
        self.wire.set_patience(Patience::Endless);
    }

    /// Runs a text of any number of statements, and passes all their rows to `row`, every value as
    /// text. Returns the number of rows.
    ///
    /// # Errors
    /// See [`SessionError`]; the statements after one that fails are not run.
    pub fn query_text(&mut self, text: &str, row: OnRow<'_>) -> Result<u64, SessionError> {
        self.query_text_unnamed(text, row).map_err(|error| error_context::on(text, error))
    }

    fn query_text_unnamed(&mut self, text: &str, row: OnRow<'_>) -> Result<u64, SessionError> {
        self.wire.say(|out| frontend::query(text, out))?;
        self.wire.send()?;
        let mut answer = Answer::default();
        loop {
            let message = self.wire.receive()?;
            match message.tag {
                backend::DATA_ROW_TAG => {
                    answer.rows += 1;
                    if answer.error.is_none() {
                        let fields = texts(message, &mut self.cells)?;
                        answer.keep_row(row(Row::new(&fields)))?;
                    }
                }
                backend::COPY_IN_RESPONSE_TAG => copy::decline(&mut self.wire)?,
                backend::COPY_DATA_TAG
                | backend::COPY_DONE_TAG
                | backend::COPY_OUT_RESPONSE_TAG
                | backend::ROW_DESCRIPTION_TAG
                | backend::EMPTY_QUERY_RESPONSE_TAG => {}
                _ if answer.take(message)? => return answer.end(),
                _ => {}
            }
        }
    }

    /// The values of the first column, as text.
    ///
    /// # Errors
    /// As [`query_text`](Self::query_text).
    pub fn texts(&mut self, text: &str) -> Result<Vec<String>, SessionError> {
        let mut all = BoundedTexts::default();
        self.query_text(text, &mut |row| all.push(row.text(0)?))?;
        Ok(all.texts)
    }

    /// Cancels this connection's statement from another thread.
    pub fn canceller(&self) -> Canceller {
        Canceller { address: self.address.clone(), key: self.key }
    }

    pub(super) fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    fn prepared(&self, statement: StatementId) -> Result<&PreparedStatement, SessionError> {
        self.statements
            .get(statement.0 as usize)
            .ok_or_else(|| error_context::unprepared(statement))
    }

    /// Sends a bound statement and reads its answer.
    fn exchange_unnamed(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        row: OnRow<'_>,
    ) -> Result<Answer, SessionError> {
        let Self { wire, statements, cells, .. } = self;
        let prepared = &statements[statement.0 as usize];
        prepared.bind(values, &mut wire.out)?;
        wire.say(|out| {
            frontend::execute("", 0, out)?;
            frontend::sync(out);
            Ok(())
        })?;
        wire.send()?;
        let mut answer = Answer::default();
        loop {
            let message = wire.receive()?;
            match message.tag {
                backend::BIND_COMPLETE_TAG => {}
                backend::DATA_ROW_TAG => {
                    answer.rows += 1;
                    if answer.error.is_none() {
                        let fields = prepared.row(message, cells)?;
                        answer.keep_row(row(Row::new(&fields)))?;
                    }
                }
                backend::EMPTY_QUERY_RESPONSE_TAG => {}
                _ if answer.take(message)? => return Ok(answer),
                _ => {}
            }
        }
    }

    /// A transaction statement, of which only the count is used.
    fn command(&mut self, text: &str) -> Result<Answer, SessionError> {
        self.wire.say(|out| frontend::query(text, out))?;
        self.wire.send()?;
        let mut answer = Answer::default();
        while !answer.take(self.wire.receive()?)? {}
        Ok(answer)
    }

    fn describe(&mut self, prepared: &mut PreparedStatement) -> Result<(), SessionError> {
        let mut answer = Answer::default();
        loop {
            let message = self.wire.receive()?;
            let taken = match message.tag {
                backend::PARAMETER_DESCRIPTION_TAG | backend::ROW_DESCRIPTION_TAG => {
                    match parse(message)? {
                        backend::Message::ParameterDescription(body) => prepared.take_values(&body),
                        backend::Message::RowDescription(body) => prepared.take_columns(&body),
                        _ => Ok(()),
                    }
                }
                backend::PARSE_COMPLETE_TAG | backend::NO_DATA_TAG => Ok(()),
                _ if answer.take(message)? => return answer.end().map(drop),
                _ => Ok(()),
            };
            taken.map_err(|error| garbled(&error))?;
        }
    }
}

impl Session for Connection {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn run(&mut self, text: &str) -> Result<(), SessionError> {
        self.query_text(text, &mut |_| Ok(())).map(drop)
    }

    fn prepare(&mut self, text: &str) -> Result<StatementId, SessionError> {
        let number = self.statements.len();
        let mut prepared = PreparedStatement::new(statement_name(number), text.to_owned());
        self.wire.say(|out| {
            frontend::parse(&prepared.name, text, [], out)?;
            frontend::describe(b'S', &prepared.name, out)?;
            frontend::sync(out);
            Ok(())
        })?;
        self.wire.send()?;
        self.describe(&mut prepared).map_err(|error| error_context::on(text, error))?;
        self.statements.push(prepared);
        Ok(StatementId(number as u32))
    }

    fn exchange(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        row: OnRow<'_>,
    ) -> Result<Counts, SessionError> {
        self.prepared(statement)?;
        let exchanged = self.exchange_unnamed(statement, values, row).and_then(|answer| {
            let changed = answer.changed;
            Ok(Counts { rows: answer.end()?, changed })
        });
        exchanged
            .map_err(|error| error_context::on(&self.statements[statement.0 as usize].text, error))
    }

    fn begin(&mut self) -> Result<(), SessionError> {
        self.command("BEGIN")?.end().map(drop)
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        let answer = self.command("COMMIT")?;
        let undone = answer.rolled_back;
        answer.end()?;
        if undone {
            // The server answers the commit of a failed transaction with ROLLBACK, not with an
            // error.
            let says = "a statement had failed, so the transaction was rolled back";
            return Err(SessionError::Failed(says.to_owned()));
        }
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        self.command("ROLLBACK")?.end().map(drop)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.wire.out.clear();
        frontend::terminate(&mut self.wire.out);
        // A server that is gone, or reads nothing, needs no Terminate.
        self.wire.set_patience(Patience::exhausted());
        let _ = self.wire.send();
    }
}

/// The server's name of a statement.
pub(super) fn statement_name(number: usize) -> String {
    format!("s{number}")
}

/// The answer of an exchange so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    rows: u64,
    /// Rows that the last statement counted.
    pub(super) changed: u64,
    rolled_back: bool,
    error: Option<SessionError>,
}

impl Answer {
    /// Takes the messages common to all exchanges; true when the server is ready for the next.
    pub(super) fn take(&mut self, message: Message<'_>) -> Result<bool, SessionError> {
        match message.tag {
            backend::READY_FOR_QUERY_TAG => return Ok(true),
            backend::COMMAND_COMPLETE_TAG => {
                let tag = message.body().strip_suffix(&[0]).unwrap_or_default();
                self.changed = count(tag);
                self.rolled_back = tag == b"ROLLBACK";
            }
            backend::ERROR_RESPONSE_TAG => {
                let error = refusal::read(message);
                if let SessionError::Gone(_) = error {
                    return Err(error);
                }
                self.keep(Err(error));
            }
            backend::NOTICE_RESPONSE_TAG
            | backend::NOTIFICATION_RESPONSE_TAG
            | backend::PARAMETER_STATUS_TAG => {}
            tag => return Err(garbled(&format!("`{}` out of turn", char::from(tag)))),
        }
        Ok(false)
    }

    /// As [`keep`](Self::keep), but for an error after which the connection is of no use: the rest
    /// of the answer may have no end.
    fn keep_row(&mut self, result: Result<(), SessionError>) -> Result<(), SessionError> {
        if let Err(SessionError::Gone(_)) = result {
            return result;
        }
        self.keep(result);
        Ok(())
    }

    /// Keeps the first error: later ones follow from it.
    fn keep(&mut self, result: Result<(), SessionError>) {
        if let (None, Err(error)) = (&self.error, result) {
            self.error = Some(error);
        }
    }

    /// Its rows, or its error.
    pub(super) fn end(self) -> Result<u64, SessionError> {
        self.error.map_or(Ok(self.rows), Err)
    }
}

/// The last word of `INSERT 0 5`, `UPDATE 3`, `COPY 10`; `BEGIN` counts nothing.
fn count(tag: &[u8]) -> u64 {
    let last = tag.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    std::str::from_utf8(last).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

pub(super) fn failed(error: &dyn std::fmt::Display) -> SessionError {
    SessionError::Failed(error.to_string())
}

/// Cancels the statement that a connection runs at that moment.
#[derive(Debug, Clone)]
pub struct Canceller {
    address: Address,
    key: Key,
}

impl Canceller {
    /// Requests the cancellation; the connection's statement then fails with SQLSTATE 57014.
    pub fn cancel(&self) {
        despite_interruption(|| {
            let Ok(mut stream) = encryption::dial(&self.address) else { return };
            let mut request = bytes::BytesMut::new();
            frontend::cancel_request(self.key.process_id, self.key.secret, &mut request);
            // There is no answer to it: once the server has passed it on, it closes the connection.
            if stream.send(&request).is_ok() {
                let _ = stream.peek(1);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_last_word() {
        for (tag, rows) in [("INSERT 0 5", 5), ("UPDATE 3", 3), ("BEGIN", 0), ("", 0)] {
            assert_eq!(count(tag.as_bytes()), rows, "{tag}");
        }
    }
}
