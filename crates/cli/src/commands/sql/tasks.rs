//! The statements, and running them one after the other.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Context;
use workahead_sql::session::{Joins, Session, Statement};
use workahead_workloads::tpch::{QUERIES, query};

use super::facts::Facts;
use super::failed;
use super::remote::Remote;
use super::rows::{Goal, Turn};
use crate::errors::WrongUse;

/// `--tpch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    One(usize),
    All,
}

impl FromStr for Which {
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

/// What to run.
pub(crate) struct Tasks {
    statements: Vec<Task>,
    /// Queries of a benchmark, of which rows are no more than counted when they are many.
    suite: bool,
}

struct Task {
    name: Option<String>,
    statement: Statement,
}

impl Tasks {
    /// Of SQL.
    pub(crate) fn of_text(session: &Session, text: &str) -> anyhow::Result<Self> {
        let statements = session.statements(text).map_err(failed)?;
        if statements.is_empty() {
            return Err(WrongUse::error("there is no statement to run"));
        }
        let plain = |statement| Task { name: None, statement };
        Ok(Self { statements: statements.into_iter().map(plain).collect(), suite: false })
    }

    /// Of the benchmark.
    pub(crate) fn of_tpch(session: &Session, which: Which) -> anyhow::Result<Self> {
        let numbers = match which {
            Which::One(number) => number..=number,
            Which::All => 1..=QUERIES,
        };
        let mut statements = Vec::new();
        for number in numbers {
            let text = query(number).expect("checked when it was read");
            for statement in session.statements(text).map_err(failed)? {
                statements.push(Task { name: Some(format!("q{number}")), statement });
            }
        }
        Ok(Self { statements, suite: which == Which::All })
    }

    /// Whether rows are only counted.
    pub(crate) fn is_suite(&self) -> bool {
        self.suite
    }

    /// Runs them, rows going where they should.
    pub(crate) fn run(
        self,
        session: &Session,
        remote: &Remote,
        goal: &Goal,
        stop: &'static AtomicBool,
    ) -> anyhow::Result<Vec<Facts>> {
        let last = self.statements.len() - 1;
        let mut all = Vec::new();
        for (at, Task { name, statement }) in self.statements.into_iter().enumerate() {
            let turn = match at == last {
                _ if self.suite => Turn::OfSuite,
                true => Turn::Last,
                false => Turn::Earlier,
            };
            let context = name.clone();
            let done = || -> anyhow::Result<Facts> {
                let run = Run { session, remote, goal, stop };
                let Done { rows, out, seconds, joins, runs } = run.done(&statement, turn)?;
                Ok(Facts { name, rows, seconds, joins, out, runs })
            };
            all.push(match context {
                Some(name) => done().context(name)?,
                None => done()?,
            });
        }
        Ok(all)
    }
}

/// More executors than this are not lost by chance.
const RUNS_MAX: usize = 3;

/// What a statement is run with.
struct Run<'a> {
    session: &'a Session,
    remote: &'a Remote,
    goal: &'a Goal,
    stop: &'static AtomicBool,
}

struct Done {
    rows: u64,
    out: Option<(PathBuf, u64)>,
    seconds: f64,
    joins: Joins,
    runs: usize,
}

impl Run<'_> {
    /// Reads a statement's rows; from their start, should an executor be lost on the way.
    fn done(&self, statement: &Statement, turn: Turn) -> anyhow::Result<Done> {
        let start = Instant::now();
        let mut runs = 0;
        loop {
            runs += 1;
            let (mut answer, watched) = self.remote.run(self.session, statement, self.stop)?;
            let mut sink = self.goal.sink(&answer, turn)?;
            let broken = loop {
                match answer.next_batch() {
                    Ok(Some(batch)) => sink.write(&batch)?,
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            };
            let Some(error) = broken else {
                let (rows, out) = sink.finish()?;
                let seconds = start.elapsed().as_secs_f64();
                let joins = self.remote.joins(&answer)?;
                return Ok(Done { rows, out, seconds, joins, runs });
            };
            let again = !sink.is_seen() && watched.lost_an_executor(&error);
            let says = self.remote.failed(error, &answer);
            if !again || runs == RUNS_MAX {
                return Err(says);
            }
        }
    }
}
