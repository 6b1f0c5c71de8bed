//! A planned hash join as one of [`workahead_join`].

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion_common::error::Result;
use datafusion_common::{JoinSide, JoinType, NullEquality};
use datafusion_physical_plan::joins::HashJoinExec;
use datafusion_physical_plan::joins::utils::{ColumnIndex, build_join_schema};
use workahead_join::{Filter, HashJoin, Side};

use crate::error::from_join;
use crate::input::Input;
use crate::residual::Residual;

/// Both inputs, and the join of them. The left side is the build side unless it is changed later.
#[derive(Debug)]
pub(crate) struct Translation {
    pub(crate) left: Input,
    pub(crate) right: Input,
    pub(crate) join: HashJoin,
}

impl Translation {
    /// An error means that the join is not supported.
    pub(crate) fn of(plan: &HashJoinExec) -> Result<Self> {
        let (left_schema, right_schema) = (plan.left().schema(), plan.right().schema());
        let (_, all) = build_join_schema(&left_schema, &right_schema, plan.join_type());
        let output: Vec<ColumnIndex> = match &plan.projection {
            Some(kept) => kept.iter().map(|at| all[*at].clone()).collect(),
            None => all,
        };
        let filtered = plan.filter().map_or(&[][..], |filter| filter.column_indices());
        let needed = |side: JoinSide| -> BTreeSet<usize> {
            let both = output.iter().chain(filtered);
            both.filter(|column| column.side == side).map(|column| column.index).collect()
        };
        let (lefts, rights): (Vec<_>, Vec<_>) = plan.on().iter().cloned().unzip();
        let left = Input::new(&left_schema, &lefts, needed(JoinSide::Left))?;
        let right = Input::new(&right_schema, &rights, needed(JoinSide::Right))?;
        let join = join(plan, &left, &right, &output)?;
        Ok(Self { left, right, join })
    }

    /// The input of a side.
    pub(crate) fn of_side(&self, side: Side) -> &Input {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }
}

fn join(
    plan: &HashJoinExec,
    left: &Input,
    right: &Input,
    output: &[ColumnIndex],
) -> Result<HashJoin> {
    let on: Vec<_> = left.keys.iter().copied().zip(right.keys.iter().copied()).collect();
    let (lefts, rights) = (Arc::clone(&left.schema), Arc::clone(&right.schema));
    let join_type = join_type(*plan.join_type());
    let mut join = HashJoin::new(lefts, rights, &on, join_type).map_err(from_join)?;
    join = join.with_build_side(Side::Left).with_null_equality(match plan.null_equality() {
        NullEquality::NullEqualsNothing => workahead_join::NullEquality::NullEqualsNothing,
        NullEquality::NullEqualsNull => workahead_join::NullEquality::NullEqualsNull,
    });
    if plan.null_aware {
        join = join.with_null_aware().map_err(from_join)?;
    }
    if let Some(filter) = plan.filter() {
        let columns = filter.column_indices().iter().filter_map(|column| match column.side {
            JoinSide::Left => Some((Side::Left, left.position(column.index)?)),
            JoinSide::Right => Some((Side::Right, right.position(column.index)?)),
            JoinSide::None => None,
        });
        let filter = Filter {
            columns: columns.collect(),
            schema: Arc::clone(filter.schema()),
            filter: Arc::new(Residual(Arc::clone(filter.expression()))),
        };
        join = join.with_filter(filter).map_err(from_join)?;
    }
    // The join's output: left columns, right columns, mark, as far as the join type has them.
    let before_right = if join_type.outputs(Side::Left) { left.schema.fields().len() } else { 0 };
    let mark = join.schema().fields().len().saturating_sub(1);
    let projection = output.iter().filter_map(|column| match column.side {
        JoinSide::Left => left.position(column.index),
        JoinSide::Right => right.position(column.index).map(|at| before_right + at),
        JoinSide::None => Some(mark),
    });
    let projection = projection.collect();
    join.with_projection(projection).map_err(from_join)
}

fn join_type(from: JoinType) -> workahead_join::JoinType {
    use workahead_join::JoinType as Ours;
    match from {
        JoinType::Inner => Ours::Inner,
        JoinType::Left => Ours::Left,
        JoinType::Right => Ours::Right,
        JoinType::Full => Ours::Full,
        JoinType::LeftSemi => Ours::LeftSemi,
        JoinType::RightSemi => Ours::RightSemi,
        JoinType::LeftAnti => Ours::LeftAnti,
        JoinType::RightAnti => Ours::RightAnti,
        JoinType::LeftMark => Ours::LeftMark,
        JoinType::RightMark => Ours::RightMark,
    }
}
