//! `--cluster` in a build without Ballista: explains how to build it.

use std::num::NonZero;
use std::sync::atomic::AtomicBool;

use workahead_sql::session::{Answer, Joiner, Joins, Session, SessionError, Statement};

use super::failed;
use crate::commands::cluster::BUILD_HINT;
use crate::errors::WrongUse;

/// Statements run in this process.
pub(crate) struct Remote;

impl Remote {
    pub(crate) fn none() -> Self {
        Self
    }

    pub(crate) fn session(
        _url: &str,
        _joiner: Joiner,
        _partitions: Option<NonZero<usize>>,
    ) -> anyhow::Result<(Self, Session)> {
        Err(WrongUse::error(BUILD_HINT))
    }

    pub(crate) fn run(
        &self,
        session: &Session,
        statement: &Statement,
        stop: &'static AtomicBool,
    ) -> anyhow::Result<(Answer, Watch)> {
        Ok((session.run(statement, stop).map_err(failed)?, Watch))
    }

    pub(crate) fn joins(&self, answer: &Answer) -> anyhow::Result<Joins> {
        Ok(answer.joins())
    }

    pub(crate) fn failed(&self, error: SessionError, _answer: &Answer) -> anyhow::Error {
        failed(error)
    }
}

/// Nothing to watch.
pub(crate) struct Watch;

impl Watch {
    pub(crate) fn lost_an_executor(&self, _error: &SessionError) -> bool {
        false
    }
}
