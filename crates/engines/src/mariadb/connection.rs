//! One client's connection to MariaDB, over the `mysql` crate: blocking, statements prepared on the
//! server, rows that were found counted (the client flag FOUND_ROWS).

use std::time::Duration;

use mysql::consts::CapabilityFlags;
use mysql::prelude::{Protocol, Queryable};
use mysql::{Conn, OptsBuilder, Params, QueryResult, Statement};
use workahead_workloads::session::{
    Dialect, OnRow, Row, Session, SessionError, StatementId, Value,
};

use super::row::{Fields, given};
use super::{identifier, refusal};
use crate::address::{Address, Place};
use crate::blame;

/// A connection.
pub struct Connection {
    conn: Conn,
    address: Address,
    statements: Vec<(Statement, String)>,
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// [`SessionError::Gone`] when nothing answers, otherwise [`SessionError::Failed`] with what
    /// the server says.
    pub fn open(address: &Address) -> Result<Connection, SessionError> {
        let conn = dial(address)?;
        let (address, statements) = (address.clone(), Vec::new());
        let mut connection = Connection { conn, address, statements };
        for (name, value) in &address_settings(&connection.address) {
            connection.run(&format!("SET SESSION {name} = {value}"))?;
        }
        Ok(connection)
    }

    /// Runs a text of any number of statements, and hands over the rows of them all, every value as
    /// text; how many rows there were.
    ///
    /// # Errors
    /// See [`SessionError`]; what follows a statement that fails is not run.
    pub fn ask(&mut self, text: &str, row: OnRow<'_>) -> Result<u64, SessionError> {
        let answered = self.conn.query_iter(text).map_err(refusal::read);
        answered
            .and_then(|mut result| read(&mut result, row))
            .map(|(rows, _)| rows)
            .map_err(|error| blame::on(text, error))
    }

    /// The values of the first column of what [`ask`](Self::ask) gives.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn texts(&mut self, text: &str) -> Result<Vec<String>, SessionError> {
        let mut all = Vec::new();
        self.ask(text, &mut |row| {
            all.push(row.text(0)?.to_owned());
            Ok(())
        })?;
        Ok(all)
    }

    /// What ends the statement that this connection runs, from another thread.
    pub fn canceller(&self) -> Canceller {
        Canceller { address: self.address.clone(), connection: self.conn.connection_id() }
    }

    pub(super) fn conn(&self) -> &Conn {
        &self.conn
    }

    fn exchange(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        row: OnRow<'_>,
    ) -> Result<(u64, u64), SessionError> {
        let Self { conn, statements, .. } = self;
        let (prepared, text) = statements.get(statement.0 as usize).ok_or_else(|| {
            let says = format!("statement {} was not prepared on this connection", statement.0);
            SessionError::Failed(says)
        })?;
        let values = match values {
            [] => Params::Empty,
            values => Params::Positional(values.iter().map(given).collect()),
        };
        let answered = conn.exec_iter(prepared, values).map_err(refusal::read);
        answered
            .and_then(|mut result| read(&mut result, row))
            .map_err(|error| blame::on(text, error))
    }

    /// A statement of the protocol's own.
    fn command(&mut self, text: &str) -> Result<(), SessionError> {
        self.conn.query_drop(text).map_err(refusal::read)
    }
}

/// Hands over the rows of all result sets to their end; how many there were, and how many the last
/// statement changed.
fn read<P: Protocol>(
    result: &mut QueryResult<'_, '_, '_, P>,
    row: OnRow<'_>,
) -> Result<(u64, u64), SessionError> {
    let (mut rows, mut changed, mut error) = (0, 0, None);
    loop {
        // Read before the set is gone through: that moves on to the next.
        let counted = result.affected_rows();
        let Some(set) = result.iter() else { break };
        changed = counted;
        for came in set {
            let came = came.map_err(refusal::read)?;
            rows += 1;
            if error.is_none() {
                error = row(Row::new(&Fields(&came))).err();
            }
        }
    }
    error.map_or(Ok((rows, changed)), Err)
}

impl Session for Connection {
    fn dialect(&self) -> Dialect {
        Dialect::MariaDb
    }

    fn run(&mut self, text: &str) -> Result<(), SessionError> {
        self.ask(text, &mut |_| Ok(())).map(drop)
    }

    fn prepare(&mut self, text: &str) -> Result<StatementId, SessionError> {
        let prepared = self.conn.prep(text).map_err(refusal::read);
        let prepared = prepared.map_err(|error| blame::on(text, error))?;
        self.statements.push((prepared, text.to_owned()));
        Ok(StatementId(self.statements.len() as u32 - 1))
    }

    fn query(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
        row: OnRow<'_>,
    ) -> Result<u64, SessionError> {
        self.exchange(statement, values, row).map(|(rows, _)| rows)
    }

    fn execute(
        &mut self,
        statement: StatementId,
        values: &[Value<'_>],
    ) -> Result<u64, SessionError> {
        self.exchange(statement, values, &mut |_| Ok(())).map(|(_, changed)| changed)
    }

    fn begin(&mut self) -> Result<(), SessionError> {
        self.command("BEGIN")
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        self.command("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        self.command("ROLLBACK")
    }
}

/// How long a host may take to answer a stranger.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// The server speaks first in this protocol; one of another kind may wait in silence, and the
/// library with it. A thread of its own does, then.
fn dial(address: &Address) -> Result<Conn, SessionError> {
    let options = options(address);
    let Place::Host(..) = &address.place else {
        return Conn::new(options).map_err(refusal::read);
    };
    let (done, dialled) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // Nobody listens any more when it took too long.
        let _ = done.send(Conn::new(options));
    });
    let silent = |_| {
        let (place, limit_s) = (&address.place, ANSWER_LIMIT.as_secs());
        SessionError::Gone(format!("{place} says nothing for {limit_s} s"))
    };
    dialled.recv_timeout(ANSWER_LIMIT).map_err(silent)?.map_err(refusal::read)
}

fn options(address: &Address) -> OptsBuilder {
    let options = OptsBuilder::new()
        .user(Some(&address.user))
        .pass(address.password.as_deref())
        .db_name(Some(&address.database).filter(|name| !name.is_empty()))
        // A statement is prepared once, by us.
        .stmt_cache_size(0)
        // A server that is reached through a port stays reached through it.
        .prefer_socket(false)
        .tcp_nodelay(true)
        .tcp_connect_timeout(Some(ANSWER_LIMIT))
        .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS);
    match &address.place {
        Place::Socket(path) => options.socket(Some(path.to_string_lossy())),
        Place::Host(host, port) => options.ip_or_hostname(Some(host)).tcp_port(*port),
    }
}

fn address_settings(address: &Address) -> Vec<(String, String)> {
    address.settings.iter().map(|(name, value)| (identifier(name), value.clone())).collect()
}

/// Ends what a connection runs, whichever statement that is by then.
#[derive(Debug, Clone)]
pub struct Canceller {
    address: Address,
    connection: u32,
}

impl Canceller {
    /// Asks the server to; the connection's statement then fails with error 1317.
    pub fn cancel(&self) {
        if let Ok(mut other) = Connection::open(&self.address) {
            // It may have ended by itself.
            let _ = other.run(&format!("KILL QUERY {}", self.connection));
        }
    }
}
