//! The dynamic filter: the build side's keys, accumulated for the probe side's scan.
//!
//! ```text
//! build 0 ─ keys ─┐
//! build 1 ─ keys ─┼─ all are in ─► filter.update( lo ≤ key ≤ hi [and key in (…)] ) ─► complete
//! build 2 ─ keys ─┘
//! ```
//!
//! A filter made from some of the builds would drop rows that match the others, so it is filled
//! once, when every build is complete. A build that failed or was dropped is *unknown*, and the
//! filter stays empty then (a partition that waits must not wait for ever: apache/datafusion PR
//! #21666). The filter has the union of all partitions' bounds and not one condition for each,
//! because a scan can prune row groups and pages with `lo ≤ key ≤ hi`, and not with a CASE over a
//! hash.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_common::NullEquality;
use datafusion_common::error::Result;
use datafusion_expr::Operator;
use datafusion_physical_plan::PhysicalExpr;
use datafusion_physical_plan::expressions::{
    BinaryExpr, DynamicFilterPhysicalExpr, InListExpr, IsNullExpr, lit,
};
use datafusion_physical_plan::joins::HashJoinExec;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::key_bitmap::InBitmapExpr;
use crate::keys::{Bounds, KeyReport, ListLimits};

/// A list of at most 20 values is better than a bitmap: a scan compares it with each row group's
/// bounds (`datafusion-pruning` looks at no longer one).
const LISTED: usize = 20;

/// The null keys that the filter must let pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nulls {
    /// None: they match nothing.
    Dropped,
    /// All, where the build side has null keys: they match each other.
    AsBuilt,
    /// All: `NOT IN` of a null is unknown, and the join has to see it.
    Kept,
}

/// The key reports of all builds of one join, and the filter that is made of them.
#[derive(Debug)]
pub(crate) struct DynamicFilterAccumulator {
    filter: Arc<DynamicFilterPhysicalExpr>,
    /// The probe side's keys.
    keys: Vec<Arc<dyn PhysicalExpr>>,
    probe: SchemaRef,
    nulls: Nulls,
    limits: ListLimits,
    state: Mutex<State>,
    complete: Notify,
}

#[derive(Debug)]
struct State {
    /// Builds that have not started.
    idle: Vec<bool>,
    /// Builds that have not contributed.
    missing: Vec<bool>,
    /// The contributions; none once one of them is unknown.
    known: Option<Vec<KeyReport>>,
    complete: bool,
}

impl DynamicFilterAccumulator {
    /// For a number of builds.
    pub(crate) fn new(
        join: &HashJoinExec,
        filter: Arc<DynamicFilterPhysicalExpr>,
        builds: usize,
        limits: ListLimits,
    ) -> Self {
        let nulls = match join.null_equality() {
            _ if join.null_aware => Nulls::Kept,
            NullEquality::NullEqualsNull => Nulls::AsBuilt,
            NullEquality::NullEqualsNothing => Nulls::Dropped,
        };
        Self {
            filter,
            keys: join.on().iter().map(|(_, right)| Arc::clone(right)).collect(),
            probe: join.right().schema(),
            nulls,
            limits,
            state: Mutex::new(State {
                idle: vec![true; builds],
                missing: vec![true; builds],
                known: Some(Vec::new()),
                complete: false,
            }),
            complete: Notify::new(),
        }
    }

    /// Adds a build's keys; `None` if the build will never be complete. Only the first call for a
    /// build counts.
    fn add(&self, build: usize, report: Option<KeyReport>) -> Result<()> {
        let known = {
            let mut state = self.state.lock();
            if !std::mem::take(&mut state.missing[build]) {
                return Ok(());
            }
            match (&mut state.known, report) {
                (Some(known), Some(report)) => known.push(report),
                (known, _) => *known = None,
            }
            if state.missing.contains(&true) {
                return Ok(());
            }
            state.known.take()
        };
        let filled = known.map_or(Ok(()), |known| self.fill(known));
        self.filter.mark_complete();
        self.state.lock().complete = true;
        self.complete.notify_waiters();
        filled
    }

    /// Waits until every build has contributed, so that a scan that starts later has the filter.
    /// Builds that have not started are not waited for: a consumer that reads one partition after
    /// the other would wait for ever.
    pub(crate) async fn wait(&self) {
        loop {
            let notified = self.complete.notified();
            if self.is_settled() {
                return;
            }
            notified.await;
        }
    }

    fn is_settled(&self) -> bool {
        let state = self.state.lock();
        state.complete || state.idle.contains(&true)
    }

    fn fill(&self, known: Vec<KeyReport>) -> Result<()> {
        let mut all: Option<KeyReport> = None;
        for report in known {
            all = Some(match all {
                None => report,
                Some(all) => all.and(report, self.limits)?,
            });
        }
        let Some(all) = all else { return Ok(()) };
        if let Some(predicate) = self.predicate(&all)? {
            self.filter.update(self.with_nulls(predicate, all.nulls)?)?;
        }
        Ok(())
    }

    fn predicate(&self, all: &KeyReport) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        if all.rows == 0 {
            return Ok(Some(lit(false)));
        }
        let bounds = self.keys.iter().zip(&all.bounds);
        let mut parts: Vec<Arc<dyn PhysicalExpr>> =
            bounds.filter_map(|(key, bounds)| Some(within(key, bounds.as_ref()?))).collect();
        for (at, key) in self.keys.iter().enumerate() {
            parts.extend(one_of(key, at, all, &self.probe)?);
        }
        Ok(parts.into_iter().reduce(|one, two| binary(one, Operator::And, two)))
    }

    /// Lets null keys pass where the join has to see them.
    fn with_nulls(
        &self,
        predicate: Arc<dyn PhysicalExpr>,
        built_nulls: bool,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match self.nulls {
            Nulls::Dropped => return Ok(predicate),
            Nulls::AsBuilt if !built_nulls => return Ok(predicate),
            Nulls::AsBuilt | Nulls::Kept => {}
        }
        let mut passing: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
        for key in &self.keys {
            if key.nullable(&self.probe)? {
                passing.push(Arc::new(IsNullExpr::new(Arc::clone(key))));
            }
        }
        passing.push(predicate);
        let any = passing.into_iter().reduce(|one, two| binary(one, Operator::Or, two));
        Ok(any.expect("the predicate is one"))
    }
}

/// Whether a key is one of those reported, where they are known one by one.
pub(crate) fn one_of(
    key: &Arc<dyn PhysicalExpr>,
    at: usize,
    all: &KeyReport,
    schema: &SchemaRef,
) -> Result<Option<Arc<dyn PhysicalExpr>>> {
    let (key, values) = (Arc::clone(key), all.values.as_ref().map(|values| &values[at]));
    let few = values.is_some_and(|values| values.len() <= LISTED);
    if let (Some(bitmap), false) = (&all.bitmaps[at], few) {
        return Ok(Some(Arc::new(InBitmapExpr::new(key, Arc::clone(bitmap)))));
    }
    let Some(values) = values else { return Ok(None) };
    let list = InListExpr::try_new_from_array(key, Arc::clone(values), false, schema)?;
    Ok(Some(Arc::new(list)))
}

/// Whether a key is within bounds.
pub(crate) fn within(key: &Arc<dyn PhysicalExpr>, bounds: &Bounds) -> Arc<dyn PhysicalExpr> {
    let from = binary(Arc::clone(key), Operator::GtEq, lit(bounds.min.clone()));
    let to = binary(Arc::clone(key), Operator::LtEq, lit(bounds.max.clone()));
    binary(from, Operator::And, to)
}

fn binary(
    left: Arc<dyn PhysicalExpr>,
    operator: Operator,
    right: Arc<dyn PhysicalExpr>,
) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(left, operator, right))
}

/// One build's contribution to the filter. If it is dropped without keys, the build is unknown.
#[derive(Debug)]
pub(crate) struct BuildContribution {
    filter: Arc<DynamicFilterAccumulator>,
    build: usize,
}

impl BuildContribution {
    /// For a build.
    pub(crate) fn new(filter: Arc<DynamicFilterAccumulator>, build: usize) -> Self {
        Self { filter, build }
    }

    /// The most keys that may be listed.
    pub(crate) fn limits(&self) -> ListLimits {
        self.filter.limits
    }

    /// Marks the build as started: it is polled from now on.
    pub(crate) fn start(&self) {
        self.filter.state.lock().idle[self.build] = false;
    }

    /// Adds the keys of the complete build.
    pub(crate) fn complete(&self, keys: KeyReport) -> Result<()> {
        self.filter.add(self.build, Some(keys))
    }
}

impl Drop for BuildContribution {
    fn drop(&mut self) {
        // After `complete` this has no effect; before it, no filter is filled that could fail.
        let unknown = self.filter.add(self.build, None);
        debug_assert!(unknown.is_ok(), "an unknown build fills no filter");
    }
}
