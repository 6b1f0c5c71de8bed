//! Statements that name files: what a session for texts from others refuses, and what none may
//! write over.

use std::path::Path;

use datafusion::common::plan_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::{DdlStatement, LogicalPlan, Statement};

/// Settings whose value is a path.
const SPILL_DIRECTORY: &str = "datafusion.runtime.temp_directory";

/// An error if `COPY` would put a file in the place of a link or a device, or under another name:
/// DataFusion takes a name for a pattern, and puts files with names of its own beside it.
pub(super) fn check_targets(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|part| {
        let LogicalPlan::Copy(copy) = part else { return Ok(TreeNodeRecursion::Continue) };
        // Other URLs than paths of this machine are left to their stores.
        let path = copy.output_url.strip_prefix("file://").unwrap_or(&copy.output_url);
        if path.contains(['*', '?', '[']) {
            return plan_err!(
                "COPY takes {path} for a pattern: write to a name without *, ? and ["
            );
        }
        match Path::new(path).symlink_metadata() {
            Ok(found) if !found.is_file() && !found.is_dir() => {
                plan_err!("{path} is not a regular file, and COPY would replace it by one")
            }
            _ => Ok(TreeNodeRecursion::Continue),
        }
    })
    .map(drop)
}

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
