//! Many rows at once: `COPY … FROM STDIN`, in its text form, a buffer at a time (manual, "COPY",
//! "File Formats").

use std::fmt::Write as _;

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::{backend, frontend};
use workahead_workloads::session::{SessionError, Value};

use super::connection::{Answer, Connection, failed};
use super::wire::Wire;

/// Bytes gathered before sending: far more than a system call is worth, little memory.
const PIECE_BYTES: usize = 256 << 10;

/// Rows on their way into a table. Dropping it without [`finish`](Copy::finish) sends no further
/// row, and the table keeps none.
pub struct Copy<'a> {
    connection: &'a mut Connection,
    line: BytesMut,
    columns: usize,
    open: bool,
}

impl Connection {
    /// Begins to fill `columns` of a table.
    ///
    /// # Errors
    /// The server's error for the table and the columns.
    pub fn copy_in(
        &mut self,
        table: &str,
        columns: &[impl AsRef<str>],
    ) -> Result<Copy<'_>, SessionError> {
        let columns: Vec<&str> = columns.iter().map(AsRef::as_ref).collect();
        let text = format!("COPY {table} ({}) FROM STDIN", columns.join(", "));
        let wire = self.wire();
        wire.say(|out| frontend::query(&text, out))?;
        wire.send()?;
        let mut answer = Answer::default();
        loop {
            let message = wire.receive()?;
            if message.tag == backend::COPY_IN_RESPONSE_TAG {
                break;
            }
            if answer.take(message)? {
                answer.end()?;
                return Err(SessionError::Failed(format!("`{text}` takes no rows")));
            }
        }
        let line = BytesMut::with_capacity(PIECE_BYTES + PIECE_BYTES / 8);
        Ok(Copy { connection: self, line, columns: columns.len(), open: true })
    }
}

impl Copy<'_> {
    /// Adds a row.
    ///
    /// # Errors
    /// When it has another number of values, or the server is gone. Errors about rows come at the
    /// end.
    pub fn row(&mut self, values: &[Value<'_>]) -> Result<(), SessionError> {
        if values.len() != self.columns {
            let (given, needed) = (values.len(), self.columns);
            let says = format!("a row of {given} values for {needed} columns");
            return Err(SessionError::Failed(says));
        }
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.line.put_u8(b'\t');
            }
            write(*value, &mut self.line)?;
        }
        self.line.put_u8(b'\n');
        if self.line.len() >= PIECE_BYTES { self.send() } else { Ok(()) }
    }

    /// Ends it. Returns the number of rows added to the table.
    ///
    /// # Errors
    /// The server's error for any of the rows; then the table has none of them.
    pub fn finish(mut self) -> Result<u64, SessionError> {
        self.send()?;
        self.open = false;
        let wire = self.connection.wire();
        frontend::copy_done(&mut wire.out);
        wire.send()?;
        let mut answer = Answer::default();
        while !answer.take(wire.receive()?)? {}
        let copied = answer.changed;
        answer.end().map(|_| copied)
    }

    fn send(&mut self) -> Result<(), SessionError> {
        let piece = self.line.split().freeze();
        if piece.is_empty() {
            return Ok(());
        }
        let wire = self.connection.wire();
        wire.say(|out| {
            frontend::CopyData::new(piece)?.write(out);
            Ok(())
        })?;
        wire.send()
    }
}

impl Drop for Copy<'_> {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        let wire = self.connection.wire();
        if decline(wire).is_err() {
            return;
        }
        let mut answer = Answer::default();
        // The error is the requested one.
        while let Ok(message) = wire.receive() {
            if answer.take(message).unwrap_or(true) {
                return;
            }
        }
    }
}

/// Ends a COPY without rows with an error, which undoes it.
pub(super) fn decline(wire: &mut Wire) -> Result<(), SessionError> {
    wire.say(|out| frontend::copy_fail("no more rows come", out))?;
    wire.send()
}

/// A value in COPY's text form.
fn write(value: Value<'_>, line: &mut BytesMut) -> Result<(), SessionError> {
    let written = match value {
        Value::Null => line.write_str("\\N"),
        Value::Int(int) => write!(line, "{int}"),
        Value::Real(real) => write!(line, "{real}"),
        Value::Decimal(decimal) => write!(line, "{decimal}"),
        Value::Date(date) => write!(line, "{date}"),
        Value::Timestamp(moment) => write!(line, "{moment}"),
        Value::Text(text) => {
            escape(text, line);
            Ok(())
        }
    };
    written.map_err(|error| failed(&error))
}

/// Escapes the ends of values and rows, and the escape itself.
fn escape(text: &str, line: &mut BytesMut) {
    let mut rest = text.as_bytes();
    let special = |byte: &u8| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r');
    while let Some(at) = rest.iter().position(special) {
        line.extend_from_slice(&rest[..at]);
        line.put_u8(b'\\');
        line.put_u8(match rest[at] {
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            escape => escape,
        });
        rest = &rest[at + 1..];
    }
    line.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_one_value() {
        let mut line = BytesMut::new();
        write(Value::Text("a\tb\\N\nc\rd"), &mut line).unwrap();
        assert_eq!(&line[..], b"a\\tb\\\\N\\nc\\rd");
    }
}
