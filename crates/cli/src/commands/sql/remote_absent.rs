//! `--cluster` in a build without clusters: explains how to build it.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use workahead_sql::session::{Answer, Joins, Options, Session, SessionError};

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
        _: &str,
        _: &Options,
        _: Duration,
        _: &'static AtomicBool,
    ) -> anyhow::Result<(Self, Session)> {
        Err(WrongUse::error(BUILD_HINT))
    }

    pub(crate) fn url(&self) -> Option<String> {
        None
    }

    pub(crate) fn refresh(&self) -> anyhow::Result<()> {
        Ok(())
    }

    pub(crate) fn progress(&self) -> Option<Self> {
        None
    }

    pub(crate) fn joins(&self, answer: &Answer) -> Joins {
        answer.joins()
    }

    pub(crate) fn failed(&self, error: SessionError) -> (anyhow::Error, bool) {
        (failed(error), false)
    }
}
