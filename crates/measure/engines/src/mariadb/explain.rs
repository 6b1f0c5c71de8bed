//! The server's plan of a statement, as the JSON it gives.

use workahead_workloads::session::SessionError;

use super::connection::Connection;
use crate::server::Explain;

impl Connection {
    /// The plan of a statement without values.
    ///
    /// # Errors
    /// What the server says about the statement.
    pub fn explain(&mut self, text: &str, how: Explain) -> Result<String, SessionError> {
        let asked = match how {
            Explain::Planned => "EXPLAIN FORMAT=JSON",
            Explain::Run => "ANALYZE FORMAT=JSON",
        };
        Ok(self.texts(&format!("{asked} {text}"))?.join("\n"))
    }
}
