//! Answers that are kept: a server may send rows without end, of any length.

use super::{Row, Session, SessionError, StatementId, Value};

/// The most that is kept of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerLimit {
    /// Its rows.
    pub rows: usize,
    /// The bytes of its values: the room of a [`Value`] each, and of a text its length too.
    pub bytes: usize,
}

impl AnswerLimit {
    /// Of names, settings, rights and statements: a server has far fewer.
    pub const NAMES: Self = Self { rows: 50_000, bytes: 16 << 20 };
}

/// The rows of a query, by what `take` makes of them.
///
/// ```
/// use workahead_workloads::session::{AnswerLimit, Session, SessionError, rows_within};
/// fn schemas(session: &mut dyn Session) -> Result<Vec<String>, SessionError> {
///     let statement = session.prepare("select nspname::text from pg_namespace")?;
///     rows_within(session, statement, &[], AnswerLimit::NAMES, |row| Ok(row.text(0)?.to_owned()))
/// }
/// ```
///
/// # Errors
/// As [`Session::query`]; [`SessionError::Gone`] when there are more: such a connection is given
/// up.
pub fn rows_within<T>(
    session: &mut dyn Session,
    statement: StatementId,
    values: &[Value<'_>],
    limit: AnswerLimit,
    mut take: impl FnMut(Row<'_>) -> Result<T, SessionError>,
) -> Result<Vec<T>, SessionError> {
    let (mut taken, mut taken_bytes) = (Vec::new(), 0);
    let gone = |says: String| Err(SessionError::Gone(format!("its answer has more than {says}")));
    session.query(statement, values, &mut |row| {
        taken_bytes += bytes(row);
        if taken.len() == limit.rows {
            return gone(format!("{} rows, the most that are kept", limit.rows));
        }
        if taken_bytes > limit.bytes {
            return gone(format!("{} MiB, the most that is kept", limit.bytes >> 20));
        }
        taken.push(take(row)?);
        Ok(())
    })?;
    Ok(taken)
}

fn bytes(row: Row<'_>) -> usize {
    let of_text = |column| match row.value(column) {
        Ok(Value::Text(text)) => text.len(),
        // What is damaged is for `take` to refuse.
        _ => 0,
    };
    let texts: usize = (0..row.columns()).map(of_text).sum();
    row.columns() * size_of::<Value<'_>>() + texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Dialect;
    use crate::session::recorder::Recorder;

    /// The numbers of rows with this text, within 100 rows and a MiB.
    fn lengths(rows: usize, text: &'static str) -> Result<Vec<usize>, SessionError> {
        let mut session =
            Recorder::new(Dialect::Postgres, move |_| Ok(vec![vec![Value::Text(text)]; rows]));
        let statement = session.prepare("select a from t").unwrap();
        let limit = AnswerLimit { rows: 100, bytes: 1 << 20 };
        rows_within(&mut session, statement, &[], limit, |row| Ok(row.text(0)?.len()))
    }

    #[test]
    fn answers_are_kept_up_to_their_limit() {
        assert_eq!(lengths(0, "a"), Ok(Vec::new()));
        assert_eq!(lengths(100, "abc"), Ok(vec![3; 100]));
        let long: &str = Box::leak("x".repeat(100_000).into_boxed_str());
        assert_eq!(lengths(10, long), Ok(vec![100_000; 10]));
        for (rows, text, says) in [
            (101, "a", "its answer has more than 100 rows, the most that are kept"),
            (11, long, "its answer has more than 1 MiB, the most that is kept"),
        ] {
            assert_eq!(lengths(rows, text), Err(SessionError::Gone(says.to_owned())));
        }
    }
}
