//! Filter push-down: which columns of a node's inputs a condition on its output can be applied to.
//!
//! Columns are mapped by position, for the kinds of nodes listed here: DataFusion's own push-down
//! goes by names, and joins and groups have several columns of one name.

use std::sync::Arc;

use datafusion_common::JoinType;
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::coop::CooperativeExec;
use datafusion_physical_plan::expressions::Column;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::joins::HashJoinExec;
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::WorkaheadJoinExec;
use crate::sideways_filter::SidewaysFilterExec;

/// For each output column, the position of the same column in the input.
pub(crate) type ColumnMapping = Vec<Option<usize>>;

/// For each input, the columns by which a condition on the output may be applied before the node
/// instead of after it. Empty if no input is known to allow it.
pub(crate) fn pushdown_mappings(plan: &Arc<dyn ExecutionPlan>) -> Vec<ColumnMapping> {
    // Dropping rows below a limit changes which rows it leaves.
    if plan.fetch().is_some() {
        return Vec::new();
    }
    if let Some(join) = plan.downcast_ref::<WorkaheadJoinExec>() {
        return through_join(join.planned()).into();
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        return through_groups(aggregate).into_iter().collect();
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return vec![projection.expr().iter().map(|of| position(&of.expr)).collect()];
    }
    let all = (0..plan.schema().fields().len()).map(Some).collect();
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let chosen = filter.projection().as_ref();
        return vec![chosen.map_or(all, |chosen| chosen.iter().copied().map(Some).collect())];
    }
    let same = plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<SidewaysFilterExec>();
    if same { vec![all] } else { Vec::new() }
}

fn position(expression: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expression.downcast_ref::<Column>().map(Column::index)
}

/// Rows may be dropped from a side unless rows of the other side would come out unmatched then.
fn through_join(join: &HashJoinExec) -> [ColumnMapping; 2] {
    use JoinType::{
        Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi,
    };
    let [left, right] = [join.left(), join.right()].map(|side| side.schema().fields().len());
    // The output columns of each side, and whether its rows may be dropped.
    let (out, may_drop) = match join.join_type() {
        Inner => ([left, right], [true, true]),
        Left => ([left, right], [true, false]),
        Right => ([left, right], [false, true]),
        Full => ([left, right], [false, false]),
        LeftSemi | LeftAnti | LeftMark => ([left, 0], [true, false]),
        RightSemi | RightAnti | RightMark => ([0, right], [false, true]),
    };
    let mapping = |start: usize, side: usize| {
        let of = |column: usize| {
            column.checked_sub(start).filter(|column| may_drop[side] && *column < out[side])
        };
        match join.projection.as_ref() {
            Some(chosen) => chosen.iter().map(|column| of(*column)).collect(),
            None => (0..join.schema().fields().len()).map(of).collect(),
        }
    };
    [mapping(0, 0), mapping(out[0], 1)]
}

/// Conditions on group keys drop whole groups. An aggregate without keys gives a row even for no
/// input.
fn through_groups(aggregate: &AggregateExec) -> Option<ColumnMapping> {
    let groups = aggregate.group_expr();
    let columns = aggregate.schema().fields().len();
    let keys = groups.expr().iter().map(|(key, _)| position(key));
    let mapping: ColumnMapping = keys.chain(std::iter::repeat(None)).take(columns).collect();
    (groups.is_single() && !groups.expr().is_empty() && aggregate.limit_options().is_none())
        .then_some(mapping)
}
