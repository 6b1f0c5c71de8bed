//! Answers of a server as what a capture keeps of them.

use std::collections::BTreeMap;

use workahead_study::capture::Figures;
use workahead_workloads::session::{Row, Session, SessionError, StatementId};

use super::{Holder, Ran, bounded};
use crate::bounded_texts::BoundedTexts;

/// The rows of a query that was prepared.
pub(super) fn rows<T>(
    session: &mut dyn Session,
    statement: StatementId,
    take: &mut dyn FnMut(Row<'_>) -> Result<T, SessionError>,
) -> Result<Vec<T>, SessionError> {
    /// Settings, tables, statements: a server may send rows without end.
    const ROWS_MAX: usize = 50_000;
    let mut all = Vec::new();
    session.query(statement, &[], &mut |row| {
        if all.len() >= ROWS_MAX {
            let says = "its answer has more than 50,000 rows where far fewer are usual";
            return Err(SessionError::Gone(says.to_owned()));
        }
        all.push(take(row)?);
        Ok(())
    })?;
    Ok(all)
}

/// What sessions do, the event that they wait for, and their number.
pub(super) fn kinds(
    session: &mut dyn Session,
    statement: StatementId,
) -> Result<Vec<(String, String, f64)>, SessionError> {
    rows(session, statement, &mut |row| {
        Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned(), row.int(2)?.max(0) as f64))
    })
}

pub(super) fn holders(
    session: &mut dyn Session,
    statement: StatementId,
) -> Result<Vec<Holder>, SessionError> {
    rows(session, statement, &mut |row| {
        let kind = row.text(0)?.to_owned();
        Ok(Holder { kind, who: row.text(1)?.to_owned(), text: row.text(2)?.to_owned() })
    })
}

/// Who ran a statement, whether that is a trusted user, and its text.
pub(super) fn ran(
    session: &mut dyn Session,
    statement: StatementId,
) -> Result<Vec<Ran>, SessionError> {
    rows(session, statement, &mut |row| {
        let (user, text) = (row.text(0)?.to_owned(), row.text(2)?.to_owned());
        Ok(Ran { user, is_trusted: row.int(1)? == 1, text })
    })
}

/// What was read; what can't be is named.
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

/// Names and figures of an answer of two columns; what is no figure is left out.
pub(super) fn figures(
    session: &mut dyn Session,
    statement: StatementId,
) -> Result<Figures, SessionError> {
    let pairs = rows(session, statement, &mut |row| {
        Ok((row.text(0)?.to_owned(), row.real(1).ok().filter(|value| value.is_finite())))
    })?;
    let known = |(name, value): (String, Option<f64>)| Some((name, value?.max(0.0)));
    Ok(pairs.into_iter().filter_map(known).collect())
}

/// Names and texts of an answer of two columns.
pub(super) fn texts(
    session: &mut dyn Session,
    statement: StatementId,
) -> Result<BTreeMap<String, String>, SessionError> {
    let mut bound = BoundedTexts::default();
    let pairs = rows(session, statement, &mut |row| {
        let value = if row.is_null(1)? { "" } else { row.text(1)? };
        bound.push(value)?;
        Ok((row.text(0)?.to_owned(), bounded(value)))
    })?;
    Ok(pairs.into_iter().collect())
}
