//! Statements that name files: what a session for texts from others refuses, and what none may
//! write over.

use std::path::Path;

use datafusion::common::plan_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::{CreateExternalTable, DdlStatement, LogicalPlan, Statement};

use crate::local_files::is_named_as_arrow;

/// Settings whose value is a path.
const SPILL_DIRECTORY: &str = "datafusion.runtime.temp_directory";

/// An error if `COPY` would put a file in the place of a link or a device, or under another name:
/// DataFusion takes a name for a pattern, and puts files with names of its own beside it.
pub(super) fn check_targets(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|part| {
        if let LogicalPlan::Ddl(DdlStatement::CreateExternalTable(table)) = part {
            check_external(table)?;
        }
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

/// An error for a table that DataFusion reads or writes beside the store of local files, and for
/// one of Arrow's whose names don't say so: there it takes any four bytes for a length.
fn check_external(table: &CreateExternalTable) -> Result<()> {
    if table.unbounded {
        return plan_err!("an unbounded table is not supported: leave UNBOUNDED out");
    }
    if !table.file_type.eq_ignore_ascii_case("arrow") {
        return Ok(());
    }
    let is_named = |location: &&String| {
        let path = Path::new(location.as_str());
        location.ends_with('/') || path.is_dir() || is_named_as_arrow(path)
    };
    match table.locations.iter().find(|location| !is_named(location)) {
        Some(other) => {
            plan_err!("{other} is not named as a file of Arrow: name it .arrow or .arrows")
        }
        None => Ok(()),
    }
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
