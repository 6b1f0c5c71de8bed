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
use crate::duckdb::Duckdb;
use crate::operator_time::{Kind, TimedPlan};
use crate::sessions::{Arm, Storage, Tables};
use crate::suite::Suite;

/// Runs in which the time inside operators is measured.
const TIMED: usize = 3;

/// One run of a query: executing it, and planning it apart.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// Nothing where it is part of the others.
    pub(crate) plan_s: f64,
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
}

/// Seconds, in the order of [`Kind::ALL`].
pub(crate) type Times = [f64; Kind::ALL.len()];

/// The runs of one query.
pub(crate) struct QueryRuns {
    pub(crate) query: usize,
    /// Round by round.
    pub(crate) stock: Vec<Run>,
    /// Likewise.
    pub(crate) arms: Vec<(Arm, Vec<Run>)>,
    /// Likewise, with `--duckdb`.
    pub(crate) duckdb: Option<Vec<Run>>,
    /// The part of stock's CPU time that is spent inside joins.
    pub(crate) join_share: f64,
    /// Seconds of each kind of operator in the first arm's plan, and in DuckDB's.
    pub(crate) times: Times,
    pub(crate) duckdb_times: Option<Times>,
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
    let duckdb = arguments.duckdb.then(|| {
        let opened = Duckdb::open(tables, storage, threads);
        opened.unwrap_or_else(|error| panic!("DuckDB: {error}"))
    });
    let arms = Arms { suite: &tables.suite, runtime, stock, ours, duckdb };
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
    duckdb: Option<Duckdb>,
}

/// An engine that runs a query in the rounds.
#[derive(Clone, Copy)]
enum Party<'a> {
    Session(&'a SessionContext),
    Duckdb(&'a Duckdb),
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
        if let Some(duckdb) = &self.duckdb {
            let checked = duckdb.check(&self.suite.text_for_duckdb(number), &rows);
            checked.unwrap_or_else(|why| panic!("q{number}, DuckDB: {why}"));
        }
        for (arm, session) in &self.ours {
            check(*arm, &self.run(session, number).map_err(of(*arm))?.1);
        }
        let sessions = std::iter::once(&self.stock).chain(self.ours.iter().map(|(_, ours)| ours));
        let parties: Vec<Party> =
            sessions.map(Party::Session).chain(self.duckdb.as_ref().map(Party::Duckdb)).collect();
        let mut runs: Vec<Vec<Run>> = vec![Vec::new(); parties.len()];
        for round in 0..rounds {
            // The order rotates, so that neither position nor predecessor is always the same.
            let mut order: Vec<usize> = (0..parties.len()).collect();
            order.rotate_left(round / 2 % parties.len());
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                runs[at].push(match parties[at] {
                    Party::Session(session) => self.run(session, number)?.0,
                    Party::Duckdb(duckdb) => duckdb.run(&self.suite.text_for_duckdb(number))?,
                });
            }
        }
        let ours = self.ours.first().map_or(&self.stock, |(_, session)| session);
        let plan = self.plan(ours, number);
        let (stock_times, stock_s) = self.times(&self.stock, number)?;
        let join_s = stock_times[Kind::Join as usize];
        // Plans without joins take next to nothing.
        let join_share = (join_s / stock_s.max(warm.cpu_s * 1e-3)).clamp(0.0, 1.0);
        let (times, _) = self.times(ours, number)?;
        let text = self.suite.text_for_duckdb(number);
        let duckdb_times = self.duckdb.as_ref().map(|duckdb| duckdb.times(&text)).transpose()?;
        let (joins, left) = (count(&plan, "WorkaheadJoinExec"), count(&plan, "HashJoinExec"));
        let mut runs = runs.into_iter();
        let stock = runs.next().expect("stock is the first");
        let arms = self.ours.iter().map(|(arm, _)| *arm).zip(runs.by_ref()).collect();
        let duckdb = runs.next();
        Ok(QueryRuns {
            query: number,
            stock,
            arms,
            duckdb,
            join_share,
            times,
            duckdb_times,
            joins,
            left,
        })
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
        let start = Instant::now();
        let plan = self.plan(session, number);
        let plan_s = start.elapsed().as_secs_f64();
        let (run, rows) = self.execute(session, plan)?;
        Ok((Run { plan_s, ..run }, rows))
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
        let (cpu_s, wall_s) = (process_cpu_s() - cpu_s, wall.elapsed().as_secs_f64());
        let run = Run { plan_s: 0.0, cpu_s, wall_s };
        Ok((run, rows.expect("no panic").map_err(|error| error.to_string())?))
    }

    /// Seconds of each kind of operator, and of the whole: medians of a few runs.
    fn times(&self, session: &SessionContext, number: usize) -> Result<(Times, f64), String> {
        let runs: Result<Vec<(Times, f64)>, String> = (0..TIMED)
            .map(|_| {
                let timed = TimedPlan::new(self.plan(session, number)).expect("clocks fit in");
                let (run, _) = self.execute(session, Arc::clone(&timed.plan))?;
                Ok((Kind::ALL.map(|kind| timed.seconds(kind)), run.cpu_s))
            })
            .collect();
        let runs = runs?;
        let median = |of: &dyn Fn(&(Times, f64)) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[TIMED / 2]
        };
        let times = Kind::ALL.map(|kind| median(&|(times, _)| times[kind as usize]));
        Ok((times, median(&|(_, whole)| *whole)))
    }
}

fn count(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    let below: usize = plan.children().into_iter().map(|child| count(child, name)).sum();
    below + usize::from(plan.name() == name)
}
