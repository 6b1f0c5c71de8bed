//! Parts of a plan that are equal and aggregate are run once: a `WITH` query that is named twice,
//! or a view.
//!
//! ```text
//! join                                   join
//! ├─ aggregate of lines                  ├─ reused subplan 1 ─► aggregate of lines
//! └─ max                         ──►     └─ max
//!     └─ aggregate of lines                  └─ reused subplan 1 (reads what the other has)
//! ```
//!
//! DataFusion plans a `WITH` query anew wherever it is named. Here the rows of an aggregate, and of
//! what stands above it in each copy alike, are kept for all readers, in memory up to a part of the
//! pool and in a spill file beyond it. A filter of one reader can't reach into what others read, so
//! this comes before filters of joins are pushed down. Subplans are equal when they are the same
//! bytes in DataFusion's own format of plans, and read the same files or the same arrays.

mod identity;
mod node;
mod subplan;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::{ExecutionPlan, displayable, replace_children_if_necessary};
use workahead_datafusion::WorkaheadOptions;

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
        let options = WorkaheadOptions::of(config);
        if !options.enabled || !options.reuse_subplans || !has_equal_aggregates(&plan) {
            return Ok(plan);
        }
        let mut found = Candidates::of(&plan);
        found.count_uses(&plan, 1);
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

/// Subplans that occur more than once. Nodes are known by their address.
#[derive(Default)]
struct Candidates {
    /// Of nodes with an aggregate: the hash of their text.
    hashes: HashMap<usize, u64>,
    /// How many nodes have that text.
    counts: HashMap<u64, usize>,
    all: Vec<Candidate>,
    /// The subplan that a node is a copy of.
    copies: HashMap<usize, usize>,
    numbers: usize,
}

/// A subplan with all its copies.
struct Candidate {
    identity: Identity,
    subplan: Arc<Subplan>,
    /// Places at which it would be read.
    uses: usize,
    /// The copy that was found first.
    first: Arc<dyn ExecutionPlan>,
}

fn address(plan: &Arc<dyn ExecutionPlan>) -> usize {
    Arc::as_ptr(plan).cast::<u8>() as usize
}

impl Candidates {
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Self {
        let mut found = Self::default();
        found.hash(plan);
        for hash in found.hashes.values() {
            *found.counts.entry(*hash).or_default() += 1;
        }
        found
    }

    /// The hash of a plan's text, kept where the plan has an aggregate; and whether it has.
    fn hash(&mut self, plan: &Arc<dyn ExecutionPlan>) -> (u64, bool) {
        let mut hasher = DefaultHasher::new();
        displayable(plan.as_ref()).one_line().to_string().hash(&mut hasher);
        let mut has = is_whole_aggregate(plan.as_ref());
        for child in plan.children() {
            let (hash, below) = self.hash(child);
            hash.hash(&mut hasher);
            has |= below;
        }
        let hash = hasher.finish();
        if has {
            self.hashes.insert(address(plan), hash);
        }
        (hash, has)
    }

    /// Counts what is below the copies of one subplan once, as it will run. Inside of copies, only
    /// what occurs more often than they do is worth a look.
    fn count_uses(&mut self, plan: &Arc<dyn ExecutionPlan>, copies: usize) {
        let Some(hash) = self.hashes.get(&address(plan)).copied() else { return };
        let count = self.counts[&hash];
        let Some(identity) = (count > copies).then(|| Identity::of(plan, hash)).flatten() else {
            return plan.children().into_iter().for_each(|child| self.count_uses(child, copies));
        };
        let known = self.all.iter().position(|candidate| candidate.identity == identity);
        if let Some(at) = known {
            self.all[at].uses += 1;
            let first = Arc::clone(&self.all[at].first);
            return self.copy(&first, plan);
        }
        self.copies.insert(address(plan), self.all.len());
        let (subplan, first) = (Arc::default(), Arc::clone(plan));
        self.all.push(Candidate { identity, subplan, uses: 1, first });
        plan.children().into_iter().for_each(|child| self.count_uses(child, count));
    }

    /// Every node of a copy reads what the first one's reads.
    fn copy(&mut self, first: &Arc<dyn ExecutionPlan>, plan: &Arc<dyn ExecutionPlan>) {
        if let Some(at) = self.copies.get(&address(first)) {
            self.copies.insert(address(plan), *at);
        }
        for (first, plan) in first.children().into_iter().zip(plan.children()) {
            self.copy(first, plan);
        }
    }

    fn replace(&mut self, plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let at = self.copies.get(&address(&plan)).copied();
        let at = at.filter(|at| self.all[*at].uses > 1);
        if let Some(at) = at {
            self.all[at].subplan.number.get_or_init(|| {
                self.numbers += 1;
                self.numbers
            });
        }
        let children = plan.children().into_iter().cloned();
        let children = children.map(|child| self.replace(child)).collect::<Result<_>>()?;
        let plan = replace_children_if_necessary(plan, children)?;
        Ok(match at {
            Some(at) => Arc::new(ReusedSubplanExec::new(plan, Arc::clone(&self.all[at].subplan))),
            None => plan,
        })
    }
}
