//! Queries, run by all arms in turn.

use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::RecordBatch;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use tokio::runtime::Runtime;
use workahead_machine::clock::process_cpu_s;

use crate::arguments::Arguments;
use crate::join_time::TimedPlan;
use crate::sessions::{Arm, Storage, Tables};
use crate::suite::Suite;

/// Runs in which the time inside stock's joins is measured.
const TIMED: usize = 3;

/// One run of a query: executing it, not planning it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
}

/// The runs of one query.
pub(crate) struct QueryRuns {
    pub(crate) query: usize,
    /// Round by round.
    pub(crate) stock: Vec<Run>,
    /// Likewise.
    pub(crate) arms: Vec<(Arm, Vec<Run>)>,
    /// The part of stock's CPU time that is spent inside joins.
    pub(crate) join_share: f64,
    pub(crate) joins: usize,
    /// Joins that our rule left to DataFusion.
    pub(crate) left: usize,
}

/// Measures all queries in one setting.
pub(crate) fn run(
    arguments: &Arguments,
    tables: &Tables,
    storage: Storage,
    threads: usize,
) -> Vec<QueryRuns> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_stack_size(16 << 20)
        .enable_all()
        .build()
        .expect("threads");
    let session = |arm| runtime.block_on(tables.session(arm, storage, threads));
    let stock = session(Arm::Stock);
    let ours = arguments.arms.iter().map(|arm| (*arm, session(*arm))).collect();
    let arms = Arms { suite: &tables.suite, runtime, stock, ours };
    let query = |number: &usize| {
        let measured = arms.query(*number, arguments.rounds);
        if arguments.explain {
            arms.explain(*number);
        }
        // With a limit, some may fail in one arm or all of them; without one, none may.
        measured
            .inspect_err(|why| match arguments.memory_mb {
                Some(_) => eprintln!("q{number} is left out: {why}"),
                None => panic!("q{number}: {why}"),
            })
            .ok()
    };
    arguments.queries.iter().filter_map(query).collect()
}

struct Arms<'a> {
    suite: &'a Suite,
    runtime: Runtime,
    stock: SessionContext,
    ours: Vec<(Arm, SessionContext)>,
}

impl Arms<'_> {
    fn query(&self, number: usize, rounds: usize) -> Result<QueryRuns, String> {
        eprintln!("q{number}");
        let of = |arm: Arm| move |why: String| format!("{}: {why}", arm.name());
        let (warm, rows) = self.run(&self.stock, number).map_err(of(Arm::Stock))?;
        let check = |arm, found: &[RecordBatch]| {
            let checked = self.suite.check(number, &rows, found);
            checked.unwrap_or_else(|why| panic!("q{number}, {}: {why}", Arm::name(arm)));
        };
        check(Arm::Stock, &rows);
        for (arm, session) in &self.ours {
            check(*arm, &self.run(session, number).map_err(of(*arm))?.1);
        }
        let sessions: Vec<&SessionContext> =
            std::iter::once(&self.stock).chain(self.ours.iter().map(|(_, ours)| ours)).collect();
        let mut runs: Vec<Vec<Run>> = vec![Vec::new(); sessions.len()];
        for round in 0..rounds {
            // The order rotates, so that neither position nor predecessor is always the same.
            let mut order: Vec<usize> = (0..sessions.len()).collect();
            order.rotate_left(round / 2 % sessions.len());
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                runs[at].push(self.run(sessions[at], number)?.0);
            }
        }
        let plan = self.plan(sessions[1], number);
        let join_share = self.join_share(number, warm.cpu_s)?;
        let (joins, left) = (count(&plan, "WorkaheadJoinExec"), count(&plan, "HashJoinExec"));
        let mut runs = runs.into_iter();
        let stock = runs.next().expect("stock is the first");
        let arms = self.ours.iter().map(|(arm, _)| *arm).zip(runs).collect();
        Ok(QueryRuns { query: number, stock, arms, join_share, joins, left })
    }

    /// Prints the plans of a query with their operators' metrics.
    fn explain(&self, number: usize) {
        let ours = self.ours.iter().map(|(arm, session)| (*arm, session));
        for (arm, session) in std::iter::once((Arm::Stock, &self.stock)).chain(ours) {
            let plan = self.plan(session, number);
            let _ = self.execute(session, Arc::clone(&plan));
            let plan = DisplayableExecutionPlan::with_metrics(plan.as_ref());
            eprintln!("q{number}, {}\n{}", arm.name(), plan.indent(false));
        }
    }

    fn plan(&self, session: &SessionContext, number: usize) -> Arc<dyn ExecutionPlan> {
        let text = self.suite.text(number);
        let planned = async {
            let frame = session.sql(&text).await?;
            frame.create_physical_plan().await
        };
        self.runtime.block_on(planned).unwrap_or_else(|error| panic!("q{number}: {error}"))
    }

    fn run(
        &self,
        session: &SessionContext,
        number: usize,
    ) -> Result<(Run, Vec<RecordBatch>), String> {
        let plan = self.plan(session, number);
        self.execute(session, plan)
    }

    fn execute(
        &self,
        session: &SessionContext,
        plan: Arc<dyn ExecutionPlan>,
    ) -> Result<(Run, Vec<RecordBatch>), String> {
        let (wall, cpu_s) = (Instant::now(), process_cpu_s());
        let task = session.task_ctx();
        // In a task, as a server would: not on the thread that waits.
        let rows = self.runtime.block_on(self.runtime.spawn(collect(plan, task)));
        let run = Run { cpu_s: process_cpu_s() - cpu_s, wall_s: wall.elapsed().as_secs_f64() };
        Ok((run, rows.expect("no panic").map_err(|error| error.to_string())?))
    }

    /// The median of a few runs; `likely` is the query's time, for plans without joins.
    fn join_share(&self, number: usize, likely: f64) -> Result<f64, String> {
        let shares: Result<Vec<f64>, String> = (0..TIMED)
            .map(|_| {
                let timed = TimedPlan::new(self.plan(&self.stock, number)).expect("clocks fit in");
                let (run, _) = self.execute(&self.stock, Arc::clone(&timed.plan))?;
                Ok(timed.join_s() / run.cpu_s.max(likely * 1e-3))
            })
            .collect();
        let mut shares = shares?;
        shares.sort_by(f64::total_cmp);
        Ok(shares[TIMED / 2].clamp(0.0, 1.0))
    }
}

fn count(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let below: usize = plan.children().into_iter().map(|child| count(child, name)).sum();
    below + usize::from(plan.name() == name)
}
