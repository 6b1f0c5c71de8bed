//! Names the statement in the error of one that fails.

use workahead_workloads::session::{SessionError, StatementId};

/// Characters of a statement that an error shows.
const SHOWN_CHARS: usize = 160;

/// Names the statement, on one line, in an error that it caused.
pub(crate) fn on(text: &str, error: SessionError) -> SessionError {
    match error {
        SessionError::Failed(says) => SessionError::Failed(named(&says, text)),
        SessionError::Duplicate(says) => SessionError::Duplicate(named(&says, text)),
        other => other,
    }
}

/// The error for a statement that this connection did not prepare.
pub(crate) fn unprepared(statement: StatementId) -> SessionError {
    SessionError::Failed(format!("statement {} was not prepared on this connection", statement.0))
}

fn named(says: &str, text: &str) -> String {
    format!("{says}, in: {}", shown(text))
}

fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_the_statement_name_it() {
        let failed = on("select\n  1/0", SessionError::Failed("division by zero".to_owned()));
        assert_eq!(failed.to_string(), "division by zero, in: select 1/0");
        let retry = SessionError::Retry("deadlock".to_owned());
        assert_eq!(on("select 1", retry.clone()), retry);
        let long = on(&"é".repeat(500), SessionError::Failed(String::new())).to_string();
        assert_eq!(long.chars().count(), ", in: ".chars().count() + SHOWN_CHARS + 1);
    }
}
