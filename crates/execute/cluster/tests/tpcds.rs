//! TPC-DS's 99 queries on two workers: the answers are DuckDB's, and stages run on the workers.
//!
//! `WORKAHEAD_TPCDS` lists the scales, as for one process (`execute/sql/tests/tpcds`).

#[path = "../../sql/tests/answer/mod.rs"]
mod answer;
#[path = "../../sql/tests/tpcds/data.rs"]
mod data;
#[path = "../../sql/tests/tpcds/order.rs"]
mod order;
#[path = "../../sql/tests/tpcds/rewrites.rs"]
mod rewrites;

use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use answer::{Answer, Order};
use data::{Data, QUERIES, TABLES, without_limit};
use datafusion::arrow::array::RecordBatch;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::SessionContext;
use workahead_cluster::{Client, ClientOptions, Token, WorkerOptions, worker};
use workahead_sql::session::{Options, Session};

/// The smallest with rows in every table.
const SCALE: f64 = 0.01;
const WORKERS: usize = 2;
const WORKER_BYTES: usize = 2 << 30;
/// A process is busy with other tests.
const DEAD_AFTER: Duration = Duration::from_secs(30);
/// A query that takes longer does not end.
const PATIENCE: Duration = Duration::from_secs(120);
/// Some plans are deep.
const STACK_BYTES: usize = 16 << 20;

static NEVER: AtomicBool = AtomicBool::new(false);

fn scales() -> Vec<f64> {
    let wanted = std::env::var("WORKAHEAD_TPCDS").ok();
    let number = |text: &str| text.parse().expect("WORKAHEAD_TPCDS lists scales: 0.1");
    wanted.map_or(vec![SCALE], |list| list.split(',').map(number).collect())
}

/// Workers that live as long as this process, and a session that uses them.
fn session(directory: &Path, data: &Path) -> (Client, Session) {
    let token = Token::generate().unwrap();
    let (sender, addresses) = mpsc::channel();
    for _ in 0..WORKERS {
        let options = WorkerOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            token: token.clone(),
            threads: NonZero::<usize>::MIN,
            memory_limit: WORKER_BYTES,
            directory: directory.to_owned(),
            roots: vec![data.to_owned()],
            dead_after: DEAD_AFTER,
        };
        let sender = sender.clone();
        thread::spawn(move || worker(&options, |address| sender.send(address).unwrap()));
    }
    let hosts: Vec<String> =
        addresses.iter().take(WORKERS).map(|address| address.to_string()).collect();
    let url = format!("workahead://{}@{}", token.reveal(), hosts.join(","));
    let url = url.parse().unwrap();
    let (here, dead_after) = (Options::default(), DEAD_AFTER);
    let options = ClientOptions { url, here, dead_after, stop: &NEVER };
    Client::session(&options).unwrap()
}

async fn run(
    context: &SessionContext,
    text: &str,
) -> datafusion::error::Result<(Arc<dyn ExecutionPlan>, Vec<RecordBatch>)> {
    let frame = context.sql(text).await?;
    let task = Arc::new(frame.task_ctx());
    let plan = frame.create_physical_plan().await?;
    let batches = collect(Arc::clone(&plan), task).await?;
    Ok((plan, batches))
}

#[test]
fn two_workers_answer_as_duckdb_does() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .unwrap();
    for scale in scales() {
        let data = Data::of(scale);
        let folder = data.table(TABLES[0]);
        let directory = tempfile::tempdir().unwrap();
        let (_client, session) = session(directory.path(), folder.parent().unwrap());
        for table in TABLES {
            session.register(table, &data.table(table), &AtomicBool::new(false)).unwrap();
        }
        let mut wrong = Vec::new();
        let (mut on_workers, mut filters) = (0, 0);
        let context = session.context().clone();
        // As in DuckDB, so that both mean the same order.
        for setting in [
            "set datafusion.sql_parser.default_null_ordering = 'nulls_last'",
            "set cluster.run = 'workers'",
        ] {
            runtime.block_on(run(&context, setting)).unwrap();
        }
        for number in 1..=QUERIES {
            let text = rewrites::for_datafusion(number, &data.query(number));
            let limit = without_limit(&text).1;
            let (own, query) = (context.clone(), text.clone());
            // In a task, on a stack that is deep enough for planning too.
            let limited = async move { tokio::time::timeout(PATIENCE, run(&own, &query)).await };
            let (plan, batches) = match runtime.block_on(runtime.spawn(limited)) {
                Ok(Ok(Ok(ran))) => ran,
                other => {
                    wrong.push(format!("q{number}: {:?}", other.map(|ran| ran.map(drop_ok))));
                    continue;
                }
            };
            let shown = displayable(plan.as_ref()).indent(false).to_string();
            on_workers += usize::from(shown.contains("DistributedExec"));
            filters += shown.matches("KeyFilterExec").count();
            let answer = Answer::read(&data.answer(number));
            let columns = order::columns(&text, &answer.names());
            if let Err(why) = answer.check(&batches, &Order { columns, limit }) {
                wrong.push(format!("q{number}: {why}"));
            }
        }
        assert!(wrong.is_empty(), "scale {scale}: {wrong:#?}");
        assert!(on_workers > QUERIES / 2, "only {on_workers} queries ran on workers");
        assert!(filters > QUERIES, "only {filters} filters across stages");
        eprintln!("scale {scale}: {on_workers} queries on workers, {filters} filters");
    }
}

fn drop_ok<T, E>(result: Result<T, E>) -> Result<(), E> {
    result.map(drop)
}
