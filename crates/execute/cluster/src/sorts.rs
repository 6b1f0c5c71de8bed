//! Sorts whose keys hold on a worker too.
//!
//! DataFusion leaves a column out of a sort where a filter below makes it constant. Which columns
//! are constant is not sent with a stage, so a window that sorts by one of them would find its
//! input unsorted there: `All partition by columns should have an ordering`.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use workahead_datafusion::with_inputs;

/// A plan whose windows sort by all columns that they need in order.
pub(crate) fn complete(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let completed = plan.transform_down(|node| {
        let is_window = node.is::<WindowAggExec>() || node.is::<BoundedWindowAggExec>();
        match is_window.then(|| complete_sort(node.as_ref())).flatten() {
            Some(sort) => with_inputs(node, vec![sort]).map(Transformed::yes),
            None => Ok(Transformed::no(node)),
        }
    });
    completed.map(|completed| completed.data)
}

/// The sort below a window with all columns that it needs, where constant ones were left out.
fn complete_sort(window: &dyn ExecutionPlan) -> Option<Arc<dyn ExecutionPlan>> {
    let sort: &SortExec = window.children().first()?.downcast_ref()?;
    let required = window.required_input_ordering().into_iter().next()??.into_single();
    let wanted: Vec<PhysicalSortExpr> = required.into_iter().map(Into::into).collect();
    let constants = sort.input().equivalence_properties();
    let left: Vec<&PhysicalSortExpr> =
        wanted.iter().filter(|by| constants.is_expr_constant(&by.expr).is_none()).collect();
    let is_complete = left.len() == wanted.len();
    if is_complete || !left.into_iter().eq(sort.expr().iter()) {
        return None;
    }
    let sorted = SortExec::new(LexOrdering::new(wanted)?, Arc::clone(sort.input()))
        .with_preserve_partitioning(sort.preserve_partitioning())
        .with_fetch(sort.fetch());
    Some(Arc::new(sorted))
}
