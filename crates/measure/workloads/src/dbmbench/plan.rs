//! The plan of a query: the engine's own, or the paper's, which some engines must be forced to use.
//!
//! The paper's plans (Hassanein et al. 2008, figures 1 and 2, from PostgreSQL 8.1): µTPC-C bitmap
//! index scan, bitmap heap scan, aggregate; µSS file scan, sort, duplicate elimination; µNJ file
//! scan of T1, index scan of T2 inside a nested loop, average. What each engine needs for that was
//! tried on PostgreSQL 15 and MariaDB 10.11. DuckDB and DataFusion have neither an index scan that
//! they would use nor a nested loop by an index: they only run the logical query.

use super::Query;
use crate::session::{Dialect, SessionError};

/// The plan that a query runs by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plan {
    /// The one that the engine's planner chooses.
    Native,
    /// That of the paper.
    Paper,
}

/// Settings and hints that force a plan, and the operators it must show.
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

/// Sorts of 100,000 rows stay in memory (the paper excludes disks), and every execution is planned
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
/// Without an index-only scan: the paper's PostgreSQL had none, and ours would read the heap or not
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

/// The pinning of a query's plan on an engine.
///
/// # Errors
/// When the engine has no such plan.
pub fn pinning(dialect: Dialect, query: Query, plan: Plan) -> Result<Pinning, SessionError> {
    let paper = |settings, operators| Pinning { settings, operators, ..NATIVE };
    Ok(match (plan, dialect, query) {
        (Plan::Native, Dialect::Postgres, _) => Pinning { settings: POSTGRES, ..NATIVE },
        (Plan::Native, ..) => NATIVE,
        (Plan::Paper, Dialect::Postgres, Query::Utpcc) => {
            paper(POSTGRES_UTPCC, &["Aggregate", "Bitmap Heap Scan", "Bitmap Index Scan"])
        }
        (Plan::Paper, Dialect::Postgres, Query::Uss) => {
            paper(POSTGRES_USS, &["Unique", "Sort", "Seq Scan"])
        }
        (Plan::Paper, Dialect::Postgres, Query::Unj) => {
            paper(POSTGRES_UNJ, &["Aggregate", "Nested Loop", "Seq Scan", "Index Scan"])
        }
        (Plan::Paper, Dialect::MariaDb, Query::Utpcc) => {
            Pinning { t1: " force index (t1_a2)", operators: &["range"], ..NATIVE }
        }
        (Plan::Paper, Dialect::MariaDb, Query::Uss) => {
            Pinning { operators: &["filesort", "ALL"], ..NATIVE }
        }
        (Plan::Paper, Dialect::MariaDb, Query::Unj) => {
            Pinning { select: " straight_join", operators: &["ALL", "eq_ref"], ..NATIVE }
        }
        (Plan::Paper, Dialect::DuckDb | Dialect::DataFusion, _) => {
            return Err(SessionError::Failed(format!(
                "{dialect} has no plan like the paper's for {}: choose `plan = \"native\"`",
                query.name(),
            )));
        }
    })
}
