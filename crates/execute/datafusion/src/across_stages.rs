//! Filters across stages: a join's keys drop rows before they are sent to another process.
//!
//! ```text
//! stage 3   join ◄─ build ─ key publisher ◄─ exchange ◄─ stage 1
//!             └──── probe ◄─ exchange ◄─┐        │ keys of all tasks, by the key exchange
//! stage 2                       key filter ◄─────┘
//!                                 └─ scan
//! ```
//!
//! *Forward*, the keys of a build side that something reduces filter the probe side. *In reverse*,
//! a build side that nothing reduces is filtered by keys that a join within the probe side has
//! published: the probe side's keys are among them. The probe side is started early for that,
//! since a join reads it last.
//!
//! In a plan of one process, [`SidewaysFilters`](crate::SidewaysFilters) work forward, and those in
//! reverse are these, whose keys go from node to node ([`crate::local_keys`]).
//!
//! No filter waits for itself. Order the sides of each join: build before probe, but probe before
//! build where its filter is in reverse. A reader waits only for the build sides of joins, all of
//! which come before it in that order; a join has a filter in one direction only.

use std::sync::Arc;
use std::time::Duration;

use datafusion_common::error::Result;
use datafusion_common::{JoinType, NullEquality};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::AggregateExec;
use datafusion_physical_plan::buffer::BufferExec;
use datafusion_physical_plan::expressions::Column;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::joins::PartitionMode;
use datafusion_physical_plan::sorts::sort::SortExec;

use crate::WorkaheadJoinExec;
use crate::key_filter::KeyFilterExec;
use crate::key_publisher::{KeyPublisherExec, PublishedKey};
use crate::key_set::KeyScope;
use crate::local_keys::LocalKeys;
use crate::plan::with_inputs;
use crate::pushdown_mapping::{ColumnMapping, pushdown_mappings};

/// Bytes of each partition that a probe side which is started early may read ahead.
const AHEAD_BYTES: usize = 1 << 20;

/// The longest time for which rows wait for keys of the same process.
const LOCAL_WAIT: Duration = Duration::from_secs(60);

/// The role of a node between stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageRole {
    /// It reads another stage, whose tasks may be run by other processes.
    Exchange,
    /// It hands its rows on, to one task or several.
    Sender,
    /// Some tasks of the stage don't run some of its inputs.
    Isolator,
    /// It computes within a stage.
    Operator,
}

/// Puts filters of joins below the exchanges, joins and aggregates that they save work, in a plan
/// that is cut into stages. Its session must have a
/// [`KeyExchangeExtension`](crate::KeyExchangeExtension) where it runs.
#[derive(Debug, Clone, Copy)]
pub struct FiltersAcrossStages {
    /// The role of a node between stages.
    pub role: fn(&dyn ExecutionPlan) -> StageRole,
    /// The longest time for which rows wait for keys.
    pub wait: Duration,
}

impl FiltersAcrossStages {
    /// The plan with its filters.
    ///
    /// # Errors
    /// When a node refuses its inputs.
    pub fn insert(self, plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let mut planner = Planner { rule: self, filters: 0, local: None };
        let plan = planner.each_join(plan, false, Planner::forward)?;
        planner.each_join(&plan, false, Planner::in_reverse)
    }
}

/// A plan of one process with the filters that work in reverse.
///
/// # Errors
/// When a node refuses its inputs.
pub(crate) fn filtered_in_reverse(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let rule = FiltersAcrossStages { role: |_| StageRole::Operator, wait: LOCAL_WAIT };
    let mut planner = Planner { rule, filters: 0, local: Some(Arc::default()) };
    planner.each_join(plan, false, Planner::in_reverse)
}

/// A filter that is being placed.
#[derive(Clone, Copy)]
struct FilterPlacement {
    /// Its column in the output of the node that is looked at, and who would read it there.
    key: PublishedKey,
    /// Who reads it below an exchange.
    across: KeyScope,
    /// An exchange, a join, an aggregate or a sort above has less to do, or builds less.
    saves: bool,
}

struct Planner {
    rule: FiltersAcrossStages,
    filters: u32,
    /// For a plan of one process.
    local: Option<Arc<LocalKeys>>,
}

type Rewrite = fn(&mut Planner, &WorkaheadJoinExec) -> Result<Option<[Arc<dyn ExecutionPlan>; 2]>>;

impl Planner {
    /// A plan with other sides of its joins, from the root on. `isolated` if some tasks of its
    /// stage don't run it.
    fn each_join(
        &mut self,
        plan: &Arc<dyn ExecutionPlan>,
        isolated: bool,
        rewrite: Rewrite,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sides = match plan.downcast_ref::<WorkaheadJoinExec>() {
            Some(join) if !isolated && compares_values(join) => rewrite(self, join)?,
            _ => None,
        };
        let plan = match sides {
            Some(sides) => with_inputs(Arc::clone(plan), sides.into())?,
            None => Arc::clone(plan),
        };
        let isolated = match self.role(&plan) {
            StageRole::Exchange => false,
            StageRole::Isolator => true,
            StageRole::Sender | StageRole::Operator => isolated,
        };
        let children: Vec<_> = plan.children().into_iter().cloned().collect();
        let with = children.iter().map(|child| self.each_join(child, isolated, rewrite));
        let with = with.collect::<Result<Vec<_>>>()?;
        let same = children.iter().zip(&with).all(|(one, other)| Arc::ptr_eq(one, other));
        if same { Ok(plan) } else { with_inputs(plan, with) }
    }

    fn role(&self, plan: &Arc<dyn ExecutionPlan>) -> StageRole {
        (self.rule.role)(plan.as_ref())
    }

    /// The sides of a join whose build keys filter its probe side.
    fn forward(&mut self, join: &WorkaheadJoinExec) -> Result<Option<[Arc<dyn ExecutionPlan>; 2]>> {
        use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi, RightSemi};
        let planned = join.planned();
        // Rows of the probe side that match nothing don't come out.
        let may = [Inner, Left, LeftAnti, LeftMark, LeftSemi, RightSemi];
        if !may.contains(planned.join_type()) || !is_reduced(planned.left()) {
            return Ok(None);
        }
        let mut probe = Arc::clone(planned.right());
        let mut keys = Vec::new();
        for (left, right) in plain_keys(join) {
            let key = PublishedKey { filter: self.filters, column: right, scope: KeyScope::Task };
            let placed = FilterPlacement { key, across: scope_across(join), saves: false };
            if let Some((with, scope)) = self.place(&probe, placed)? {
                probe = with;
                self.filters += 1;
                keys.push(PublishedKey { column: left, scope, ..key });
            }
        }
        Ok((!keys.is_empty()).then(|| [self.publish(planned.left(), keys), probe]))
    }

    /// The sides of a join whose build side is filtered by keys published within its probe side.
    fn in_reverse(
        &mut self,
        join: &WorkaheadJoinExec,
    ) -> Result<Option<[Arc<dyn ExecutionPlan>; 2]>> {
        use JoinType::{Inner, LeftSemi, Right, RightAnti, RightMark, RightSemi};
        let planned = join.planned();
        // Rows of the build side that match nothing don't come out.
        let may = [Inner, LeftSemi, Right, RightAnti, RightMark, RightSemi];
        if !may.contains(planned.join_type()) || planned.left().is::<KeyPublisherExec>() {
            return Ok(None);
        }
        let [mut build, mut probe] = [planned.left(), planned.right()].map(Arc::clone);
        let mut found = false;
        for (left, right) in plain_keys(join) {
            let Some((publishing, key)) = self.published(&probe, right)? else { continue };
            // A row that is not built costs less than one that is, in any case.
            let key_in_build = PublishedKey { column: left, ..key };
            let placed = FilterPlacement { key: key_in_build, across: key.scope, saves: true };
            if let Some((with, _)) = self.place(&build, placed)? {
                self.filters = self.filters.max(key.filter + 1);
                (build, probe, found) = (with, publishing, true);
            }
        }
        let start_early = |probe| Arc::new(BufferExec::new(probe, AHEAD_BYTES)) as _;
        Ok(found.then(|| [build, start_early(probe)]))
    }

    /// The plan with a filter as far down as it is correct and saves work, and who reads it; none
    /// if it saves none.
    fn place(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        placed: FilterPlacement,
    ) -> Result<Option<(Arc<dyn ExecutionPlan>, KeyScope)>> {
        let FilterPlacement { key, across, saves } = placed;
        let is_exchange = self.role(plan) == StageRole::Exchange;
        let scope = if is_exchange { across } else { key.scope };
        let works = is_exchange
            || plan.is::<WorkaheadJoinExec>()
            || plan.is::<AggregateExec>()
            || plan.is::<SortExec>();
        // A condition drops rows itself, and costs no more than this one.
        let saves_below = works || saves && !plan.is::<FilterExec>();
        for (at, column) in self.sources(plan, key.column) {
            let key = PublishedKey { column, scope, ..key };
            let mut children: Vec<_> = plan.children().into_iter().cloned().collect();
            let below = FilterPlacement { key, across, saves: saves_below };
            if let Some((with, scope)) = self.place(&children[at], below)? {
                children[at] = with;
                return Ok(Some((with_inputs(Arc::clone(plan), children)?, scope)));
            }
        }
        if !saves {
            return Ok(None);
        }
        let filter = KeyFilterExec::new(Arc::clone(plan), key, self.rule.wait);
        let filter = filter.within(self.local.clone());
        Ok(Some((Arc::new(filter), key.scope)))
    }

    /// A join within a plan among whose keys a column's values are, made to publish them to all
    /// tasks: the plan with it, and what it publishes.
    fn published(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        column: usize,
    ) -> Result<Option<(Arc<dyn ExecutionPlan>, PublishedKey)>> {
        use JoinType::{Inner, Left, LeftAnti, LeftMark, LeftSemi, RightSemi};
        let sources = self.sources(plan, column);
        if let Some(join) = plan.downcast_ref::<WorkaheadJoinExec>()
            && compares_values(join)
            && is_reduced(join.planned().left())
        {
            let [left, right] = [join.planned().left(), join.planned().right()];
            let kind = join.planned().join_type();
            // Of the build side's columns, rows that come out have what was built; of the probe
            // side's, what was matched.
            let allowed = [
                [Inner, Left, LeftAnti, LeftMark, LeftSemi].contains(kind),
                [Inner, RightSemi].contains(kind),
            ];
            let is_key = |(left, right): &(usize, usize)| {
                sources
                    .iter()
                    .any(|(side, column)| allowed[*side] && [*left, *right][*side] == *column)
            };
            if let Some((key, _)) = plain_keys(join).into_iter().find(is_key) {
                let scope = scope_across(join);
                let (left, key) = self.with_key(left, key, scope);
                let sides = vec![left, Arc::clone(right)];
                return Ok(Some((with_inputs(Arc::clone(plan), sides)?, key)));
            }
        }
        for (at, column) in sources {
            let mut children: Vec<_> = plan.children().into_iter().cloned().collect();
            if let Some((with, key)) = self.published(&children[at], column)? {
                children[at] = with;
                return Ok(Some((with_inputs(Arc::clone(plan), children)?, key)));
            }
        }
        Ok(None)
    }

    fn publish(
        &self,
        build: &Arc<dyn ExecutionPlan>,
        keys: Vec<PublishedKey>,
    ) -> Arc<dyn ExecutionPlan> {
        let publisher = KeyPublisherExec::new(Arc::clone(build), keys.into());
        Arc::new(publisher.within(self.local.clone()))
    }

    /// A build side that publishes a column to all tasks, as it may do already.
    fn with_key(
        &self,
        build: &Arc<dyn ExecutionPlan>,
        column: usize,
        scope: KeyScope,
    ) -> (Arc<dyn ExecutionPlan>, PublishedKey) {
        let key = PublishedKey { filter: self.filters, column, scope };
        let Some(publisher) = build.downcast_ref::<KeyPublisherExec>() else {
            return (self.publish(build, vec![key]), key);
        };
        let same = |known: &&PublishedKey| known.column == column && known.scope == scope;
        if let Some(known) = publisher.keys().iter().find(same) {
            return (Arc::clone(build), *known);
        }
        let keys = publisher.keys().iter().copied().chain([key]).collect();
        (self.publish(publisher.input(), keys), key)
    }

    /// Where a column comes from: an input and its column, by which rows may be dropped there
    /// instead of after the node.
    fn sources(&self, plan: &Arc<dyn ExecutionPlan>, column: usize) -> Vec<(usize, usize)> {
        let mappings: Vec<ColumnMapping> = match self.role(plan) {
            _ if plan.fetch().is_some() => Vec::new(),
            StageRole::Exchange | StageRole::Sender => vec![same_columns(plan)],
            _ if plan.is::<KeyFilterExec>() || plan.is::<KeyPublisherExec>() => {
                vec![same_columns(plan)]
            }
            _ if plan.is::<BufferExec>() => vec![same_columns(plan)],
            StageRole::Isolator | StageRole::Operator => pushdown_mappings(plan),
        };
        let source = |(at, columns): (usize, &ColumnMapping)| {
            Some((at, columns.get(column).copied().flatten()?))
        };
        mappings.iter().enumerate().filter_map(source).collect()
    }
}

fn same_columns(plan: &Arc<dyn ExecutionPlan>) -> ColumnMapping {
    (0..plan.schema().fields().len()).map(Some).collect()
}

/// Who reads the keys of a join's build side in other stages.
fn scope_across(join: &WorkaheadJoinExec) -> KeyScope {
    match join.planned().partition_mode() {
        PartitionMode::CollectLeft => KeyScope::Whole,
        _ => KeyScope::Parts,
    }
}

/// The keys that are columns on both sides.
fn plain_keys(join: &WorkaheadJoinExec) -> Vec<(usize, usize)> {
    let keys = join.planned().on().iter().filter_map(|(left, right)| {
        let [left, right] = [left, right].map(|key| key.downcast_ref::<Column>());
        Some((left?.index(), right?.index()))
    });
    keys.collect()
}

/// Whether it is ours, reads its build side first, and null keys match nothing.
fn compares_values(join: &WorkaheadJoinExec) -> bool {
    join.left_alone().is_none()
        && !join.chooses_build_side()
        && !join.planned().null_aware
        && join.planned().null_equality() == NullEquality::NullEqualsNothing
}

/// Whether something drops rows of a table before they are built: else its keys are likely all.
fn is_reduced(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<FilterExec>()
        || plan.is::<KeyFilterExec>()
        || plan.fetch().is_some()
        || plan.children().into_iter().any(is_reduced)
}

#[cfg(test)]
mod tests {
    use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
    use datafusion_physical_plan::displayable;
    use datafusion_physical_plan::expressions::{binary, col, lit};
    use datafusion_physical_plan::joins::HashJoinExecBuilder;

    use super::*;
    use crate::key_filter::tests::{context, rows, table};

    fn rule() -> FiltersAcrossStages {
        let role = |node: &dyn ExecutionPlan| {
            let is_exchange = node.is::<CoalescePartitionsExec>();
            if is_exchange { StageRole::Exchange } else { StageRole::Operator }
        };
        FiltersAcrossStages { role, wait: Duration::from_secs(60) }
    }

    fn join(
        build: Arc<dyn ExecutionPlan>,
        probe: Arc<dyn ExecutionPlan>,
        kind: JoinType,
    ) -> Arc<dyn ExecutionPlan> {
        let keys = (col("b", &build.schema()).unwrap(), col("p", &probe.schema()).unwrap());
        let join = HashJoinExecBuilder::new(build, probe, vec![keys], kind)
            .with_partition_mode(PartitionMode::CollectLeft);
        Arc::new(WorkaheadJoinExec::of(Arc::new(join.build().unwrap())))
    }

    fn stage(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(CoalescePartitionsExec::new(plan))
    }

    fn filtered(name: &str, keys: std::ops::Range<i64>) -> Arc<dyn ExecutionPlan> {
        let table = table(name, keys);
        let from = binary(
            col(name, &table.schema()).unwrap(),
            datafusion_expr::Operator::GtEq,
            lit(0_i64),
            &table.schema(),
        );
        Arc::new(FilterExec::try_new(from.unwrap(), table).unwrap())
    }

    #[tokio::test]
    async fn a_join_filters_its_probe_side_before_it_is_sent() {
        let plan = join(stage(filtered("b", 0..3)), stage(filtered("p", 0..50)), JoinType::Inner);
        let plan = rule().insert(&plan).unwrap();
        let text = displayable(plan.as_ref()).indent(false).to_string();
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        assert!(lines[1].starts_with("KeyPublisherExec: b@0 for filter 0"), "{text}");
        let at = lines.iter().position(|line| line.starts_with("KeyFilterExec")).unwrap();
        assert!(lines[at].ends_with("p@0 in filter 0"), "{text}");
        assert!(lines[at - 1].starts_with("Coalesce"), "it is sent from there: {text}");
        assert!(lines[at + 1].starts_with("FilterExec"), "its own condition comes first: {text}");
        // Both tables are there twice.
        assert_eq!(rows(&plan, 0, &context(&Arc::default())).await, 3 * 4);
    }

    #[test]
    fn no_filter_where_unmatched_rows_come_out_or_nothing_is_sent_or_all_keys_are_there() {
        let (build, probe) = (stage(filtered("b", 0..3)), stage(filtered("p", 0..50)));
        let has_filter = |plan: Arc<dyn ExecutionPlan>| {
            let plan = rule().insert(&plan).unwrap();
            displayable(plan.as_ref()).indent(false).to_string().contains("KeyFilterExec")
        };
        use JoinType::{
            Full, Inner, Left, LeftAnti, LeftSemi, Right, RightAnti, RightMark, RightSemi,
        };
        for kind in [Inner, Left, LeftAnti, LeftSemi, RightSemi] {
            assert!(has_filter(join(Arc::clone(&build), Arc::clone(&probe), kind)), "{kind}");
        }
        for kind in [Right, RightAnti, RightMark, Full] {
            assert!(!has_filter(join(Arc::clone(&build), Arc::clone(&probe), kind)), "{kind}");
        }
        assert!(!has_filter(join(Arc::clone(&build), filtered("p", 0..50), Inner)));
        assert!(!has_filter(join(stage(table("b", 0..3)), Arc::clone(&probe), Inner)));
    }

    #[tokio::test]
    async fn a_large_build_side_is_filtered_by_a_join_of_the_probe_side() {
        let inner = join(stage(filtered("b", 0..3)), table("p", 0..50), JoinType::LeftSemi);
        let key = |side: &Arc<dyn ExecutionPlan>, name| col(name, &side.schema()).unwrap();
        for kind in [JoinType::Inner, JoinType::RightSemi, JoinType::RightAnti, JoinType::Left] {
            let (build, probe) = (stage(table("l", 1..40)), stage(Arc::clone(&inner)));
            let on = vec![(key(&build, "l"), key(&probe, "b"))];
            let outer = HashJoinExecBuilder::new(build, probe, on, kind)
                .with_partition_mode(PartitionMode::CollectLeft)
                .build()
                .unwrap();
            let plan = Arc::new(WorkaheadJoinExec::of(Arc::new(outer))) as Arc<dyn ExecutionPlan>;
            let with = rule().insert(&plan).unwrap();
            let text = displayable(with.as_ref()).indent(false).to_string();
            let filtered = text.contains("KeyFilterExec: l@0 in filter 0");
            assert_eq!(filtered, kind != JoinType::Left, "{kind}: {text}");
            assert_eq!(filtered, text.contains("BufferExec"), "{kind}: {text}");
            let without = rows(&plan.reset_state().unwrap(), 0, &Arc::default()).await;
            assert_eq!(rows(&with, 0, &context(&Arc::default())).await, without, "{kind}");
        }
    }
}
