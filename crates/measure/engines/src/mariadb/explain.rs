//! The server's plan of a statement, as its JSON.

use workahead_workloads::session::SessionError;

use super::connection::Connection;
use crate::server::Explain;

impl Connection {
    /// The plan of a statement without values.
    ///
    /// # Errors
    /// The server's error for the statement.
    pub fn explain(&mut self, text: &str, how: Explain) -> Result<String, SessionError> {
        let explain = match how {
            Explain::Planned => "EXPLAIN FORMAT=JSON",
            Explain::Run => "ANALYZE FORMAT=JSON",
        };
        Ok(self.texts(&format!("{explain} {text}"))?.join("\n"))
    }
}
