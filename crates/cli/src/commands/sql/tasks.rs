//! The statements, and running them one after the other.

use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::Context;
use workahead_sql::session::{Session, Statement};
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
            let start = Instant::now();
            let turn = match at == last {
                _ if self.suite => Turn::OfSuite,
                true => Turn::Last,
                false => Turn::Earlier,
            };
            let context = name.clone();
            let done = || -> anyhow::Result<Facts> {
                let mut answer = session.run(&statement, stop).map_err(failed)?;
                let mut sink = goal.sink(&answer, turn)?;
                loop {
                    match answer.next_batch() {
                        Ok(Some(batch)) => sink.write(&batch)?,
                        Ok(None) => break,
                        Err(error) => return Err(remote.failed(error, &answer)),
                    }
                }
                let (rows, out) = sink.finish()?;
                let seconds = start.elapsed().as_secs_f64();
                let joins = remote.joins(&answer)?;
                Ok(Facts { name, rows, seconds, joins, out })
            };
            all.push(match context {
                Some(name) => done().context(name)?,
                None => done()?,
            });
        }
        Ok(all)
    }
}
