//! Statements that name files: what a session for texts from others refuses.

use datafusion::common::plan_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement};

/// Settings whose value is a path.
const SPILL_DIRECTORY: &str = "datafusion.runtime.temp_directory";

/// An error if any part of a plan reads or writes a file that the statement names, also below
/// `EXPLAIN ANALYZE` and in prepared statements.
pub(super) fn refuse(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|part| {
        let what = match part {
            LogicalPlan::Copy(_) => "COPY",
            LogicalPlan::Ddl(DdlStatement::CreateExternalTable(_)) => "CREATE EXTERNAL TABLE",
            LogicalPlan::Statement(Statement::SetVariable(set))
                if set.variable.eq_ignore_ascii_case(SPILL_DIRECTORY) =>
            {
                SPILL_DIRECTORY
            }
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        plan_err!("{what} names a file, which is disabled here: only the tables given are there")
    })
    .map(drop)
}
