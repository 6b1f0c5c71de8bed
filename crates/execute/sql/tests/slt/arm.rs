//! One arm of a comparison: a session, and the outcomes of a file's records.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::TryStreamExt;
use sqllogictest::{Condition, DefaultColumnType, Record};
use workahead_datafusion::WorkaheadOptions;

use crate::refusing_pool::RefusingPool;
use crate::{cells, tables};

/// The error of a join that is refused memory before it has a row to spill.
const NO_ROW: &str = "too small even with spilling";

/// The join implementation, and how it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joins {
    Stock,
    Ours,
    /// Ours, in a session with this batch size.
    InBatches(usize),
    /// Ours, also where the session plans sort-merge joins.
    InsteadOfSortMerge,
    /// Ours, refused memory so that each join spills a part of its rows.
    Spilling,
}

impl std::fmt::Display for Joins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stock => f.write_str(", stock"),
            Self::Ours => Ok(()),
            Self::InBatches(rows) => write!(f, ", in batches of {rows}"),
            Self::Spilling => f.write_str(", spilling"),
            Self::InsteadOfSortMerge => f.write_str(", instead of sort-merge joins"),
        }
    }
}

/// The outcome of a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Rows(Vec<Vec<String>>),
    Failed(String),
    /// Not run, with the reason.
    LeftOut(&'static str),
    /// Nothing to run.
    Nothing,
}

/// The outcomes of a file's records.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) joins: Nodes,
    /// Records whose plans have a hash join of DataFusion.
    pub(crate) left_to_stock: Vec<usize>,
}

/// The joins in the plans that were run.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Nodes {
    pub(crate) ours: usize,
    pub(crate) stock: usize,
    /// Of ours, those that spilled.
    pub(crate) spilled: usize,
}

/// A session for one file.
pub(crate) struct Arm {
    context: SessionContext,
    joins: Joins,
}

impl Arm {
    /// Like that of DataFusion's own runner, with the tables it registers for some files.
    pub(crate) async fn new(file: &str, joins: Joins) -> Self {
        let mut config = SessionConfig::new().with_target_partitions(4);
        if let Joins::InBatches(rows) = joins {
            config = config.with_batch_size(rows);
        }
        if joins == Joins::InsteadOfSortMerge {
            let options =
                WorkaheadOptions { replace_sort_merge_joins: true, ..WorkaheadOptions::default() };
            config.options_mut().extensions.insert(options);
        }
        let mut builder = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime(joins))
            .with_default_features();
        if joins != Joins::Stock {
            builder = workahead_sql::install(builder);
        }
        let context = SessionContext::new_with_state(builder.build());
        tables::register(&context, file).await;
        Self { context, joins }
    }

    /// Runs the records in order.
    pub(crate) async fn run(&self, records: &[Record<DefaultColumnType>]) -> Run {
        let mut run = Run::default();
        for (at, record) in records.iter().enumerate() {
            let before = run.joins.stock;
            let outcome = match record {
                Record::Statement { sql, conditions, .. }
                | Record::Query { sql, conditions, .. }
                | Record::Let { sql, conditions, .. } => match left_out(sql, conditions) {
                    Some(reason) => Outcome::LeftOut(reason),
                    None => self.outcome(sql, &mut run.joins).await,
                },
                Record::System { .. } => Outcome::LeftOut("a system command"),
                Record::Halt { .. } => break,
                _ => Outcome::Nothing,
            };
            if run.joins.stock > before {
                run.left_to_stock.push(at);
            }
            run.outcomes.push(outcome);
        }
        run
    }

    async fn outcome(&self, sql: &str, joins: &mut Nodes) -> Outcome {
        match self.rows(sql, joins).await {
            Ok(rows) => Outcome::Rows(rows),
            Err(error) => match error.to_string() {
                error if self.joins == Joins::Spilling && error.contains(NO_ROW) => {
                    Outcome::LeftOut("no row of the build side has a key that could be in a file")
                }
                error => Outcome::Failed(error),
            },
        }
    }

    async fn rows(&self, sql: &str, joins: &mut Nodes) -> Result<Vec<Vec<String>>> {
        let frame = self.context.sql(sql).await?;
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await?;
        plan.apply(|node| {
            joins.ours += usize::from(node.name() == "WorkaheadJoinExec");
            joins.stock += usize::from(node.name() == "HashJoinExec");
            Ok(TreeNodeRecursion::Continue)
        })?;
        let schema = plan.schema();
        let batches: Vec<_> = execute_stream(Arc::clone(&plan), task)?.try_collect().await?;
        plan.apply(|node| {
            let metrics = node.metrics().filter(|_| node.name() == "WorkaheadJoinExec");
            let bytes = metrics.and_then(|metrics| metrics.spilled_bytes());
            joins.spilled += usize::from(bytes.is_some_and(|bytes| bytes > 0));
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(batches
            .iter()
            .flat_map(|batch| {
                assert_schema(&schema, &batch.schema(), sql);
                cells::rows(batch)
            })
            .collect())
    }
}

/// Batches have the schema of the plan.
fn assert_schema(plan: &SchemaRef, batch: &SchemaRef, sql: &str) {
    assert!(plan.contains(batch), "{sql}\nthe plan says {plan:?}, the batch is {batch:?}");
}

fn runtime(joins: Joins) -> Arc<RuntimeEnv> {
    let builder = match joins {
        Joins::Spilling => {
            RuntimeEnvBuilder::new().with_memory_pool(Arc::new(RefusingPool::default()))
        }
        _ => RuntimeEnvBuilder::new(),
    };
    builder.build_arc().expect("a runtime in the system's temporary directory")
}

fn left_out(sql: &str, conditions: &[Condition]) -> Option<&'static str> {
    let for_us = conditions.iter().all(|condition| match condition {
        Condition::OnlyIf { label } => label.eq_ignore_ascii_case("datafusion"),
        Condition::SkipIf { label } => !label.eq_ignore_ascii_case("datafusion"),
    });
    if !for_us {
        return Some("for another engine");
    }
    let first = sql.split_whitespace().next().unwrap_or_default();
    first.eq_ignore_ascii_case("explain").then_some("EXPLAIN: a plan with our nodes differs")
}
