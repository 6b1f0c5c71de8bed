//! The physical-optimizer rule, and its place among DataFusion's.
//!
//! Rules run in the order of their list. Ours comes when plans have their final shape (after the
//! last `ProjectionPushdown`, which embeds projections into hash joins) and before filters are
//! pushed down for the last time (`FilterPushdown(Post)`, where a join makes its dynamic filter
//! and must be the node that stays). Appended to the list, as
//! `SessionStateBuilder::with_physical_optimizer_rule` does, it would come after both.

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::error::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_physical_optimizer::PhysicalOptimizerRule;
use datafusion_physical_plan::ExecutionPlan;

use crate::options::JoinOptions;
use crate::plan::as_hash_join;
use crate::{Caches, HashInsteadOfSortMerge, SidewaysFilters, WorkaheadJoinExec, WorkaheadOptions};

/// The rule before which ours must come.
const LAST_PUSH_DOWN: &str = "FilterPushdown(Post)";
/// The rule that decides how the inputs of hash joins are partitioned.
const SELECTION: &str = "join_selection";

/// Physical-optimizer rules, in the order in which they run.
type PhysicalRules = Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>;

/// Replaces hash joins by ours.
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
/// # use datafusion_common::JoinType;
/// # use datafusion_common::config::ConfigOptions;
/// # use datafusion_physical_optimizer::PhysicalOptimizerRule;
/// # use datafusion_physical_plan::joins::{HashJoinExecBuilder, PartitionMode};
/// use workahead_datafusion::WorkaheadJoins;
///
/// let (orders, lines) = (table("id", vec![1, 2])?, table("order", vec![2, 2, 3])?);
/// let on = vec![(col("id", &orders.schema())?, col("order", &lines.schema())?)];
/// let planned = HashJoinExecBuilder::new(orders, lines, on, JoinType::Inner)
///     .with_partition_mode(PartitionMode::CollectLeft)
///     .build()?;
/// let plan = WorkaheadJoins::default().optimize(Arc::new(planned), &ConfigOptions::new())?;
/// assert_eq!(plan.name(), "WorkaheadJoinExec");
/// # Ok::<(), datafusion_common::DataFusionError>(())
/// ```
#[derive(Debug)]
pub struct WorkaheadJoins {
    caches: Caches,
}

impl Default for WorkaheadJoins {
    fn default() -> Self {
        Self { caches: Caches::ASSUMED }
    }
}

impl WorkaheadJoins {
    /// The same with the caches of the machine that will run the plans: tables, batches and filters
    /// are sized by them.
    #[must_use]
    pub fn with_caches(self, caches: Caches) -> Self {
        Self { caches }
    }

    fn replace(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: JoinOptions,
    ) -> Transformed<Arc<dyn ExecutionPlan>> {
        let Some(join) = as_hash_join(Arc::clone(&plan)) else {
            if let Some(why) = why_not(plan.as_ref()) {
                log::debug!("{} is left to DataFusion: {why}", plan.name());
            }
            return Transformed::no(plan);
        };
        let join = WorkaheadJoinExec::of(join).with_caches(self.caches).with_join_options(options);
        if let Some(why) = join.left_alone() {
            log::info!("a hash join is left to DataFusion: {why}");
        }
        Transformed::yes(Arc::new(join))
    }
}

impl PhysicalOptimizerRule for WorkaheadJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = WorkaheadOptions::of(config);
        if !options.enabled {
            return Ok(plan);
        }
        let join_options = options.join_options()?;
        Ok(plan.transform_up(|plan| Ok(self.replace(plan, join_options)))?.data)
    }

    fn name(&self) -> &str {
        "WorkaheadJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Why a join of another kind is not replaced.
fn why_not(plan: &dyn ExecutionPlan) -> Option<&'static str> {
    match plan.name() {
        "SortMergeJoinExec" => {
            Some("SET workahead.replace_sort_merge_joins = true makes hash joins of them")
        }
        "NestedLoopJoinExec" | "PiecewiseMergeJoinExec" | "CrossJoinExec" => {
            Some("nothing in its condition is an equality of both sides")
        }
        "SymmetricHashJoinExec" => Some("its inputs have no end"),
        _ => None,
    }
}

/// Inserts the rules that give a session our joins. The session also needs
/// [`WorkaheadOptions`] among its configuration's extensions, for `SET workahead.…` to work.
///
/// ```
/// use datafusion_physical_optimizer::optimizer::PhysicalOptimizer;
///
/// let mut rules = PhysicalOptimizer::new().rules;
/// workahead_datafusion::insert_rules(&mut rules);
/// assert!(rules.iter().any(|rule| rule.name() == "WorkaheadJoins"));
/// ```
pub fn insert_rules(rules: &mut PhysicalRules) {
    let at = |rules: &PhysicalRules, name: &str| rules.iter().rposition(|rule| rule.name() == name);
    let end = rules.len();
    let joins = Arc::new(WorkaheadJoins::default());
    let last = at(rules, LAST_PUSH_DOWN).unwrap_or(end);
    rules.insert((last + 1).min(end), Arc::new(SidewaysFilters));
    rules.insert(last, joins);
    let first = at(rules, SELECTION).unwrap_or(0);
    rules.insert(first, Arc::new(HashInsteadOfSortMerge));
}

#[cfg(test)]
mod tests {
    use datafusion_physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    #[test]
    fn ours_comes_after_projections_and_before_dynamic_filters() {
        let mut rules = PhysicalOptimizer::new().rules;
        insert_rules(&mut rules);
        let names: Vec<&str> = rules.iter().map(|rule| rule.name()).collect();
        let at = |name: &str| names.iter().rposition(|found| *found == name).expect(name);
        assert!(at("ProjectionPushdown") < at("WorkaheadJoins"));
        assert_eq!(at("WorkaheadJoins") + 1, at(LAST_PUSH_DOWN));
        assert_eq!(at(LAST_PUSH_DOWN) + 1, at("SidewaysFilters"));
        assert_eq!(at("HashInsteadOfSortMerge") + 1, at(SELECTION));
    }

    #[test]
    fn a_session_of_other_rules_gets_ours_too() {
        let mut rules: PhysicalRules = Vec::new();
        insert_rules(&mut rules);
        let names: Vec<&str> = rules.iter().map(|rule| rule.name()).collect();
        assert_eq!(names, ["HashInsteadOfSortMerge", "WorkaheadJoins", "SidewaysFilters"]);
    }
}
