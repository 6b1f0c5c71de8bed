//! One client's connection to MariaDB: a thin blocking client, because its cost is in every
//! measurement.
//!
//! ```text
//! prepare  COM_STMT_PREPARE ─► number, types of columns, kept
//! execute  COM_STMT_EXECUTE ─► rows in binary form …, done
//! run      COM_QUERY        ─► as many results as the text has statements, rows as texts
//! ```

use mysql_common::constants::{CapabilityFlags, StatusFlags};
use workahead_workloads::session::{
    Counts, Dialect, OnRow, Session, SessionError, StatementId, Value,
};

use super::answer::Answer;
use super::identifier;
use super::login::{self, Terms};
use super::row::Cells;
use super::statement::PreparedStatement;
use super::wire::Wire;
use crate::address::Address;
use crate::bounded_texts::BoundedTexts;
use crate::error_context;
use crate::stream::{Patience, Stream, despite_interruption};

const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;

/// A connection.
pub struct Connection {
    wire: Wire,
    terms: Terms,
    address: Address,
    statements: Vec<PreparedStatement>,
    cells: Cells,
}

impl Connection {
    /// Connects and logs in; rows that an update found count, changed or not.
    ///
    /// # Errors
    /// [`SessionError::Gone`] when nothing answers, otherwise [`SessionError::Failed`] with what
    /// the server says.
    pub fn open(address: &Address) -> Result<Connection, SessionError> {
        Connection::able(address, login::all())
    }

    /// The same, with a time limit for the login and all that follows.
    pub(crate) fn open_briefly(address: &Address) -> Result<Connection, SessionError> {
        Connection::able_briefly(address, login::all())
    }

    fn able(address: &Address, able: CapabilityFlags) -> Result<Connection, SessionError> {
        let mut connection = Connection::able_briefly(address, able)?;
        connection.wire.set_patience(Patience::Endless);
        Ok(connection)
    }

    fn able_briefly(address: &Address, able: CapabilityFlags) -> Result<Connection, SessionError> {
        let mut wire = Wire::new(Stream::dial(&address.place)?);
        let terms = login::login(&mut wire, address, able)?;
        let mut connection = Connection {
            wire,
            terms,
            address: address.clone(),
            statements: Vec::new(),
            cells: Cells::default(),
        };
        for (name, value) in &address.settings {
            connection.run(&format!("SET SESSION {} = {value}", identifier(name)))?;
        }
        if address.read_only {
            connection.run("SET SESSION TRANSACTION READ ONLY")?;
        }
        Ok(connection)
    }

    /// Whether the server is MySQL, which has fewer functions of its own than MariaDB.
    pub(crate) fn is_mysql(&self) -> bool {
        self.terms.is_mysql
    }

    /// Runs a text of any number of statements, and passes all their rows to `row`, every value as
    /// text. Returns the number of rows.
    ///
    /// # Errors
    /// See [`SessionError`]; the statements after one that fails are not run.
    pub fn query_text(&mut self, text: &str, row: OnRow<'_>) -> Result<u64, SessionError> {
        self.command(text, row)
            .map(|answer| answer.counts.rows)
            .map_err(|error| error_context::on(text, error))
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

    pub(super) fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    /// Cancels this connection's statement from another thread.
    pub fn canceller(&self) -> Canceller {
        // Without settings: each is a statement more before the one that cancels.
        let (settings, read_only) = (Vec::new(), false);
        let address = Address { settings, read_only, ..self.address.clone() };
        Canceller { address, connection: self.terms.connection }
    }

    /// Whether a backslash in a quoted text means what follows it.
    pub(super) fn has_backslash_escapes(&self) -> bool {
        self.terms.status & StatusFlags::SERVER_STATUS_NO_BACKSLASH_ESCAPES.bits() == 0
    }

    fn command(&mut self, text: &str, row: OnRow<'_>) -> Result<Answer, SessionError> {
        let Self { wire, terms, cells, .. } = self;
        wire.command(QUERY).extend(text.as_bytes());
        wire.send()?;
        let answer = Answer::read(wire, terms, None, cells, row)?;
        terms.status = answer.status;
        Ok(answer)
    }
}

impl Session for Connection {
    fn dialect(&self) -> Dialect {
        Dialect::MariaDb
    }

    fn run(&mut self, text: &str) -> Result<(), SessionError> {
        self.query_text(text, &mut |_| Ok(())).map(drop)
    }

    fn prepare(&mut self, text: &str) -> Result<StatementId, SessionError> {
        let prepared = PreparedStatement::new(&mut self.wire, &self.terms, text);
        self.statements.push(prepared.map_err(|error| error_context::on(text, error))?);
        Ok(StatementId(self.statements.len() as u32 - 1))
    }

    fn exchange(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        row: OnRow<'_>,
    ) -> Result<Counts, SessionError> {
        let Self { wire, terms, statements, cells, .. } = self;
        let prepared = statements.get_mut(statement.0 as usize);
        let prepared = prepared.ok_or_else(|| error_context::unprepared(statement))?;
        let answered = prepared
            .execute(wire, values)
            .and_then(|()| Answer::read(wire, terms, Some(&mut prepared.columns), cells, row));
        answered.map(|answer| answer.counts).map_err(|error| {
            prepared.forget_types();
            error_context::on(&prepared.text, error)
        })
    }

    fn begin(&mut self) -> Result<(), SessionError> {
        self.command("BEGIN", &mut |_| Ok(())).map(drop)
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        self.command("COMMIT", &mut |_| Ok(())).map(drop)
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        self.command("ROLLBACK", &mut |_| Ok(())).map(drop)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.wire.command(QUIT);
        // A server that is gone, or reads nothing, needs no quit packet.
        self.wire.set_patience(Patience::exhausted());
        let _ = self.wire.send();
    }
}

/// Cancels the statement that a connection runs at that moment.
#[derive(Debug, Clone)]
pub struct Canceller {
    address: Address,
    connection: u32,
}

impl Canceller {
    /// Requests the cancellation; the connection's statement then fails with error 1317.
    pub fn cancel(&self) {
        despite_interruption(|| {
            // Briefly: a server that leaves this unanswered too is not waited for.
            if let Ok(mut other) = Connection::open_briefly(&self.address) {
                // It may have ended by itself.
                let _ = other.run(&format!("KILL QUERY {}", self.connection));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use workahead_study::engine::Stop;

    use super::*;
    use crate::mariadb::Server;
    use crate::mariadb::login::tests::{Fake, greeting};
    use crate::server::Options;

    /// A server of before 2015, or a proxy, ends the columns and the rows by packets of another
    /// form; one of today does so for a client that knows no other.
    #[test]
    fn the_old_ends_of_columns_and_rows_are_understood() {
        let home = tempfile::tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let options = Options { directory: home.path().to_owned(), ..Options::default() };
        let server = Server::start(&options, &Stop::new()).unwrap_or_else(|e| panic!("{e}"));
        server.create_database("d").unwrap();
        let mut able = login::all();
        able.remove(CapabilityFlags::CLIENT_DEPRECATE_EOF);
        let mut session = Connection::able(&server.address("d"), able).unwrap();
        assert!(!session.terms.without_eof);
        let texts =
            session.texts("SELECT 1; SELECT seq FROM seq_1_to_3; SELECT 1 LIMIT 0").unwrap();
        assert_eq!(texts, ["1", "1", "2", "3"]);
        session.run("CREATE TABLE t (a int, b text)").unwrap();
        let insert = session.prepare("INSERT INTO t VALUES (?, ?)").unwrap();
        for a in 1..=3 {
            assert_eq!(session.execute(insert, &[Value::Int(a), Value::Null]), Ok(1));
        }
        let select = session.prepare("SELECT a, b FROM t WHERE a > ?").unwrap();
        for above in [0, 1, 3, 1] {
            let mut sum = 0;
            let rows = session.query(select, &[Value::Int(above)], &mut |row| {
                assert!(row.is_null(1)?);
                sum += row.int(0)?;
                Ok(())
            });
            assert_eq!((rows, sum), (Ok(3 - above as u64), (above + 1..=3).sum()));
        }
        assert!(session.run("SELECT 1; SELECT colour").is_err());
        assert_eq!(session.texts("SELECT max(a) FROM t").unwrap(), ["3"]);
    }

    /// MySQL has had no variable `tx_read_only` since 8.0.3. There is none here: its greeting is
    /// that of 8.4, and what it hears is written down.
    #[test]
    fn a_session_that_only_reads_names_no_variable() {
        let done = [0, 0, 0, 2, 0, 0, 0].to_vec();
        let greeting = greeting("mysql_native_password", login::all());
        let fake = Fake::saying(vec![(0, greeting), (2, done.clone()), (1, done)]);
        let address = Address { read_only: true, ..fake.address.clone() };
        drop(Connection::open(&address).unwrap());
        let heard: Vec<_> = fake.heard().into_iter().map(|(_, payload)| payload).collect();
        const COM_QUERY: u8 = 3;
        assert_eq!(heard[1], [&[COM_QUERY], &b"SET SESSION TRANSACTION READ ONLY"[..]].concat());
        assert!(!heard.concat().windows(9).any(|text| text == b"read_only"));
    }
}
