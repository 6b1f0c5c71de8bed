//! Answers of a server as what a capture keeps of them.

use std::collections::BTreeMap;

use workahead_study::capture::Figures;
use workahead_workloads::session::{
    AnswerLimit, Row, Session, SessionError, StatementId, rows_within,
};

use super::{ExecutedStatement, Holder, bounded};

/// Longest name that is kept: servers have names of at most three parts of 64 characters.
const NAME_CHARS_MAX: usize = 300;

/// Longest text that is planned. It must be whole, so that longer ones are left out.
const RAN_BYTES_MAX: usize = 60_000;

/// The rows of a query that was prepared: settings, tables, statements. All that comes counts for
/// the limit, whatever of it is kept.
pub(super) fn rows<T>(
    session: &mut dyn Session,
    statement: StatementId,
    take: &mut dyn FnMut(Row<'_>) -> Result<T, SessionError>,
) -> Result<Vec<T>, SessionError> {
    rows_within(session, statement, &[], AnswerLimit::NAMES, take)
}

/// A name of a table, an event, a user.
pub(super) fn name(row: Row<'_>, column: usize) -> Result<String, SessionError> {
    Ok(row.text(column)?.chars().take(NAME_CHARS_MAX).collect())
}

/// The activity of sessions, the event that they wait for, and their number.
pub(super) fn kinds(
    session: &mut dyn Session,
    statement: StatementId,
) -> Result<Vec<(String, String, f64)>, SessionError> {
    rows(session, statement, &mut |row| {
        Ok((name(row, 0)?, name(row, 1)?, row.int(2)?.max(0) as f64))
    })
}

pub(super) fn holders(
    session: &mut dyn Session,
    statement: StatementId,
) -> Result<Vec<Holder>, SessionError> {
    rows(session, statement, &mut |row| {
        Ok(Holder { kind: name(row, 0)?, who: name(row, 1)?, text: bounded(row.text(2)?) })
    })
}

/// Who ran a statement, whether that is a trusted user, and its text; without those that are too
/// long.
pub(super) fn ran(
    session: &mut dyn Session,
    statement: StatementId,
) -> Result<Vec<ExecutedStatement>, SessionError> {
    let all = rows(session, statement, &mut |row| {
        let (user, is_trusted, text) = (name(row, 0)?, row.int(1)? == 1, row.text(2)?);
        let is_short = text.len() <= RAN_BYTES_MAX;
        Ok(is_short.then(|| ExecutedStatement { user, is_trusted, text: text.to_owned() }))
    })?;
    Ok(all.into_iter().flatten().collect())
}

/// The rows read; those that can't be read are named.
pub(super) fn or_missing<T: Default>(
    read: Result<T, SessionError>,
    what: &str,
    missing: &mut Vec<String>,
) -> T {
    read.unwrap_or_else(|error| {
        missing.push(format!("{what} ({error})"));
        T::default()
    })
}

/// Names and figures of an answer of two columns; values that are not figures are left out.
pub(super) fn figures(
    session: &mut dyn Session,
    statement: StatementId,
) -> Result<Figures, SessionError> {
    let pairs = rows(session, statement, &mut |row| {
        Ok((name(row, 0)?, row.real(1).ok().filter(|value| value.is_finite())))
    })?;
    let known = |(name, value): (String, Option<f64>)| Some((name, value?.max(0.0)));
    Ok(pairs.into_iter().filter_map(known).collect())
}

/// Names and texts of an answer of two columns.
pub(super) fn texts(
    session: &mut dyn Session,
    statement: StatementId,
) -> Result<BTreeMap<String, String>, SessionError> {
    let pairs = rows(session, statement, &mut |row| {
        let value = if row.is_null(1)? { "" } else { row.text(1)? };
        Ok((bounded(row.text(0)?), bounded(value)))
    })?;
    Ok(pairs.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use workahead_workloads::session::{Counts, Dialect, OnRow, Value};

    use super::*;

    /// A server that answers with one row again and again.
    struct Server<'a> {
        row: &'a [Value<'a>],
        times: usize,
    }

    impl Session for Server<'_> {
        fn dialect(&self) -> Dialect {
            Dialect::Postgres
        }

        fn run(&mut self, _: &str) -> Result<(), SessionError> {
            Ok(())
        }

        fn prepare(&mut self, _: &str) -> Result<StatementId, SessionError> {
            Ok(StatementId(0))
        }

        fn exchange(
            &mut self,
            _: StatementId,
            _: &[Value<'_>],
            row: OnRow<'_>,
        ) -> Result<Counts, SessionError> {
            for _ in 0..self.times {
                row(Row::new(&self.row))?;
            }
            Ok(Counts::default())
        }

        fn begin(&mut self) -> Result<(), SessionError> {
            Ok(())
        }

        fn commit(&mut self) -> Result<(), SessionError> {
            Ok(())
        }

        fn rollback(&mut self) -> Result<(), SessionError> {
            Ok(())
        }
    }

    #[test]
    fn rows_without_end_are_given_up() {
        let long = "x".repeat(100_000);
        for (text, says) in [("", "more than 50000 rows"), (long.as_str(), "more than 16 MiB")] {
            let row = [Value::Text("log"), Value::Text(text), Value::Int(1)];
            let mut server = Server { row: &row, times: usize::MAX };
            let given_up = kinds(&mut server, StatementId(0)).unwrap_err();
            assert!(matches!(given_up, SessionError::Gone(_)), "{given_up}");
            assert!(given_up.to_string().contains(says), "{given_up}");
        }
    }

    #[test]
    fn names_are_cut_and_long_statements_left_out() {
        let long = "x".repeat(RAN_BYTES_MAX + 1);
        let row = [Value::Text(&long), Value::Text(&long), Value::Int(1)];
        let seen = kinds(&mut Server { row: &row, times: 1 }, StatementId(0)).unwrap();
        let (kind, event, count) = &seen[0];
        assert_eq!((kind.len(), event.len(), *count), (NAME_CHARS_MAX, NAME_CHARS_MAX, 1.0));
        for (text, kept) in [(&long[1..], 1), (&long[..], 0)] {
            let row = [Value::Text(&long), Value::Int(1), Value::Text(text)];
            let ran = ran(&mut Server { row: &row, times: 1 }, StatementId(0)).unwrap();
            assert_eq!(ran.len(), kept);
            assert!(ran.iter().all(|one| one.user.len() == NAME_CHARS_MAX && one.text == text));
        }
    }
}
