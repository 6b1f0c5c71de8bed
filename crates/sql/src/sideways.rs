//! Sideways information passing: what a join knows of its keys drops rows below the joins and
//! aggregates beneath it.
//!
//! ```text
//! join, built from 57 orders ── orders in (…) ──┐
//!   └─ join of customers and orders             │ down through every join and aggregate whose
//!        ├─ customers                           │ rows it may take away
//!        └─ sideways filter ◄───────────────────┘
//!             └─ orders
//! ```
//!
//! A dynamic filter goes as far down as DataFusion's own push-down would take it, and ends there at
//! scans that can skip files or row groups. A scan of memory can't, and one of Parquet reads whole
//! pages; then joins and aggregates below do all their work for rows that the join above drops.
//! (Beeri and Ramakrishnan, "On the power of magic", 1987; Ives and Taylor, "Sideways information
//! passing for push-style query processing", 2008.)

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::filter_pushdown::{FilterPushdownPhase, PushedDown};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::sideways_filter::SidewaysFilterExec;
use crate::{WorkaheadJoinExec, WorkaheadOptions};

/// Puts filters below the joins and aggregates that they spare work.
#[derive(Debug, Default)]
pub struct SidewaysFilters;

impl PhysicalOptimizerRule for SidewaysFilters {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = WorkaheadOptions::of(config);
        if !options.enabled || !options.sideways_filters {
            return Ok(plan);
        }
        Ok(plan.transform_up(|plan| offer(plan, config))?.data)
    }

    fn name(&self) -> &str {
        "SidewaysFilters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Sends the filter of a join down its probe side. The other side is read before there is one.
fn offer(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(join) = plan.downcast_ref::<WorkaheadJoinExec>().filter(|join| !join.measures())
    else {
        return Ok(Transformed::no(plan));
    };
    let Some(filter) = join.dynamic_expressions_produced().pop() else {
        return Ok(Transformed::no(plan));
    };
    let [left, right] = join.children()[..] else { return Ok(Transformed::no(plan)) };
    match sink(right, filter, Worth::Nothing, config)? {
        Some(right) => Ok(Transformed::yes(over(&plan, vec![Arc::clone(left), right])?)),
        None => Ok(Transformed::no(plan)),
    }
}

/// What a filter above a plan would spare.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Worth {
    /// Nothing but what it is compared with anyway.
    Nothing,
    /// The work of a join, an aggregate or a sort.
    Work,
}

/// A plan with the filter in it, as far down as it may and is worth being.
fn sink(
    plan: &Arc<dyn ExecutionPlan>,
    filter: Arc<dyn PhysicalExpr>,
    worth: Worth,
    config: &ConfigOptions,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let mut children: Vec<_> = plan.children().into_iter().cloned().collect();
    let mut sunk = false;
    // What a limit leaves is not known before it is reached.
    if plan.fetch().is_none() && !children.is_empty() {
        let phase = FilterPushdownPhase::Post;
        let told = plan.gather_filters_for_pushdown(phase, vec![Arc::clone(&filter)], config)?;
        for (child, filters) in children.iter_mut().zip(told.parent_filters()) {
            let allowed = filters.into_iter().next();
            let Some(filter) = allowed.filter(|of| matches!(of.discriminant, PushedDown::Yes))
            else {
                continue;
            };
            if let Some(with) = sink(child, filter.predicate, below(plan, worth), config)? {
                *child = with;
                sunk = true;
            }
        }
    }
    if sunk {
        return over(plan, children).map(Some);
    }
    if worth == Worth::Nothing {
        return Ok(None);
    }
    Ok(Some(Arc::new(SidewaysFilterExec::new(Arc::clone(plan), filter))))
}

/// What a filter spares below a plan.
fn below(plan: &Arc<dyn ExecutionPlan>, above: Worth) -> Worth {
    if plan.is::<WorkaheadJoinExec>() || plan.is::<AggregateExec>() || plan.is::<SortExec>() {
        Worth::Work
    } else if plan.is::<FilterExec>() {
        // Its rows are fewer, and its own condition is no dearer.
        Worth::Nothing
    } else {
        above
    }
}

fn over(
    plan: &Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(children, options)
}
