//! Where filters cross the stages of the engine's plans.

use std::sync::Arc;
use std::time::Duration;

use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{BroadcastExec, NetworkBoundaryExt};
use workahead_datafusion::{FiltersAcrossStages, StageRole};

/// The engine does not show the type.
const ISOLATOR: &str = "ChildrenIsolatorUnionExec";

/// A plan with filters below its exchanges.
pub(crate) fn insert(
    plan: &Arc<dyn ExecutionPlan>,
    wait: Duration,
) -> Result<Arc<dyn ExecutionPlan>> {
    FiltersAcrossStages { role, wait }.insert(plan)
}

fn role(node: &dyn ExecutionPlan) -> StageRole {
    if node.is_network_boundary() {
        StageRole::Exchange
    } else if node.is::<BroadcastExec>() {
        StageRole::Sender
    } else if node.name() == ISOLATOR {
        StageRole::Isolator
    } else {
        StageRole::Operator
    }
}
