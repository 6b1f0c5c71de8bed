//! Databases and connections to them.
//!
//! ```text
//! Library (never unloaded) ◄─ Database ◄─ Session ◄─ Connection: one thread at a time
//!                                                 ◄─ Interrupter: any thread
//! ```
//!
//! Each holds what it lies in, so that the order of drops is the library's order of closing.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

use crate::answer::Answer;
use crate::appender::Appender;
use crate::cell::Cell;
use crate::error::{Error, RefusalKind};
use crate::ffi::{Huge, Library, Raw, RawDecimal, State, c_text, call, said};

/// A database: a file, or memory.
#[derive(Clone)]
pub struct Database(Arc<OpenDatabase>);

struct OpenDatabase {
    library: Library,
    raw: Raw,
}

// SAFETY: a database may be used by any number of threads (DuckDB documentation, "Concurrency").
unsafe impl Send for OpenDatabase {}
// SAFETY: as above.
unsafe impl Sync for OpenDatabase {}

impl Drop for OpenDatabase {
    fn drop(&mut self) {
        call!(self.library, close(&mut self.raw));
    }
}

impl Database {
    /// Opens a file, which is made when it is not there, with settings that must be given first.
    ///
    /// # Errors
    /// When the file can't be opened or is not a database, or a setting is unknown.
    pub fn open(library: Library, path: &Path, settings: &[(&str, &str)]) -> Result<Self, Error> {
        let path = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Error::ours("a path with a zero byte in it"))?;
        let mut config = null_mut();
        if call!(library, create_config(&mut config)) != 0 {
            return Err(Error::ours("there is no memory for settings"));
        }
        let set = settings.iter().try_for_each(|(name, value)| {
            let (name_c, value_c) = (c_text(name)?, c_text(value)?);
            match call!(library, set_config(config, name_c.as_ptr(), value_c.as_ptr())) {
                0 => Ok(()),
                _ => Err(Error::ours(format!("DuckDB has no setting `{name}` of `{value}`"))),
            }
        });
        let (mut raw, mut says) = (null_mut(), null_mut());
        let state = match &set {
            Ok(()) => call!(library, open_ext(path.as_ptr(), &mut raw, config, &mut says)),
            Err(_) => 1,
        };
        call!(library, destroy_config(&mut config));
        set?;
        if state != 0 {
            let error = Error::refused(&said(says));
            call!(library, free(says.cast()));
            return Err(error);
        }
        Ok(Self(Arc::new(OpenDatabase { library, raw })))
    }

    /// A connection to it.
    ///
    /// # Errors
    /// When there is no memory for one.
    pub fn connect(&self) -> Result<Connection, Error> {
        let mut raw = null_mut();
        if call!(self.0.library, connect(self.0.raw, &mut raw)) != 0 {
            return Err(Error::ours("DuckDB opens no further connection"));
        }
        let session = Arc::new(Session { database: self.clone(), raw });
        Ok(Connection { session, statements: Vec::new() })
    }
}

struct Session {
    database: Database,
    raw: Raw,
}

// SAFETY: a connection may move between threads; it is used through `&mut Connection` only, so by
// one at a time, but for `interrupt`, which sets an atomic flag.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        // A log in a file that it may not write (`enable_logging`) fails each statement, and throws
        // when a connection ends, which ends the process. Such a connection stays open.
        let mut answer = Answer::empty(self.database.0.library);
        let state = call!(answer.library, query(self.raw, c"select 1".as_ptr(), &mut answer.raw));
        let is_denied =
            matches!(answer.ended(state), Err(Error::Refused { why: RefusalKind::Denied, .. }));
        if !is_denied {
            call!(self.database.0.library, disconnect(&mut self.raw));
        }
    }
}

/// A statement prepared on one connection; it means nothing on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementId(pub u32);

/// A connection.
pub struct Connection {
    // Before the session: statements are destroyed first.
    statements: Vec<Statement>,
    session: Arc<Session>,
}

struct Statement {
    session: Arc<Session>,
    raw: Raw,
}

// SAFETY: as a connection's; it is used through the connection that it belongs to.
unsafe impl Send for Statement {}

impl Drop for Statement {
    fn drop(&mut self) {
        call!(self.session.database.0.library, destroy_prepare(&mut self.raw));
    }
}

/// `duckdb_statement_type`: queries, `INSERT`, `UPDATE`, `DELETE`, `CREATE`, `ALTER`, transactions,
/// `ANALYZE`, macros, `DROP`, `VACUUM`.
const PLAIN: [u32; 11] = [1, 2, 3, 5, 7, 9, 10, 12, 14, 15, 18];

impl Statement {
    fn check_plain(&self) -> Result<(), Error> {
        let kind = call!(self.session.database.0.library, prepared_statement_type(self.raw));
        match PLAIN.contains(&kind) {
            true => Ok(()),
            false => Err(Error::ours(
                "only queries and changes of data run here: statements on files, settings, \
                 extensions and all others are disabled",
            )),
        }
    }
}

/// The statements of a text.
struct ParsedStatements {
    library: Library,
    raw: Raw,
    statements: u64,
}

impl ParsedStatements {
    fn of(library: Library, session: Raw, text: &str) -> Result<Self, Error> {
        let text = c_text(text)?;
        let mut parsed = ParsedStatements { library, raw: null_mut(), statements: 0 };
        let count = call!(library, extract_statements(session, text.as_ptr(), &mut parsed.raw));
        parsed.statements = count;
        let says = said(call!(library, extract_statements_error(parsed.raw)));
        match count == 0 && !says.is_empty() {
            true => Err(Error::refused(&says)),
            false => Ok(parsed),
        }
    }
}

impl Drop for ParsedStatements {
    fn drop(&mut self) {
        call!(self.library, destroy_extracted(&mut self.raw));
    }
}

impl Connection {
    fn library(&self) -> Library {
        self.session.database.0.library
    }

    /// Runs a text of any number of statements, and forgets their rows.
    ///
    /// # Errors
    /// DuckDB's own.
    pub fn run(&mut self, text: &str) -> Result<(), Error> {
        self.ask(text).map(drop)
    }

    /// Runs a text of any number of statements; the answer is the last one's.
    ///
    /// # Errors
    /// DuckDB's own.
    pub fn ask(&mut self, text: &str) -> Result<Answer<'_>, Error> {
        let text = c_text(text)?;
        let mut answer = Answer::empty(self.library());
        let state = call!(answer.library, query(self.session.raw, text.as_ptr(), &mut answer.raw));
        answer.ended(state)
    }

    /// Runs a text of any number of statements, each of which is plain, and forgets their rows.
    ///
    /// # Errors
    /// At the first statement that [`prepare_plain`](Self::prepare_plain) refuses; DuckDB's own.
    pub fn run_plain(&mut self, text: &str) -> Result<(), Error> {
        let library = self.library();
        let parsed = ParsedStatements::of(library, self.session.raw, text)?;
        for index in 0..parsed.statements {
            let statement = self.prepared(|session, raw| {
                call!(library, prepare_extracted_statement(session, parsed.raw, index, raw))
            })?;
            statement.check_plain()?;
            let mut answer = Answer::empty(library);
            let state = call!(library, execute_prepared(statement.raw, &mut answer.raw));
            answer.ended(state)?;
        }
        Ok(())
    }

    /// Prepares one statement, whose values are `$1`, `$2` … It has to be plain: a query, one that
    /// changes data, tables or what else is defined in the database, or a transaction. Files,
    /// settings, extensions and statements that hold others (`EXPLAIN`, `PREPARE`, `EXECUTE`) are
    /// refused.
    ///
    /// # Errors
    /// When it is another one; DuckDB's own.
    pub fn prepare_plain(&mut self, text: &str) -> Result<StatementId, Error> {
        let text = c_text(text)?;
        let library = self.library();
        let statement =
            self.prepared(|session, raw| call!(library, prepare(session, text.as_ptr(), raw)))?;
        statement.check_plain()?;
        self.statements.push(statement);
        Ok(StatementId(self.statements.len() as u32 - 1))
    }

    fn prepared(&self, prepare: impl FnOnce(Raw, &mut Raw) -> State) -> Result<Statement, Error> {
        let mut statement = Statement { session: Arc::clone(&self.session), raw: null_mut() };
        match prepare(self.session.raw, &mut statement.raw) {
            0 => Ok(statement),
            _ => {
                let says = said(call!(self.library(), prepare_error(statement.raw)));
                Err(Error::refused(&says))
            }
        }
    }

    /// Runs a prepared statement to its end.
    ///
    /// # Errors
    /// When there is no such statement or it has another number of values; DuckDB's own.
    pub fn execute(
        &mut self,
        statement: StatementId,
        values: &[Cell<'_>],
    ) -> Result<Answer<'_>, Error> {
        let library = self.library();
        let prepared = self.statements.get(statement.0 as usize);
        let Some(Statement { raw, .. }) = prepared else {
            let says = format!("statement {} was not prepared on this connection", statement.0);
            return Err(Error::ours(says));
        };
        let marks = call!(library, nparams(*raw));
        if marks != values.len() as u64 {
            let says = format!("{} values for a statement that has {marks}", values.len());
            return Err(Error::ours(says));
        }
        for (index, value) in values.iter().enumerate() {
            if bind(library, *raw, index as u64 + 1, value) != 0 {
                return Err(Error::ours(format!("value {} can't be given: {value:?}", index + 1)));
            }
        }
        let mut answer = Answer::empty(library);
        let state = call!(library, execute_prepared(*raw, &mut answer.raw));
        answer.ended(state)
    }

    /// Begins to add rows to a table.
    ///
    /// # Errors
    /// When there is no such table.
    pub fn append(&mut self, table: &str) -> Result<Appender<'_>, Error> {
        Appender::new(self.library(), self.session.raw, table)
    }

    /// A handle that ends the statement of this connection, from another thread.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(Arc::clone(&self.session))
    }
}

fn bind(library: Library, statement: Raw, mark: u64, value: &Cell<'_>) -> State {
    match *value {
        Cell::Null => call!(library, bind_null(statement, mark)),
        Cell::Int(int) => call!(library, bind_int64(statement, mark, int)),
        Cell::Real(real) => call!(library, bind_double(statement, mark, real)),
        Cell::Text(text) => {
            let (start, length) = (text.as_ptr().cast(), text.len() as u64);
            call!(library, bind_varchar_length(statement, mark, start, length))
        }
        Cell::Days(days) => call!(library, bind_date(statement, mark, days)),
        Cell::Micros(micros) => call!(library, bind_timestamp(statement, mark, micros)),
        Cell::Decimal { units, scale } => {
            let value = Huge { lower: units as u64, upper: units >> 63 };
            let decimal = RawDecimal { width: DECIMAL_DIGITS, scale, value };
            call!(library, bind_decimal(statement, mark, decimal))
        }
    }
}

/// Digits that 64 bits always hold.
const DECIMAL_DIGITS: u8 = 18;

/// Ends what a connection runs, whichever statement that is by then.
#[derive(Clone)]
pub struct Interrupter(Arc<Session>);

impl Interrupter {
    /// Asks for it; the statement then fails as interrupted.
    pub fn interrupt(&self) {
        call!(self.0.database.0.library, interrupt(self.0.raw));
    }
}
