//! Sideways information passing: a join's build keys drop rows below the joins and aggregates of
//! its probe side.
//!
//! ```text
//! join, built from 57 orders ── orders in (…) ──┐
//!   └─ join of customers and orders             │ down through every join and aggregate whose
//!        ├─ customers                           │ rows it may take away
//!        └─ sideways filter ◄───────────────────┘
//!             └─ orders
//! ```
//!
//! DataFusion takes a dynamic filter down to scans, which skip files and row groups. A scan of
//! memory can't, and one of Parquet reads whole pages; then joins and aggregates in between do all
//! their work for rows that the join above drops. Columns of a node are mapped to those of its
//! inputs by position ([`pushdown_mappings`]), since names repeat. Keys are plain columns all the
//! way down, so that no expression sees rows that a join above it would have dropped. Filters that
//! work in reverse, on build sides, are those between stages ([`crate::across_stages`]). (Beeri and
//! Ramakrishnan, "On the power of magic", 1987; Ives and Taylor, "Sideways information passing for
//! push-style query processing", 2008.)

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::error::Result;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_physical_optimizer::PhysicalOptimizerRule;
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::expressions::Column;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::across_stages::filtered_in_reverse;
use crate::plan::with_inputs;
use crate::pushdown_mapping::pushdown_mappings;
use crate::sideways_filter::SidewaysFilterExec;
use crate::{WorkaheadJoinExec, WorkaheadOptions};

/// Puts dynamic filters below joins and aggregates, whose work they save.
///
/// It needs filters that were pushed down, so it follows `FilterPushdown(Post)`:
///
/// ```
/// use datafusion_physical_optimizer::optimizer::PhysicalOptimizer;
/// use datafusion_physical_optimizer::PhysicalOptimizerRule;
/// use workahead_datafusion::{SidewaysFilters, insert_rules};
///
/// let mut rules = PhysicalOptimizer::new().rules;
/// insert_rules(&mut rules);
/// let at = |name: &str| rules.iter().rposition(|rule| rule.name() == name);
/// let before = at(SidewaysFilters.name()).map(|own| own - 1);
/// assert_eq!(before, at("FilterPushdown(Post)"));
/// ```
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
        filtered_in_reverse(&plan.transform_up(push_filter_down)?.data)
    }

    fn name(&self) -> &str {
        "SidewaysFilters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Puts the filter of a join into its probe side.
fn push_filter_down(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let no = Ok(Transformed::no(Arc::clone(&plan)));
    let Some(join) = plan.downcast_ref::<WorkaheadJoinExec>() else { return no };
    let plain = |key: &Arc<dyn PhysicalExpr>| key.is::<Column>();
    if join.chooses_build_side() || !join.planned().on().iter().all(|(_, right)| plain(right)) {
        return no;
    }
    let Some(filter) = join.dynamic_expressions_produced().pop() else { return no };
    let [left, right] = join.children()[..] else { return no };
    match insert_filter(right, &filter, SavedWork::None)? {
        Some(right) => {
            Ok(Transformed::yes(with_inputs(Arc::clone(&plan), vec![Arc::clone(left), right])?))
        }
        None => no,
    }
}

/// The work above a plan that a filter on its rows saves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SavedWork {
    /// At most the evaluation of another filter.
    None,
    /// The work of a join, an aggregate or a sort.
    Operator,
}

/// The plan with the filter as far down as it is correct and saves work; none if it saves none.
fn insert_filter(
    plan: &Arc<dyn ExecutionPlan>,
    filter: &Arc<dyn PhysicalExpr>,
    saved: SavedWork,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let mut children: Vec<_> = plan.children().into_iter().cloned().collect();
    let mut pushed = false;
    for (child, columns) in children.iter_mut().zip(pushdown_mappings(plan)) {
        let Some(filter) = remap(filter, child, &columns)? else { continue };
        if let Some(with) = insert_filter(child, &filter, saved_below(plan, saved))? {
            *child = with;
            pushed = true;
        }
    }
    if pushed {
        return with_inputs(Arc::clone(plan), children).map(Some);
    }
    if saved == SavedWork::None {
        return Ok(None);
    }
    Ok(Some(Arc::new(SidewaysFilterExec::new(Arc::clone(plan), Arc::clone(filter)))))
}

/// The filter over a child's columns, if it has all of them.
fn remap(
    filter: &Arc<dyn PhysicalExpr>,
    child: &Arc<dyn ExecutionPlan>,
    columns: &[Option<usize>],
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let (schema, mut all) = (child.schema(), true);
    let filter = Arc::clone(filter).transform_down(|expression| {
        let Some(column) = expression.downcast_ref::<Column>() else {
            return Ok(Transformed::no(expression));
        };
        let Some(at) = columns.get(column.index()).copied().flatten() else {
            all = false;
            return Ok(Transformed::no(expression));
        };
        Ok(Transformed::yes(Arc::new(Column::new(schema.field(at).name(), at)) as _))
    })?;
    Ok(all.then_some(filter.data))
}

/// The work saved by a filter below a plan.
fn saved_below(plan: &Arc<dyn ExecutionPlan>, above: SavedWork) -> SavedWork {
    if plan.is::<WorkaheadJoinExec>() || plan.is::<AggregateExec>() || plan.is::<SortExec>() {
        SavedWork::Operator
    } else if plan.is::<FilterExec>() {
        // It drops rows itself, and its own condition costs no more.
        SavedWork::None
    } else {
        above
    }
}
