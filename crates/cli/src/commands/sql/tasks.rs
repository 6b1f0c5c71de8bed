//! The statements, run one after the other.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Context;
use workahead_sql::session::{Joins, Session, Statement};
use workahead_workloads::tpch::{QUERIES, query};

use super::failed;
use super::remote::Remote;
use super::report::StatementReport;
use super::rows::{Destination, Position};
use crate::errors::WrongUse;

/// `--tpch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TpchQueries {
    One(usize),
    All,
}

impl FromStr for TpchQueries {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse::<usize>().ok().filter(|number| query(*number).is_some());
        match (text, number) {
            ("all", _) => Ok(Self::All),
            (_, Some(number)) => Ok(Self::One(number)),
            _ => Err(format!("give a number from 1 to {QUERIES}, or all")),
        }
    }
}

/// The statements to run.
pub(crate) struct Tasks {
    statements: Vec<Task>,
    /// All queries of a benchmark, whose rows are only counted.
    suite: bool,
}

struct Task {
    name: Option<String>,
    statement: Statement,
}

impl Tasks {
    /// The statements of a SQL text.
    pub(crate) fn of_text(
        session: &Session,
        text: &str,
        stop: &AtomicBool,
    ) -> anyhow::Result<Self> {
        let statements = session.statements(text, stop).map_err(failed)?;
        if statements.is_empty() {
            return Err(WrongUse::error("no statement to run"));
        }
        let plain = |statement| Task { name: None, statement };
        Ok(Self { statements: statements.into_iter().map(plain).collect(), suite: false })
    }

    /// Queries of the benchmark.
    pub(crate) fn of_tpch(
        session: &Session,
        which: TpchQueries,
        stop: &AtomicBool,
    ) -> anyhow::Result<Self> {
        let numbers = match which {
            TpchQueries::One(number) => number..=number,
            TpchQueries::All => 1..=QUERIES,
        };
        let mut statements = Vec::new();
        for number in numbers {
            let text = query(number).expect("checked when it was read");
            for statement in session.statements(text, stop).map_err(failed)? {
                statements.push(Task { name: Some(format!("q{number}")), statement });
            }
        }
        Ok(Self { statements, suite: which == TpchQueries::All })
    }

    /// Whether rows are only counted.
    pub(crate) fn is_suite(&self) -> bool {
        self.suite
    }

    /// Runs them, and writes rows to the destination.
    pub(crate) fn run(
        self,
        session: &Session,
        remote: &Remote,
        destination: &Destination,
        stop: &'static AtomicBool,
    ) -> anyhow::Result<Vec<StatementReport>> {
        let last = self.statements.len() - 1;
        let mut all = Vec::new();
        for (at, Task { name, statement }) in self.statements.into_iter().enumerate() {
            let position = match at == last {
                _ if self.suite => Position::OfSuite,
                true => Position::Last,
                false => Position::Earlier,
            };
            let context = name.clone();
            let report = || -> anyhow::Result<StatementReport> {
                let run = Run { session, remote, destination, stop };
                let TaskResult { rows, out, seconds, joins, runs } =
                    run.complete(&statement, position)?;
                Ok(StatementReport { name, rows, seconds, joins, out, runs })
            };
            all.push(match context {
                Some(name) => report().context(name)?,
                None => report()?,
            });
        }
        Ok(all)
    }
}

/// More lost workers than this are not a coincidence.
const RUNS_MAX: usize = 3;

/// The environment of a statement.
struct Run<'a> {
    session: &'a Session,
    remote: &'a Remote,
    destination: &'a Destination,
    stop: &'static AtomicBool,
}

struct TaskResult {
    rows: u64,
    out: Option<(PathBuf, u64)>,
    seconds: f64,
    joins: Joins,
    runs: usize,
}

impl Run<'_> {
    /// Runs a statement and writes its rows; runs it again if a worker is lost.
    fn complete(&self, statement: &Statement, position: Position) -> anyhow::Result<TaskResult> {
        let start = Instant::now();
        self.remote.refresh()?;
        let mut runs = 0;
        loop {
            runs += 1;
            let mut answer = self.session.run(statement, self.stop).map_err(failed)?;
            let mut sink = self.destination.sink(&answer, position)?;
            // Until there are rows.
            let mut progress = self.remote.progress();
            let failure = loop {
                let next = answer.next_batch();
                progress.take();
                match next {
                    Ok(Some(batch)) => sink.write(&batch)?,
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            let Some(error) = failure else {
                let (rows, out) = sink.finish()?;
                let seconds = start.elapsed().as_secs_f64();
                let joins = self.remote.joins(&answer);
                return Ok(TaskResult { rows, out, seconds, joins, runs });
            };
            // Its tasks end with it.
            drop(answer);
            let (failure, of_the_cluster) = self.remote.failed(error);
            if !of_the_cluster || sink.has_printed() || runs == RUNS_MAX {
                return Err(failure);
            }
        }
    }
}
