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

/// An error for a table that DataFusion reads or writes beside the store of local files, for one of
/// Arrow's whose names don't say so: there it takes any four bytes for a length; and for one of xz,
/// which takes as much memory as the first bytes of a file say, up to 4 GiB.
fn check_external(table: &CreateExternalTable) -> Result<()> {
    if table.unbounded {
        return plan_err!("an unbounded table is not supported: leave UNBOUNDED out");
    }
    if table.options.iter().any(|(key, value)| is_xz(key, value)) {
        return plan_err!("files of xz are not read: decompress them (xz -d), or use gzip or zstd");
    }
    if !table.file_type.eq_ignore_ascii_case("arrow") {
        return Ok(());
    }
    for location in &table.locations {
        let path = Path::new(location.strip_prefix("file://").unwrap_or(location));
        if path.is_dir() {
            // Of a table without columns DataFusion reads those of the usual ending.
            if !table.schema.fields().is_empty() && !holds_arrow_only(path) {
                return plan_err!(
                    "{location} has files that are not named as Arrow's: name those that are by a \
                     pattern, as {}/*.arrow",
                    location.trim_end_matches('/')
                );
            }
        } else if !location.ends_with('/') && !is_named_as_arrow(path) {
            return plan_err!(
                "{location} is not named as a file of Arrow: name it .arrow or .arrows"
            );
        }
    }
    Ok(())
}

/// Whether an option of a table says that its files are compressed by xz. DataFusion leaves out
/// what follows the last word that it knows of a key.
fn is_xz(key: &str, value: &str) -> bool {
    let mut words = key.split('.');
    words.any(|word| word.eq_ignore_ascii_case("compression")) && value.eq_ignore_ascii_case("xz")
}

/// Whether all files below a directory are named as Arrow's.
fn holds_arrow_only(directory: &Path) -> bool {
    let is_arrow = |path: &Path| match path.symlink_metadata() {
        Ok(found) if found.is_dir() => holds_arrow_only(path),
        // Links lead to files, and not around in circles.
        _ => is_named_as_arrow(path) && !path.is_dir(),
    };
    // One that can't be read is DataFusion's to complain of.
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).all(|path| is_arrow(&path))
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
