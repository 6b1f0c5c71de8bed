//! The server's plan of a statement, as its JSON.

use workahead_workloads::session::{SessionError, StatementId};

use super::connection::{Connection, statement_name};
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
        let lines = self.texts(&format!("EXPLAIN ({}) {text}", options(how)))?;
        Ok(lines.join("\n"))
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
