//! PostgreSQL as a [`Connector`](crate::connector::Connector).

use std::sync::Arc;

use workahead_study::plans::{PlanText, Planner};
use workahead_workloads::client::Table;
use workahead_workloads::session::{Session, SessionError};

use super::Connection;
use crate::connector::{self, Cancel, RowSource};
use crate::server::Explain;
use crate::stream::Patience;

impl connector::Connection for Connection {
    fn version(&mut self) -> Result<String, SessionError> {
        Ok(self.texts("SHOW server_version")?.concat())
    }

    fn plan(&mut self, text: &str, how: Explain) -> Result<PlanText, SessionError> {
        Ok(PlanText::new(Planner::Postgres, self.explain(text, how)?))
    }

    fn fill_table(
        &mut self,
        table: &Table,
        row_source: RowSource<'_>,
    ) -> Result<u64, SessionError> {
        let mut copy = self.copy_in(&table.name, &table.columns)?;
        row_source(&mut |row| copy.row(row))?;
        copy.finish()
    }

    /// The visibility map too, which plans depend on.
    fn analyse_table(&mut self, table: &str) -> Result<(), SessionError> {
        self.run(&format!("VACUUM (ANALYZE) {table}"))
    }

    fn cancel(&self) -> Cancel {
        let canceller = self.canceller();
        Arc::new(move || canceller.cancel())
    }

    fn limit_answers(&mut self) {
        self.wire().set_patience(Patience::of_login());
    }
}
