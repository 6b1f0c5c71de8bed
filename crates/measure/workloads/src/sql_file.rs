//! A user's own SQL file as a workload: its statements one after the other, by every client.
//!
//! ```text
//! file ─► statements (text::split) ─► does each only read? ─► clients: in order, or shuffled
//! ```
//!
//! Statements have no parameters. Engines that were attached to run what only reads, unless writes
//! were allowed: [`SqlFile::writing`] names the first statement that may write. What only reads
//! must answer the same every time; a check afterwards tells which statement did not.

mod on_data;
mod text;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use workahead_machine::regular_file;

use crate::WorkloadError;
use crate::checksum;
use crate::client::{
    AttemptResult, Client, Condition, ExplainRequest, Moment, Next, Order, Outcome, RowSink, Table,
    Workload,
};
use crate::cycle::Cycle;
use crate::random::Random;
use crate::session::{Dialect, Session, SessionError, StatementId};
pub use on_data::OnData;
pub use text::{Statement, block_comment, split};

/// Stream of the seed.
const CLIENTS: u32 = 0x005f_0001;
/// The longest file that is read: more would be a dump, not a workload.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// The workload.
#[derive(Debug, Clone)]
pub struct SqlFile {
    statements: Arc<Vec<Statement>>,
    order: Order,
    seed: u64,
    answers: Arc<Mutex<BTreeMap<usize, FirstAnswer>>>,
}

/// A statement's first answer, and whether a later one differed.
#[derive(Debug, Clone, Copy)]
struct FirstAnswer {
    rows: u64,
    checksum: u64,
    changed: bool,
}

impl SqlFile {
    /// Reads a file.
    ///
    /// # Errors
    /// When it can't be read, is not text, has no statement, or a quote or comment has no end.
    pub fn read(
        path: &Path,
        dialect: Dialect,
        order: Order,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        let unread = |says: String| WorkloadError::SqlFile { path: path.to_owned(), says };
        let text = regular_file::read_text(path, FILE_BYTES_MAX);
        let text = text.map_err(|error| unread(error.to_string()))?;
        Self::of_text(&text, dialect, order, seed).map_err(unread)
    }

    /// Of a text itself.
    ///
    /// # Errors
    /// In words, when it has no statement, or a quote or comment has no end.
    pub fn of_text(text: &str, dialect: Dialect, order: Order, seed: u64) -> Result<Self, String> {
        let statements = split(text, dialect)?;
        if statements.is_empty() {
            return Err("there is no statement in it".to_owned());
        }
        Ok(Self { statements: Arc::new(statements), order, seed, answers: Arc::default() })
    }

    /// Without asking: earlier answers are forgotten.
    fn forget(&self) {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Its statements.
    #[must_use]
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// The first statement that may write.
    #[must_use]
    pub fn writing(&self) -> Option<&Statement> {
        self.statements.iter().find(|statement| !statement.only_reads)
    }
}

impl Workload for SqlFile {
    fn name(&self) -> &'static str {
        "sql-file"
    }

    /// A kind for each statement, named by its line and first word.
    fn kinds(&self) -> Vec<String> {
        let kind = |statement: &Statement| {
            let word = statement.text.split_whitespace().next().unwrap_or_default();
            format!("line-{}-{}", statement.line, word.to_lowercase())
        };
        self.statements.iter().map(kind).collect()
    }

    fn tables(&self, _dialect: Dialect) -> Result<Vec<Table>, SessionError> {
        Ok(Vec::new())
    }

    fn rows(&self, _table: usize, _sink: RowSink<'_>) -> Result<(), SessionError> {
        Ok(())
    }

    fn client(&self, number: u32) -> Box<dyn Client> {
        Box::new(Reader {
            file: self.clone(),
            cycle: Cycle::new(self.order, Random::new(self.seed, CLIENTS, number)),
            prepared: Vec::new(),
            current: None,
        })
    }

    fn explained(&self, _dialect: Dialect) -> Result<Vec<ExplainRequest>, SessionError> {
        let reading = self.statements.iter().filter(|statement| statement.only_reads);
        let explained = |statement: &Statement| ExplainRequest {
            name: format!("line {}", statement.line),
            settings: Vec::new(),
            text: statement.text.clone(),
        };
        Ok(reading.map(explained).collect())
    }

    fn check(
        &self,
        _session: &mut dyn Session,
        when: Moment,
    ) -> Result<Vec<Condition>, SessionError> {
        if when == Moment::Loaded {
            self.forget();
        }
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let condition = |(index, answered): (&usize, &FirstAnswer)| Condition {
            name: format!("line {}", self.statements[*index].line),
            says: "a statement that only reads answers the same every time".to_owned(),
            outcome: match (answered.changed, self.writing()) {
                (false, _) => Outcome::Holds,
                (true, Some(_)) => {
                    Outcome::Skipped("other statements of the file write".to_owned())
                }
                (true, None) => {
                    Outcome::Broken(format!("it answered {} rows first", answered.rows))
                }
            },
        };
        Ok(answers.iter().map(condition).collect())
    }
}

/// A client.
struct Reader {
    file: SqlFile,
    cycle: Cycle,
    prepared: Vec<StatementId>,
    current: Option<usize>,
}

impl Client for Reader {
    fn connected(&mut self, session: &mut dyn Session) -> Result<(), SessionError> {
        let prepare = |statement: &Statement| {
            let named = |error| match error {
                SessionError::Failed(says) => {
                    SessionError::Failed(format!("line {}: {says}", statement.line))
                }
                other => other,
            };
            session.prepare(&statement.text).map_err(named)
        };
        self.prepared = self.file.statements.iter().map(prepare).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn next(&mut self) -> Next {
        self.current = self.cycle.next(self.file.statements.len());
        Next::at_once(self.current.unwrap_or_default())
    }

    fn attempt(&mut self, session: &mut dyn Session) -> Result<AttemptResult, SessionError> {
        let prepared = |index: usize| Some((index, *self.prepared.get(index)?));
        let Some((index, statement)) = self.current.and_then(prepared) else {
            return Err(SessionError::Failed("a client must connect and draw first".to_owned()));
        };
        let only_reads = self.file.statements[index].only_reads;
        if !only_reads {
            let rows = session.execute(statement, &[])?;
            return Ok(AttemptResult { rows, statements: 1, ..AttemptResult::default() });
        }
        let mut checksum = 0_u64;
        let rows = session.query(statement, &[], &mut |row| {
            // A sum: the order of rows is not part of the answer unless asked for.
            checksum = checksum.wrapping_add(checksum::of_row(row)?);
            Ok(())
        })?;
        let mut answers = self.file.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let first = FirstAnswer { rows, checksum, changed: false };
        let answered = answers.entry(index).or_insert(first);
        answered.changed |= (answered.rows, answered.checksum) != (rows, checksum);
        Ok(AttemptResult { rows, checksum, statements: 1, rolled_back: false })
    }
}

#[cfg(test)]
mod tests;
