//! The plans that a worker is willing to run: known operators that read files below its roots.
//!
//! A plan is checked after it was decoded and before any of it runs. Decoding opens no file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::catalog::memory::DataSourceExec;
use datafusion::common::plan_err;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

use crate::ClusterError;

/// Operators that only compute. What writes, or calls what is not built in, isn't among them.
const OPERATORS: [&str; 41] = [
    "AggregateExec",
    "AsyncFuncExec",
    "BoundedWindowAggExec",
    "BroadcastExec",
    "BufferExec",
    "ChildrenIsolatorUnionExec",
    "CoalesceBatchesExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "CrossJoinExec",
    "DataSourceExec",
    "EmptyExec",
    "FilterExec",
    "GlobalLimitExec",
    "HashJoinExec",
    "InterleaveExec",
    "KeyFilterExec",
    "KeyPublisherExec",
    "LocalLimitExec",
    "NestedLoopJoinExec",
    "NetworkBroadcastExec",
    "NetworkCoalesceExec",
    "NetworkShuffleExec",
    "OutputRequirementExec",
    "PartialSortExec",
    "PartitionIsolatorExec",
    "PiecewiseMergeJoinExec",
    "PlaceholderRowExec",
    "ProjectionExec",
    "RecursiveQueryExec",
    "RepartitionExec",
    "SamplerExec",
    "ScalarSubqueryExec",
    "SortExec",
    "SortMergeJoinExec",
    "SortPreservingMergeExec",
    "UnionExec",
    "UnnestExec",
    "WindowAggExec",
    "WorkTableExec",
    "WorkaheadJoinExec",
];

/// The directories whose files a worker reads.
#[derive(Debug, Clone)]
pub(crate) struct Roots(Arc<[PathBuf]>);

impl Roots {
    /// Of directories that exist.
    pub(crate) fn new(directories: &[PathBuf]) -> Result<Self, ClusterError> {
        let resolved = |path: &PathBuf| {
            let failed = |source| ClusterError::Directory { path: path.clone(), source };
            std::fs::canonicalize(path).map_err(failed)
        };
        Ok(Self(directories.iter().map(resolved).collect::<Result<_, _>>()?))
    }

    /// Whether a file lies below one of them, links followed.
    fn hold(&self, file: &Path) -> bool {
        let resolved = std::fs::canonicalize(file);
        resolved.is_ok_and(|file| self.0.iter().any(|root| file.starts_with(root)))
    }

    /// Refuses a plan with an operator that isn't known or a file elsewhere.
    ///
    /// # Errors
    /// Names the first of them.
    pub(crate) fn check(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<()> {
        plan.apply(|node| {
            // A variant is named in parentheses: SortExec(TopK).
            let name = node.name().split('(').next().unwrap_or_default();
            if !OPERATORS.contains(&name) {
                return plan_err!("a worker does not run {name}");
            }
            if let Some(source) = node.downcast_ref::<DataSourceExec>() {
                self.check_source(source)?;
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .map(drop)
    }

    fn check_source(&self, source: &DataSourceExec) -> Result<()> {
        let source = source.data_source();
        if source.downcast_ref::<MemorySourceConfig>().is_some() {
            return Ok(());
        }
        let Some(files) = source.downcast_ref::<FileScanConfig>() else {
            return plan_err!("a worker reads files only");
        };
        if files.object_store_url.as_str() != "file:///" {
            return plan_err!(
                "a worker reads local files, not {}",
                files.object_store_url.as_str()
            );
        }
        let paths = files.file_groups.iter().flat_map(|group| group.files());
        for file in paths {
            let path = Path::new("/").join(file.object_meta.location.as_ref());
            if !self.hold(&path) {
                let path = path.display();
                return plan_err!("{path} is not below a worker's --data directories");
            }
        }
        Ok(())
    }
}
