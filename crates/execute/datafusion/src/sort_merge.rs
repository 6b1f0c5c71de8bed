//! Sort-merge joins that were planned only to keep memory low, as hash joins again.
//!
//! `SET datafusion.optimizer.prefer_hash_join = false` plans a sort-merge join for every join with
//! a key, because it can spill and DataFusion's hash join can't. Ours can. The rule runs before the
//! rules that decide partitioning and add sorts, so that no sort is added and the plan assumes no
//! order that the hash join would not keep.

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::error::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_physical_optimizer::PhysicalOptimizerRule;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::joins::{HashJoinExecBuilder, PartitionMode, SortMergeJoinExec};

use crate::WorkaheadOptions;
use crate::translation::Translation;

/// Turns sort-merge joins into hash joins when `workahead.replace_sort_merge_joins` is set.
///
/// ```
/// # use std::sync::Arc;
/// # use arrow::array::{ArrayRef, Int64Array, RecordBatch};
/// # use datafusion_common::error::Result;
/// # use datafusion_physical_plan::ExecutionPlan;
/// # use datafusion_physical_plan::expressions::col;
/// # use datafusion_physical_plan::test::TestMemoryExec;
/// # fn table(name: &str, keys: Vec<i64>) -> Result<Arc<dyn ExecutionPlan>> {
/// #     let keys: ArrayRef = Arc::new(Int64Array::from(keys));
/// #     let batch = RecordBatch::try_from_iter([(name, keys)])?;
/// #     Ok(TestMemoryExec::try_new_exec(&[vec![batch.clone()]], batch.schema(), None)?)
/// # }
/// # use datafusion_common::config::ConfigOptions;
/// # use datafusion_common::{JoinType, NullEquality};
/// # use datafusion_physical_optimizer::PhysicalOptimizerRule;
/// # use datafusion_physical_plan::joins::SortMergeJoinExec;
/// use workahead_datafusion::{HashInsteadOfSortMerge, WorkaheadOptions};
///
/// let (orders, lines) = (table("id", vec![1, 2])?, table("order", vec![2, 2, 3])?);
/// let on = vec![(col("id", &orders.schema())?, col("order", &lines.schema())?)];
/// let (sorts, nulls) = (vec![Default::default()], NullEquality::NullEqualsNothing);
/// let inner = JoinType::Inner;
/// let planned = SortMergeJoinExec::try_new(orders, lines, on, None, inner, sorts, nulls)?;
/// let mut config = ConfigOptions::new();
/// config.extensions.insert(WorkaheadOptions::default());
/// config.set("workahead.replace_sort_merge_joins", "true")?;
/// let plan = HashInsteadOfSortMerge.optimize(Arc::new(planned), &config)?;
/// assert_eq!(plan.name(), "HashJoinExec", "for the rules that follow");
/// # Ok::<(), datafusion_common::DataFusionError>(())
/// ```
#[derive(Debug, Default)]
pub struct HashInsteadOfSortMerge;

impl HashInsteadOfSortMerge {
    fn replace(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() else {
            return Ok(Transformed::no(plan));
        };
        let (left, right) = (Arc::clone(join.left()), Arc::clone(join.right()));
        let builder = || {
            HashJoinExecBuilder::new(
                Arc::clone(&left),
                Arc::clone(&right),
                join.on().to_vec(),
                join.join_type(),
            )
            .with_filter(join.filter().clone())
            .with_null_equality(join.null_equality())
            .with_partition_mode(PartitionMode::Auto)
        };
        // DataFusion's hash join would exceed the memory that the setting keeps low.
        if Translation::of(&builder().build()?).is_err() {
            return Ok(Transformed::no(plan));
        }
        Ok(Transformed::yes(builder().build_exec()?))
    }
}

impl PhysicalOptimizerRule for HashInsteadOfSortMerge {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = WorkaheadOptions::of(config);
        if !options.enabled || !options.replace_sort_merge_joins {
            return Ok(plan);
        }
        Ok(plan.transform_up(Self::replace)?.data)
    }

    fn name(&self) -> &str {
        "HashInsteadOfSortMerge"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
