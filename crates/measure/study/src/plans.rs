//! Query plans of all engines as one kind of tree.
//!
//! ```text
//! EXPLAIN text of an engine ──► Node tree ──► fingerprint: operators, tables, indexes, conditions
//!   (kept as it was printed)        │          without costs, rows, times and literals
//!                                   └──► diff: two trees side by side
//! ```
//!
//! A time that changes together with the plan says little about the hardware: Chang (2013) found
//! Q15 four times faster with hyper-threading, and a different plan under it. Every comparison is
//! therefore labelled *same plan* or *plan changed*. A plan that only gained parallel operators
//! (exchanges, partial aggregates) is neither, and has a label of its own.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::hash::fnv1a;

mod datafusion;
mod diff;
mod duckdb;
mod mariadb;
mod normal;
mod postgres;
mod rendered;
mod tree;

pub use diff::{Row, Side, diff};
pub use tree::{Memory, Node, Role, bounded};
use tree::{check_length, check_operators};

/// A plan as its engine printed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanText {
    /// The engine that printed it, which determines its format.
    pub planner: Planner,
    /// The printed plan.
    pub text: String,
    /// The plan printed after a run with timed operators. Kept separately, as it differs: MariaDB
    /// then has computed constants that its plan only names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(skip)]
    names: Names,
}

/// A plan's names, found at the first question: each cell is compared with its baseline.
#[derive(Debug, Clone, Default)]
struct Names(OnceLock<(String, Option<String>)>);

/// They follow from the text.
impl PartialEq for Names {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Names {}

/// The engine that made a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Planner {
    /// `EXPLAIN (FORMAT JSON)`, with `ANALYZE` or without.
    Postgres,
    /// `EXPLAIN FORMAT=JSON` or `ANALYZE FORMAT=JSON`.
    Mariadb,
    /// `EXPLAIN (FORMAT JSON)`, with `ANALYZE` or without.
    Duckdb,
    /// `EXPLAIN FORMAT indent`, `tree` or `pgjson`.
    Datafusion,
}

impl Planner {
    /// As results spell it.
    pub fn name(self) -> &'static str {
        match self {
            Planner::Postgres => "postgres",
            Planner::Mariadb => "mariadb",
            Planner::Duckdb => "duckdb",
            Planner::Datafusion => "datafusion",
        }
    }

    /// The statement that prints a plan.
    fn remedy(self) -> &'static str {
        match self {
            Planner::Postgres | Planner::Duckdb => "EXPLAIN (FORMAT JSON)",
            Planner::Mariadb => "EXPLAIN FORMAT=JSON",
            Planner::Datafusion => "EXPLAIN FORMAT indent",
        }
    }

    fn read(self, text: &str) -> Result<Node, PlanError> {
        let parsed = self.parse(text);
        parsed.map_err(|message| PlanError { planner: self, message, remedy: self.remedy() })
    }

    /// The plan may be in a result of somebody else: whatever its format, it has its limits.
    fn parse(self, text: &str) -> Result<Node, String> {
        check_length(text)?;
        let tree = match self {
            Planner::Postgres => postgres::parse(text)?,
            Planner::Mariadb => mariadb::parse(text)?,
            Planner::Duckdb => duckdb::parse(text)?,
            Planner::Datafusion => datafusion::parse(text)?,
        };
        check_operators(tree.operators())?;
        Ok(tree.tidied())
    }
}

/// Why a text is not a plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a plan of {planner}: {message}; take it with {remedy}", planner = planner.name())]
pub struct PlanError {
    /// The expected engine.
    pub planner: Planner,
    /// The fault.
    pub message: String,
    /// The statement that prints one.
    pub remedy: &'static str,
}

/// A text is not a plan of any known engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is not a plan of PostgreSQL, DuckDB (EXPLAIN (ANALYZE, FORMAT JSON)), MariaDB (ANALYZE \
     FORMAT=JSON) or DataFusion (EXPLAIN ANALYZE)"
)]
pub struct UnknownPlan;

/// How two plans compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// Operators, tables, indexes and conditions are the same.
    Same,
    /// The same except for exchanges and the halves of aggregates around them.
    SameInParallel,
    /// Anything else.
    Changed,
}

impl Label {
    /// As reports print it.
    pub fn text(self) -> &'static str {
        match self {
            Label::Same => "same plan",
            Label::SameInParallel => "same plan, in parallel",
            Label::Changed => "plan changed",
        }
    }
}

impl PlanText {
    /// A plan's text, to be read as this planner's.
    pub fn new(planner: Planner, text: impl Into<String>) -> PlanText {
        PlanText { planner, text: text.into(), run: None, names: Names::default() }
    }

    /// A plan of whichever engine printed it.
    ///
    /// # Errors
    /// When none of them did.
    pub fn of_any(text: impl Into<String>) -> Result<PlanText, UnknownPlan> {
        let text = text.into();
        // DataFusion's may be any words.
        let planners = [Planner::Postgres, Planner::Mariadb, Planner::Duckdb, Planner::Datafusion];
        let planner = planners.into_iter().find(|planner| planner.parse(&text).is_ok());
        let is_plan = |planner: &Planner| {
            *planner != Planner::Datafusion || text.contains("Exec") || text.contains('\u{250c}')
        };
        match planner.filter(is_plan) {
            Some(planner) => Ok(PlanText::new(planner, text)),
            None => Err(UnknownPlan),
        }
    }

    /// The tree.
    pub fn tree(&self) -> Result<Node, PlanError> {
        self.planner.read(&self.text)
    }

    /// The tree with rows and times, if it was run.
    pub fn timed(&self) -> Option<Node> {
        self.planner.read(self.run.as_deref()?).ok()
    }

    /// A short name for the plan, the same whatever it costs, how many rows it expects and which
    /// literals are in it. A text that is not a plan is named by its words.
    pub fn fingerprint(&self) -> String {
        self.names().0.clone()
    }

    /// As [`fingerprint`](Self::fingerprint), without parallel operators.
    pub fn serial_fingerprint(&self) -> String {
        let (whole, serial) = self.names();
        serial.as_ref().unwrap_or(whole).clone()
    }

    fn names(&self) -> &(String, Option<String>) {
        let name = |shape: String| format!("{:016x}", fnv1a(shape.as_bytes()));
        self.names.0.get_or_init(|| match self.tree() {
            Ok(tree) => (name(tree.shape()), Some(name(tree.serial_shape()))),
            Err(_) => (name(normal::condition(&self.text)), None),
        })
    }

    /// How this plan compares with another one.
    pub fn against(&self, other: &PlanText) -> Label {
        match (self.names(), other.names()) {
            ((one, _), (other, _)) if one == other => Label::Same,
            ((_, Some(one)), (_, Some(other))) if one == other => Label::SameInParallel,
            _ => Label::Changed,
        }
    }
}

#[cfg(test)]
mod tests;
