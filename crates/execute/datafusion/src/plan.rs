//! Nodes of DataFusion's plans, as the rules and our nodes handle them.

use std::any::Any;
use std::sync::Arc;

use datafusion_common::error::Result;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion_physical_plan::joins::HashJoinExec;

/// The plan as a hash join, if it is one.
pub(crate) fn as_hash_join(plan: Arc<dyn ExecutionPlan>) -> Option<Arc<HashJoinExec>> {
    (plan as Arc<dyn Any + Send + Sync>).downcast().ok()
}

/// The same node over other inputs, with what follows from them computed anew.
///
/// # Errors
/// When the node refuses them.
pub fn with_inputs(
    plan: Arc<dyn ExecutionPlan>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.replace_children(inputs, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}
