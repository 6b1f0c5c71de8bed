//! The server's plan of a statement, as its JSON.

use workahead_workloads::session::{Session, SessionError, StatementId};

use super::connection::{Connection, statement_name};
use crate::bounded_texts::BoundedTexts;
use crate::server::Explain;

fn options(how: Explain) -> &'static str {
    match how {
        Explain::Planned => "FORMAT JSON, SETTINGS",
        Explain::Run => "FORMAT JSON, SETTINGS, ANALYZE, BUFFERS",
    }
}

impl Connection {
    /// The plan of a statement without values.
    ///
    /// # Errors
    /// The server's error for the statement.
    pub fn explain(&mut self, text: &str, how: Explain) -> Result<String, SessionError> {
        // Prepared: a text that hides a second statement from us is refused by the server.
        let explain = self.prepare(&format!("EXPLAIN ({}) {text}", options(how)))?;
        let mut lines = BoundedTexts::default();
        self.exchange(explain, &[], &mut |row| lines.push(row.text(0)?))?;
        Ok(lines.texts.join("\n"))
    }

    /// The plan of a prepared statement for values that are written as the server's literals.
    ///
    /// # Errors
    /// The server's error for the statement or the values.
    pub fn explain_prepared(
        &mut self,
        statement: StatementId,
        literals: &[&str],
        how: Explain,
    ) -> Result<String, SessionError> {
        let name = statement_name(statement.0 as usize);
        let values = match literals {
            [] => String::new(),
            literals => format!("({})", literals.join(", ")),
        };
        self.explain(&format!("EXECUTE {name}{values}"), how)
    }
}
