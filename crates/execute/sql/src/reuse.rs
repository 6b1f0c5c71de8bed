//! Equal parts of a plan that aggregate are run once: a `WITH` query that is named twice, or a view.
//!
//! ```text
//! join                                   join
//! ├─ aggregate of lines                  ├─ reused subplan 1 ─► aggregate of lines
//! └─ max                         ──►     └─ max
//!     └─ aggregate of lines                  └─ reused subplan 1 (reads what the other has)
//! ```
//!
//! DataFusion plans a `WITH` query anew wherever it is named. Here the rows of an aggregate, and of
//! what stands above it in each copy alike, are kept for all that ask, in memory up to a part of the
//! pool and in a spill file beyond. A filter of one reader can't reach into what others read too, so
//! it comes before filters of joins are pushed down. Subplans are equal when they are the same bytes
//! in DataFusion's own format of plans, and read the same files or the same arrays.

mod identity;
mod node;
mod subplan;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::{ExecutionPlan, displayable};
use workahead_datafusion::{WorkaheadOptions, with_inputs};

use identity::Identity;
use node::ReusedSubplanExec;
use subplan::Subplan;

/// Runs equal subplans once.
#[derive(Debug, Default)]
pub(crate) struct ReusedSubplans;

impl PhysicalOptimizerRule for ReusedSubplans {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = config.extensions.get::<WorkaheadOptions>();
        let wanted = options.is_none_or(|options| options.enabled && options.reuse_subplans);
        if !wanted || !has_equal_aggregates(&plan) {
            return Ok(plan);
        }
        let mut found = Candidates::of(&plan);
        found.count_uses(&plan);
        found.replace(plan)
    }

    fn name(&self) -> &str {
        "ReusedSubplans"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a node puts out whole groups.
fn is_whole_aggregate(plan: &dyn ExecutionPlan) -> bool {
    let mode = plan.downcast_ref::<AggregateExec>().map(AggregateExec::mode);
    mode.is_some_and(|mode| !matches!(mode, AggregateMode::Partial))
}

/// A quick look, which is all that most plans need.
fn has_equal_aggregates(plan: &Arc<dyn ExecutionPlan>) -> bool {
    fn look(plan: &Arc<dyn ExecutionPlan>, seen: &mut Vec<String>) -> bool {
        if is_whole_aggregate(plan.as_ref()) {
            let line = displayable(plan.as_ref()).one_line().to_string();
            if seen.contains(&line) {
                return true;
            }
            seen.push(line);
        }
        plan.children().into_iter().any(|child| look(child, seen))
    }
    look(plan, &mut Vec::new())
}

/// Subplans that occur more than once, by their text.
struct Candidates {
    by_text: HashMap<String, Vec<Candidate>>,
    numbers: usize,
}

/// One of several equal subplans.
struct Candidate {
    identity: Identity,
    subplan: Arc<Subplan>,
    /// Places at which it would be read.
    uses: usize,
}

fn text(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(false).to_string()
}

impl Candidates {
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let mut found = Self { by_text: HashMap::new(), numbers: 0 };
        let mut counts: HashMap<String, Vec<Arc<dyn ExecutionPlan>>> = HashMap::new();
        collect(plan, &mut counts);
        counts.retain(|_, plans| plans.len() > 1);
        for (text, plans) in counts {
            for identity in plans.iter().filter_map(Identity::of) {
                let all = found.by_text.entry(text.clone()).or_default();
                if !all.iter().any(|candidate| candidate.identity == identity) {
                    let subplan = Arc::default();
                    all.push(Candidate { identity, subplan, uses: 0 });
                }
            }
        }
        found
    }

    /// The one that a plan is equal to.
    fn find(&mut self, plan: &Arc<dyn ExecutionPlan>) -> Option<&mut Candidate> {
        let all = self.by_text.get_mut(&text(plan))?;
        let identity = Identity::of(plan)?;
        all.iter_mut().find(|candidate| candidate.identity == identity)
    }

    /// Counts what is below the copies of one subplan once, as it will run.
    fn count_uses(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        if let Some(candidate) = self.find(plan) {
            candidate.uses += 1;
            if candidate.uses > 1 {
                return;
            }
        }
        plan.children().into_iter().for_each(|child| self.count_uses(child));
    }

    fn replace(&mut self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let found = self.find(&plan).filter(|candidate| candidate.uses > 1);
        let subplan = found.map(|candidate| Arc::clone(&candidate.subplan));
        if let Some(subplan) = &subplan {
            let numbers = &mut self.numbers;
            subplan.number.get_or_init(|| {
                *numbers += 1;
                *numbers
            });
        }
        let before: Vec<_> = plan.children().into_iter().cloned().collect();
        let after = before.iter().cloned().map(|child| self.replace(child));
        let after = after.collect::<Result<Vec<_>>>()?;
        let plan = match before.iter().zip(&after).all(|(one, other)| Arc::ptr_eq(one, other)) {
            true => plan,
            false => with_inputs(plan, after)?,
        };
        Ok(match subplan {
            Some(subplan) => Arc::new(ReusedSubplanExec::new(plan, subplan)),
            None => plan,
        })
    }
}

/// Keeps every subplan that has an aggregate, by its text; says whether this one has.
fn collect(
    plan: &Arc<dyn ExecutionPlan>,
    counts: &mut HashMap<String, Vec<Arc<dyn ExecutionPlan>>>,
) -> bool {
    let below = plan.children().into_iter().fold(false, |any, child| collect(child, counts) | any);
    let has = below || is_whole_aggregate(plan.as_ref());
    if has {
        counts.entry(text(plan)).or_default().push(Arc::clone(plan));
    }
    has
}
