//! Broadcasts to all workers, kept in memory as small as they are.
//!
//! The engine keeps a side that it sends to all until the query ends, and charges each batch with
//! all buffers that it refers to. Rows of a join refer to the texts of its whole build side:
//! without a copy, a side of 60 MB is charged 40 GB, and keeps the build side too.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
#[expect(deprecated, reason = "its successor is not a node, and each operator has its own")]
use datafusion::physical_plan::coalesce_batches::CoalesceBatchesExec;
use datafusion_distributed::BroadcastExec;
use workahead_datafusion::with_inputs;

/// A plan that copies the rows which it sends to all workers.
pub(crate) fn compact(
    plan: Arc<dyn ExecutionPlan>,
    batch_rows: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let compacted = plan.transform_down(|node| {
        if !node.is::<BroadcastExec>() {
            return Ok(Transformed::no(node));
        }
        let copied = |input: &Arc<dyn ExecutionPlan>| {
            #[expect(deprecated, reason = "as above")]
            let copies = CoalesceBatchesExec::new(Arc::clone(input), batch_rows);
            Arc::new(copies) as _
        };
        let inputs = node.children().into_iter().map(copied).collect();
        with_inputs(node, inputs).map(Transformed::yes)
    });
    compacted.map(|compacted| compacted.data)
}
