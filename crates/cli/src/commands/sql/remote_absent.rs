//! `--cluster` in a build without Ballista: says how to get one with it.

use std::num::NonZero;
use std::sync::atomic::AtomicBool;

use workahead_sql::session::{Answer, Joiner, Joins, Session, SessionError, Statement};

use super::failed;
use crate::commands::cluster::HOW;
use crate::errors::WrongUse;

/// Nobody but this process answers.
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
        Err(WrongUse::error(HOW))
    }

    pub(crate) fn run(
        &self,
        session: &Session,
        statement: &Statement,
        stop: &'static AtomicBool,
    ) -> anyhow::Result<(Answer, Watched)> {
        Ok((session.run(statement, stop).map_err(failed)?, Watched))
    }

    pub(crate) fn joins(&self, answer: &Answer) -> anyhow::Result<Joins> {
        Ok(answer.joins())
    }

    pub(crate) fn failed(&self, error: SessionError, _answer: &Answer) -> anyhow::Error {
        failed(error)
    }
}

/// Nothing is.
pub(crate) struct Watched;

impl Watched {
    pub(crate) fn lost_an_executor(&self, _error: &SessionError) -> bool {
        false
    }
}
