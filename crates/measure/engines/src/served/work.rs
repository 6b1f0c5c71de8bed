//! The workloads of served databases, by their settings in studies.
//!
//! ```text
//! settings ─► Work ─► data()       names the rows: those of one name are the same
//!               ├──► data_bytes()  their approximate size
//!               ├──► open()        the workload itself, with its clients' shared state
//!               └──► measures()    the result in its own unit
//! ```

mod dbmbench;
mod number;
mod order_entry;
mod sql;
mod sysbench;
mod tpch;

use std::sync::Arc;

use workahead_study::engine::EngineError;
use workahead_workloads::client::Workload;
use workahead_workloads::dbmbench::Dbmbench;
use workahead_workloads::order_entry::OrderEntry;
use workahead_workloads::session::Dialect;
use workahead_workloads::sysbench::oltp::Oltp;
use workahead_workloads::tpch::Queries;

use crate::configuration::CellConfiguration;
use crate::load::LoadResult;

/// A workload and its data.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Work {
    /// One query of the micro-benchmarks after DBmbench.
    Dbmbench(workahead_workloads::dbmbench::Options),
    /// Terminals of a wholesaler.
    OrderEntry(workahead_workloads::order_entry::Options),
    /// sysbench's OLTP program.
    Sysbench(workahead_workloads::sysbench::oltp::Options),
    /// Queries of TPC-H.
    Tpch(workahead_workloads::tpch::Options),
    /// A user's own statements.
    Sql(sql::Options),
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Dbmbench,
    OrderEntry,
    Sysbench,
    Tpch,
    Sql,
}

const KINDS: [(&str, Kind); 5] = [
    ("dbmbench", Kind::Dbmbench),
    ("order-entry", Kind::OrderEntry),
    ("sysbench-oltp", Kind::Sysbench),
    ("tpch", Kind::Tpch),
    ("sql", Kind::Sql),
];

/// The default number of transactions: sysbench's own `--max-requests` is ten times that, for a
/// machine of 2004.
const TRANSACTIONS: u64 = 1_000;

impl Work {
    pub(super) fn read(config: &CellConfiguration<'_>) -> Result<Self, EngineError> {
        if !config.has("workload") {
            let names = KINDS.map(|(name, _)| name).join(", ");
            let says = format!("the setting `workload` is missing: choose from {names}");
            return Err(EngineError::failed(says));
        }
        match config.choice("workload", Kind::Dbmbench, &KINDS)? {
            Kind::Sql => sql::read(config).map(Work::Sql),
            kind => Self::of(kind, config),
        }
    }

    /// A workload with data of its own.
    fn of(kind: Kind, config: &CellConfiguration<'_>) -> Result<Self, EngineError> {
        match kind {
            Kind::Dbmbench => dbmbench::read(config).map(Work::Dbmbench),
            Kind::OrderEntry => order_entry::read(config).map(Work::OrderEntry),
            Kind::Sysbench => sysbench::read(config).map(Work::Sysbench),
            Kind::Tpch | Kind::Sql => tpch::read(config).map(Work::Tpch),
        }
    }

    /// Whether a study's own statements change the data.
    pub(super) fn has_set_up(&self) -> bool {
        matches!(self, Work::Sql(options) if options.set_up.is_some())
    }

    /// The workload itself.
    pub(super) fn open(&self, dialect: Dialect) -> Result<Arc<dyn Workload>, EngineError> {
        let failed = EngineError::failed;
        Ok(match self {
            Work::Dbmbench(options) => Arc::new(Dbmbench::new(*options).map_err(failed)?),
            Work::OrderEntry(options) => Arc::new(OrderEntry::new(*options).map_err(failed)?),
            Work::Sysbench(options) => Arc::new(Oltp::new(*options).map_err(failed)?),
            Work::Tpch(options) => Arc::new(Queries::new(options.clone()).map_err(failed)?),
            Work::Sql(options) => sql::open(options, dialect)?,
        })
    }

    /// Names the rows it needs: those of one name are the same.
    pub(super) fn data(&self) -> String {
        match self {
            Work::Dbmbench(options) => dbmbench::data(options),
            Work::OrderEntry(options) => order_entry::data(options),
            Work::Sysbench(options) => sysbench::data(options),
            Work::Tpch(options) => tpch::data(options),
            Work::Sql(options) => sql::data(options),
        }
    }

    /// Approximate bytes of its tables.
    pub(super) fn data_bytes(&self) -> u64 {
        match self {
            Work::Dbmbench(options) => dbmbench::bytes(options),
            Work::OrderEntry(options) => order_entry::bytes(options),
            Work::Sysbench(options) => sysbench::bytes(options),
            Work::Tpch(options) => tpch::bytes(options),
            Work::Sql(options) => options.data.as_ref().map_or(0, |data| data.data_bytes()),
        }
    }

    /// The default number of transactions or queries.
    pub(super) fn usual_count(&self) -> u64 {
        match self {
            Work::Dbmbench(_) => 100,
            Work::OrderEntry(_) | Work::Sysbench(_) => TRANSACTIONS,
            Work::Tpch(options) => options.numbers.len() as u64,
            Work::Sql(_) => 1,
        }
    }

    /// The result in its own unit, by name.
    pub(super) fn measures(&self, driven: &LoadResult) -> Vec<(&'static str, f64)> {
        match self {
            Work::OrderEntry(options) => order_entry::measures(options, driven),
            _ => Vec::new(),
        }
    }
}
