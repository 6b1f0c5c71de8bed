//! Push-down of semi joins with filtered groups below inner joins.
//!
//! ```text
//!        ⋉                          ⋈
//!       / \                        / \
//!      ⋈   S       becomes        ⋉   B        S: having … (group by the keys)
//!     / \                        / \
//!    A   B                      A   S
//! ```
//!
//! In one process it hardly matters: dynamic filters take the keys of S to the scans of A and B. No
//! filter crosses a stage of a cluster, where A and B are exchanged and joined whole before S drops
//! nearly all of them (query 18 of TPC-H: all but 57 of 1.5 million orders). Pushed down, S is sent
//! to the tasks that read A, and the rows it drops are not exchanged. B is exchanged as before: the
//! adaptive planner decides on that by estimates, before it knows how few rows are left.
//!
//! S must be filtered groups: an aggregation is a stage of its own anyway, and its filter is likely
//! to drop most groups. Any other S may be as large as A, and is best joined after B has reduced A.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::{Join, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{Optimizer, OptimizerConfig, OptimizerRule};

use crate::ClusterOptions;

/// The rule after which ours runs: it removes filters between joins, and a later one puts
/// projections there.
const AFTER: &str = "push_down_filter";

/// DataFusion's rules and ours among them.
pub(crate) fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::default().rules;
    let after = rules.iter().position(|rule| rule.name() == AFTER);
    rules.insert(after.map_or(rules.len(), |at| at + 1), Arc::new(PushSemiJoin));
    rules
}

#[derive(Debug)]
struct PushSemiJoin;

impl OptimizerRule for PushSemiJoin {
    fn name(&self) -> &'static str {
        "push_semi_join"
    }

    // A semi join that was pushed one step down is visited again.
    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let options = config.options();
        let options = options.extensions.get::<ClusterOptions>();
        if !options.is_some_and(|options| options.push_semi_joins) {
            return Ok(Transformed::no(plan));
        }
        Ok(match pushed(&plan) {
            Some(pushed) => Transformed::yes(LogicalPlan::Join(pushed)),
            None => Transformed::no(plan),
        })
    }
}

/// The inner join with the semi join on one of its sides.
fn pushed(plan: &LogicalPlan) -> Option<Join> {
    let LogicalPlan::Join(semi) = plan else { return None };
    let LogicalPlan::Join(inner) = semi.left.as_ref() else { return None };
    let fits = semi.join_type == JoinType::LeftSemi
        && semi.filter.is_none()
        && inner.join_type == JoinType::Inner
        && is_filtered_groups(&semi.right);
    if !fits {
        return None;
    }
    let below = |side: &Arc<LogicalPlan>| {
        let schema = Arc::clone(side.schema());
        keys_are_in(semi, &schema).then(|| {
            let left = Arc::clone(side);
            Arc::new(LogicalPlan::Join(Join { left, schema, ..semi.clone() }))
        })
    };
    if let Some(left) = below(&inner.left) {
        return Some(Join { left, ..inner.clone() });
    }
    below(&inner.right).map(|right| Join { right, ..inner.clone() })
}

/// Whether the keys can be computed from these columns, with the same values: none is volatile.
fn keys_are_in(semi: &Join, schema: &DFSchema) -> bool {
    semi.on.iter().all(|(key, _)| {
        !key.is_volatile() && key.column_refs().into_iter().all(|column| schema.has_column(column))
    })
}

/// Whether a plan is a filter over an aggregation by some columns.
fn is_filtered_groups(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = below_projections(plan) else { return false };
    let LogicalPlan::Aggregate(groups) = below_projections(&filter.input) else { return false };
    !groups.group_expr.is_empty()
}

/// A plan below its projections and aliases.
fn below_projections(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(projection) => below_projections(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => below_projections(&alias.input),
        plan => plan,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;

    /// Two tables with null and repeated keys, and a third to join both with.
    const TABLES: [&str; 3] = [
        "create table customer as select column1 as c, column2 as name
         from (values (1, 'a'), (2, 'b'), (3, 'c'), (null, 'd'))",
        "create table orders as select column1 as o, column2 as oc
         from (values (10, 1), (11, 1), (12, 2), (13, 3), (14, null), (null, 2), (15, 9))",
        "create table line as select column1 as l, column2 as quantity
         from (values (10, 5), (10, 6), (11, 1), (12, 20), (13, 3), (13, 9), (null, 50), (15, 99))",
    ];
    const LARGE: &str = "select l from line group by l having sum(quantity) > 10";

    async fn session(push_semi_joins: bool) -> SessionContext {
        let options = ClusterOptions { push_semi_joins, ..ClusterOptions::default() };
        let config = SessionConfig::new().with_target_partitions(2).with_option_extension(options);
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_default_features()
            .with_optimizer_rules(rules())
            .build();
        let session = SessionContext::new_with_state(state);
        for table in TABLES {
            session.sql(table).await.unwrap().collect().await.unwrap();
        }
        session
    }

    async fn plan(session: &SessionContext, sql: &str) -> String {
        let plan = session.sql(sql).await.unwrap().into_optimized_plan().unwrap();
        plan.display_indent().to_string()
    }

    async fn rows(session: &SessionContext, sql: &str) -> String {
        let rows = session.sql(sql).await.unwrap().collect().await.unwrap();
        pretty_format_batches(&rows).unwrap().to_string()
    }

    /// The indentation of the first line with these words.
    fn depth(plan: &str, words: &str) -> usize {
        let line = plan.lines().find(|line| line.contains(words));
        let line = line.unwrap_or_else(|| panic!("no {words}: {plan}"));
        line.len() - line.trim_start().len()
    }

    #[tokio::test]
    async fn filtered_groups_are_joined_with_the_table_of_their_keys() {
        let session = session(true).await;
        let sql = format!(
            "select name, o, quantity from customer, orders, line
             where c = oc and o = l and o in ({LARGE})"
        );
        let plan = plan(&session, &sql).await;
        assert_eq!(plan.matches("Inner Join").count(), 2, "{plan}");
        assert_eq!(plan.matches("LeftSemi Join").count(), 1, "{plan}");
        let (_, below) = plan.split_once("LeftSemi Join").unwrap();
        assert!(!below.contains("Inner Join") && !below.contains("customer"), "{plan}");
        assert!(below.contains("orders"), "{plan}");
    }

    #[tokio::test]
    async fn any_other_semi_join_stays_where_it_is() {
        let session = session(true).await;
        for other in [
            "select l from line",
            "select l from line where quantity > 5",
            "select l from line group by l",
        ] {
            let sql = format!("select name from customer, orders where c = oc and o in ({other})");
            let plan = plan(&session, &sql).await;
            assert!(depth(&plan, "LeftSemi") < depth(&plan, "Inner Join"), "{plan}");
        }
        // Keys of both sides, and a volatile one.
        for key in ["c + o", "cast(o * random() as bigint)"] {
            let sql =
                format!("select name from customer, orders where c = oc and {key} in ({LARGE})");
            let plan = plan(&session, &sql).await;
            assert!(depth(&plan, "LeftSemi") < depth(&plan, "Inner Join"), "{plan}");
        }
    }

    #[tokio::test]
    async fn rows_are_the_same() {
        let (pushed, left) = (session(true).await, session(false).await);
        for sql in [
            "select c, name, o, quantity from customer, orders, line
             where c = oc and o = l and o in (LARGE) order by 1, 2",
            "select name, o from orders join customer on oc = c where o in (LARGE) order by 1, 2",
            "select name, o from customer left join orders on oc = c where o in (LARGE)
             order by 1, 2",
            "select name, o from orders full join customer on oc = c where o in (LARGE)
             order by 1, 2",
            "select name, o from customer, orders where c = oc and o not in
             (select l from line where l is not null group by l having sum(quantity) > 10)
             order by 1, 2",
            "select name, o from customer, orders where c = oc and exists
             (select l from line where l = o group by l having sum(quantity) > 10) order by 1, 2",
            "select count(*) from orders a, orders b, line where a.oc = b.oc and b.o = l
             and b.o in (LARGE) and a.o in (LARGE)",
        ] {
            let sql = sql.replace("LARGE", LARGE);
            let expected = rows(&left, &sql).await;
            assert_eq!(rows(&pushed, &sql).await, expected, "{sql}");
            assert!(expected.lines().count() > 4, "no rows: {sql}\n{expected}");
        }
    }
}
