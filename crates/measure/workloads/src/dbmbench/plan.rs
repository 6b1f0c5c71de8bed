//! Whose plan: the engine's own, or the seed's, which some engines must be talked into.
//!
//! The paper's plans (Hassanein et al. 2008, figures 1 and 2, from PostgreSQL 8.1): µTPC-C bitmap
//! index scan, bitmap heap scan, aggregate; µSS file scan, sort, duplicate elimination; µNJ file
//! scan of T1, index scan of T2 inside a nested loop, average. What each engine needs for that was
//! tried on PostgreSQL 15 and MariaDB 10.11. DuckDB and DataFusion have neither an index scan that
//! they would use nor a nested loop by an index: they only run the logical query.

use super::Query;
use crate::session::{Dialect, SessionError};

/// Whose plan a query runs by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plan {
    /// What the engine's planner chooses.
    Native,
    /// The seed's.
    Seed,
}

/// What has to be said to get a plan, and how to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pinning {
    /// Statements for the session.
    pub settings: &'static [&'static str],
    /// Before the column list: MariaDB's order of joins.
    pub select: &'static str,
    /// After T1's name: MariaDB's choice of an index.
    pub t1: &'static str,
    /// Operators that the plan must show, from the top; none for a native plan.
    pub operators: &'static [&'static str],
}

const NATIVE: Pinning = Pinning { settings: &[], select: "", t1: "", operators: &[] };

/// Sorts of 100,000 rows stay in memory (the seed excludes disks), and every execution is planned
/// for its own bounds.
const POSTGRES: &[&str] = &["set work_mem = '64MB'", "set plan_cache_mode = force_custom_plan"];
const POSTGRES_UTPCC: &[&str] = &[
    "set work_mem = '64MB'",
    "set plan_cache_mode = force_custom_plan",
    "set max_parallel_workers_per_gather = 0",
    "set enable_seqscan = off",
    "set enable_indexscan = off",
    "set enable_indexonlyscan = off",
];
const POSTGRES_USS: &[&str] = &[
    "set work_mem = '64MB'",
    "set plan_cache_mode = force_custom_plan",
    "set max_parallel_workers_per_gather = 0",
    "set enable_hashagg = off",
];
/// Without an index-only scan: the seed's PostgreSQL had none, and ours would read the heap or not
/// by when T2 was last vacuumed.
const POSTGRES_UNJ: &[&str] = &[
    "set work_mem = '64MB'",
    "set plan_cache_mode = force_custom_plan",
    "set max_parallel_workers_per_gather = 0",
    "set enable_hashjoin = off",
    "set enable_mergejoin = off",
    "set enable_memoize = off",
    "set enable_material = off",
    "set enable_bitmapscan = off",
    "set enable_indexonlyscan = off",
];

/// What a query needs for a plan on an engine.
///
/// # Errors
/// When the engine has no such plan.
pub fn pinning(dialect: Dialect, query: Query, plan: Plan) -> Result<Pinning, SessionError> {
    let seed = |settings, operators| Pinning { settings, operators, ..NATIVE };
    Ok(match (plan, dialect, query) {
        (Plan::Native, Dialect::Postgres, _) => Pinning { settings: POSTGRES, ..NATIVE },
        (Plan::Native, ..) => NATIVE,
        (Plan::Seed, Dialect::Postgres, Query::Utpcc) => {
            seed(POSTGRES_UTPCC, &["Aggregate", "Bitmap Heap Scan", "Bitmap Index Scan"])
        }
        (Plan::Seed, Dialect::Postgres, Query::Uss) => {
            seed(POSTGRES_USS, &["Unique", "Sort", "Seq Scan"])
        }
        (Plan::Seed, Dialect::Postgres, Query::Unj) => {
            seed(POSTGRES_UNJ, &["Aggregate", "Nested Loop", "Seq Scan", "Index Scan"])
        }
        (Plan::Seed, Dialect::MariaDb, Query::Utpcc) => {
            Pinning { t1: " force index (t1_a2)", operators: &["range"], ..NATIVE }
        }
        (Plan::Seed, Dialect::MariaDb, Query::Uss) => {
            Pinning { operators: &["filesort", "ALL"], ..NATIVE }
        }
        (Plan::Seed, Dialect::MariaDb, Query::Unj) => {
            Pinning { select: " straight_join", operators: &["ALL", "eq_ref"], ..NATIVE }
        }
        (Plan::Seed, Dialect::DuckDb | Dialect::DataFusion, _) => {
            return Err(SessionError::Failed(format!(
                "{dialect} has no plan like the seed's for {}: ask for the native plan",
                query.name(),
            )));
        }
    })
}
