//! What a cell asks of a served database: its settings, read and bounded.

use std::collections::BTreeMap;

use workahead_machine::control::placement::Placement;
use workahead_machine::control::smt::SmtAxis;
use workahead_study::cell::Cell;
use workahead_study::engine::EngineError;

use super::work::Work;
use crate::given::Given;

/// Most clients: as many connections as a private server takes, less a few of our own.
const CLIENTS_MAX: usize = 190;
/// Most processes for one query: what PostgreSQL's planner may be told at most.
const PARALLEL_MAX: usize = 1024;
/// Longest measured time.
const SECONDS_MAX: f64 = 7.0 * 86_400.0;

/// A cell, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    /// What is run.
    pub(super) work: Work,
    /// Connections that run it at the same time.
    pub(super) clients: usize,
    /// How much of it.
    pub(super) amount: Amount,
    /// Transactions to start in a second, all clients together; as fast as they can when not given.
    pub(super) rate: Option<f64>,
    /// Processes that may work on one query.
    pub(super) parallel: usize,
    /// What is done with the second thread of a core.
    pub(super) smt: SmtAxis,
    /// In which order CPUs are given to the server.
    pub(super) placement: Placement,
    /// How many; all when not given.
    pub(super) cpus: Option<usize>,
    /// The server's own settings.
    pub(super) server: BTreeMap<String, String>,
}

/// How much is run in one repetition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Amount {
    /// Transactions or queries, all clients together.
    Count(u64),
    /// A time.
    Seconds(f64),
}

impl Asked {
    /// Reads a cell.
    pub(super) fn read(cell: &Cell) -> Result<Self, EngineError> {
        let given = Given::new(cell);
        let work = Work::read(&given)?;
        let clients = given.number("clients", 1, 1..=CLIENTS_MAX)?;
        let queries = given.number("queries", 100, 1..=usize::MAX)? as u64;
        let amount = match given.real("seconds", 0.0, 0.0..=SECONDS_MAX)? {
            seconds if seconds > 0.0 => Amount::Seconds(seconds),
            _ => Amount::Count(queries),
        };
        let rate = given.has("rate").then(|| given.real("rate", 0.0, 0.001..=1e7)).transpose()?;
        let cpus = given.has("cpus").then(|| given.number("cpus", 0, 1..=4096)).transpose()?;
        let asked = Self {
            work,
            clients,
            amount,
            rate,
            parallel: given.number("parallel", 1, 1..=PARALLEL_MAX)?,
            smt: given.choice("smt", SmtAxis::On, &SmtAxis::ALL.map(|smt| (smt.name(), smt)))?,
            placement: given.choice(
                "placement",
                Placement::ALL[0],
                &Placement::ALL.map(|placement| (placement.name(), placement)),
            )?,
            cpus,
            server: given.beginning("server."),
        };
        given.nothing_else()?;
        Ok(asked)
    }
}
