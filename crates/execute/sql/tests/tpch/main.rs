//! TPC-H's 22 queries at scale 0.1: the answers are DuckDB's, by DataFusion alone and with our
//! joins.
//!
//! ```text
//! cargo xtask answers ─► tests/tpch/answers/qNN.txt    DuckDB, on `workahead data tpch`
//! generated tables ─► session ─► rows ─► equal?        here
//! ```

#[path = "../answer/mod.rs"]
mod answer;
mod tight_pool;

use std::path::Path;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::MemTable;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};
use workahead_workloads::tpch::{Part, QUERIES, Table, Tpch, query};

use answer::{Answer, Order};
use tight_pool::TightPool;

/// The scale of the answers.
const SCALE: f64 = 0.1;
const BATCH_ROWS: usize = 8192;

/// Enough for a few short batches, and too little for most tables.
const TIGHT_BYTES: usize = 1 << 20;
const TIGHT_BATCH_ROWS: usize = 256;

static TABLES: LazyLock<Vec<(&str, Vec<RecordBatch>)>> = LazyLock::new(|| {
    let data = Tpch::new(SCALE).expect("a scale that can be made");
    let tables = Table::ALL.into_iter();
    tables.map(|t| (t.name(), data.batches(t, Part::WHOLE, BATCH_ROWS).collect())).collect()
});

/// Joins in the plans of all queries.
#[derive(Debug, Default)]
struct Joins {
    ours: usize,
    stock: usize,
    spilled: usize,
}

/// A session with the tables.
struct Arm {
    partitions: usize,
    stock: bool,
    tight: bool,
}

const OURS: Arm = Arm { partitions: 4, stock: false, tight: false };

impl Arm {
    fn session(&self) -> SessionContext {
        let runtime = RuntimeEnvBuilder::new();
        let runtime = match self.tight {
            true => runtime.with_memory_pool(Arc::new(TightPool::of(TIGHT_BYTES))),
            false => runtime,
        };
        let mut config = SessionConfig::new().with_target_partitions(self.partitions);
        if self.tight {
            config = config.with_batch_size(TIGHT_BATCH_ROWS);
        }
        let builder = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime.build_arc().expect("a runtime"))
            .with_default_features();
        let builder = if self.stock { builder } else { workahead_sql::install(builder) };
        let context = SessionContext::new_with_state(builder.build());
        for (name, batches) in TABLES.iter() {
            let table = MemTable::try_new(batches[0].schema(), vec![batches.clone()]);
            context.register_table(*name, Arc::new(table.expect("one schema"))).expect("new");
        }
        context
    }

    /// Runs all queries and compares their rows.
    fn check(&self) -> Joins {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .expect("a runtime");
        let context = self.session();
        let mut joins = Joins::default();
        let mut wrong = Vec::new();
        for number in 1..=QUERIES {
            let batches = runtime.block_on(run(&context, number, &mut joins));
            let answer = answer(number);
            if let Some(first) = batches.first() {
                let schema = first.schema();
                let names: Vec<_> = schema.fields().iter().map(|field| field.name()).collect();
                assert_eq!(names, answer.names(), "q{number}");
            }
            let same = answer.check(&batches, &Order::default());
            if let Err(why) = same {
                wrong.push(format!("q{number}: {why}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        joins
    }
}

/// By this package's folder, as Cargo names it to a running test: a target folder may be shared.
fn answer(number: usize) -> Answer {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests");
    Answer::read(&Path::new(&folder).join(format!("tests/tpch/answers/q{number:02}.txt")))
}

async fn run(context: &SessionContext, number: usize, joins: &mut Joins) -> Vec<RecordBatch> {
    let frame = context.sql(query(number).expect("a query")).await.expect("SQL");
    let task = Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await.expect("a plan");
    let batches = collect(Arc::clone(&plan), task).await;
    plan.apply(|node| {
        let ours = node.name() == "WorkaheadJoinExec";
        joins.ours += usize::from(ours);
        joins.stock += usize::from(node.name() == "HashJoinExec");
        let bytes = node.metrics().and_then(|metrics| metrics.spilled_bytes());
        joins.spilled += usize::from(ours && bytes.is_some_and(|bytes| bytes > 0));
        Ok(TreeNodeRecursion::Continue)
    })
    .expect("a plan can be walked");
    batches.unwrap_or_else(|error| panic!("q{number}: {error}"))
}

#[test]
fn datafusion_returns_duckdbs_answers() {
    let joins = Arm { stock: true, ..OURS }.check();
    assert_eq!((joins.ours, joins.stock > 50), (0, true), "{joins:?}");
}

#[test]
fn our_joins_return_duckdbs_answers() {
    let joins = OURS.check();
    assert_eq!((joins.ours > 50, joins.stock, joins.spilled), (true, 0, 0), "{joins:?}");
}

#[test]
fn our_joins_return_duckdbs_answers_in_one_partition() {
    let joins = Arm { partitions: 1, ..OURS }.check();
    assert_eq!((joins.ours > 50, joins.stock, joins.spilled), (true, 0, 0), "{joins:?}");
}

#[test]
fn our_joins_return_duckdbs_answers_from_files() {
    let joins = Arm { tight: true, partitions: 1, ..OURS }.check();
    assert_eq!((joins.stock, joins.spilled > 5), (0, true), "{joins:?}");
}
