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

/// Methods of a node whose rows are those of its only input, or some of them. Its method `over`
/// gives the same node over another input. For nodes of this project; what it names, they import.
#[doc(hidden)]
#[macro_export]
macro_rules! like_its_input {
    () => {
        fn properties(&self) -> &Arc<PlanProperties> {
            self.input.properties()
        }

        fn maintains_input_order(&self) -> Vec<bool> {
            vec![true]
        }

        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
        }

        fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
            vec![&self.input]
        }

        fn replace_children(
            self: Arc<Self>,
            children: Vec<Arc<dyn ExecutionPlan>>,
            _: ReplaceChildrenOptions,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            let Ok([input]) = <[_; 1]>::try_from(children) else {
                return internal_err!("{} has one input", self.name());
            };
            Ok(Arc::new(self.over(input)))
        }

        fn with_new_children(
            self: Arc<Self>,
            children: Vec<Arc<dyn ExecutionPlan>>,
        ) -> Result<Arc<dyn ExecutionPlan>> {
            $crate::with_inputs(self, children)
        }
    };
}
