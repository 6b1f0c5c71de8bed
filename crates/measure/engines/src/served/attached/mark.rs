//! The table that tells which data set is in a database, and which tables runs of ours made there:
//! no others are dropped.
//!
//! ```text
//! name  the data set that is there; empty where none is
//! made  a table that a run made; empty in one row, which is there without tables as well
//! ```

use std::collections::BTreeSet;

use workahead_workloads::session::{
    AnswerLimit, Session, SessionError, StatementId, Value, rows_within, transaction,
};

const TABLE: &str = "workahead_data";

/// There is no such table, as PostgreSQL and as MariaDB say it.
const NO_TABLE: [&str; 2] = ["SQLSTATE 42P01", "error 1146"];
/// There is no such column.
const NO_COLUMN: [&str; 2] = ["SQLSTATE 42703", "error 1054"];

/// What earlier runs left.
#[derive(Debug, Default)]
pub(super) struct Mark {
    /// The data set that is there; empty where none is.
    pub(super) data: String,
    /// The tables that they made: earlier versions did not tell.
    tables: Option<BTreeSet<String>>,
}

impl Mark {
    /// Of a database without the table: nothing.
    pub(super) fn read(session: &mut dyn Session) -> Result<Mark, SessionError> {
        let mut mark = Mark::default();
        let names = format!("SELECT name FROM {TABLE}");
        let Some(names) = prepare_unless(session, &names, NO_TABLE)? else { return Ok(mark) };
        let both = format!("SELECT name, made FROM {TABLE}");
        let Some(both) = prepare_unless(session, &both, NO_COLUMN)? else {
            let mut data = rows_within(session, names, &[], AnswerLimit::NAMES, |row| {
                Ok(row.text(0)?.to_owned())
            })?;
            mark.data = data.pop().unwrap_or_default();
            return Ok(mark);
        };
        let rows = rows_within(session, both, &[], AnswerLimit::NAMES, |row| {
            Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))
        })?;
        let mut tables = BTreeSet::new();
        for (data, table) in rows {
            mark.data = data;
            tables.insert(table);
        }
        tables.remove("");
        mark.tables = Some(tables);
        Ok(mark)
    }

    /// The tables that runs made, where `tables` are those of the data set `data`.
    pub(super) fn made(self, data: &str, tables: &[String]) -> BTreeSet<String> {
        match self.tables {
            Some(made) => made,
            // Data sets of one name have the same tables; of those of another nothing is known.
            None if self.data == data => tables.iter().cloned().collect(),
            None => BTreeSet::new(),
        }
    }

    /// Replaces what earlier runs left; with no data and no tables there is no mark.
    pub(super) fn leave(
        session: &mut dyn Session,
        data: &str,
        made: &BTreeSet<String>,
    ) -> Result<(), SessionError> {
        transaction(session, |session| {
            session.run(&format!("DROP TABLE IF EXISTS {TABLE}"))?;
            if data.is_empty() && made.is_empty() {
                return Ok(());
            }
            session.run(&format!(
                "CREATE TABLE {TABLE} (name varchar(200) NOT NULL, made varchar(200) NOT NULL)"
            ))?;
            let insert = format!("INSERT INTO {TABLE} VALUES (?, ?)");
            let insert = session.dialect().placeholders(&insert);
            let insert = session.prepare(&insert)?;
            for table in std::iter::once("").chain(made.iter().map(String::as_str)) {
                session.execute(insert, &[Value::Text(data), Value::Text(table)])?;
            }
            Ok(())
        })
    }
}

/// Whether there is a table or a view of that name. A table that can't be read is not missing:
/// its error is returned.
pub(super) fn is_there(session: &mut dyn Session, table: &str) -> Result<bool, SessionError> {
    let text = format!("SELECT 1 FROM {table}");
    prepare_unless(session, &text, NO_TABLE).map(|found| found.is_some())
}

/// Prepares a short text; nothing where the server's error is the one of these codes.
fn prepare_unless(
    session: &mut dyn Session,
    text: &str,
    codes: [&str; 2],
) -> Result<Option<StatementId>, SessionError> {
    let endings = codes.map(|code| format!("({code}), in: {text}"));
    let is_one = |says: &str| endings.iter().any(|ending| says.ends_with(ending.as_str()));
    match session.prepare(text) {
        Ok(statement) => Ok(Some(statement)),
        Err(SessionError::Failed(says)) if is_one(&says) => Ok(None),
        Err(error) => Err(error),
    }
}
