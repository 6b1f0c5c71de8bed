//! Metrics: the catalogue, independent of the machine.
//!
//! The catalogue (`tables/metrics.toml`) gives each metric its name, its unit, and the groups that
//! a study names (`counters = ["cpi", "l2"]`). How it is computed, or why it can't be, is a matter
//! of each machine's [table](crate::table).
//!
//! Where accesses are counted a rate stands twice: per 1000 instructions and per access. Hassanein
//! et al. (2008) leave open which of them they print (ledger D5).

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::nearest;

/// One metric of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its name in tables and results: `l2_mpki`.
    pub name: String,
    /// The groups it belongs to, as studies name them.
    pub groups: Vec<String>,
    /// Its unit.
    pub unit: Unit,
    /// The unit of its denominator.
    pub per: Per,
    /// Its title in reports.
    pub words: String,
}

/// The unit of a metric, as reports print it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Unit {
    /// Cycles for each instruction.
    #[serde(rename = "cycles per instruction")]
    CyclesPerInstruction,
    /// Cycles for each uop.
    #[serde(rename = "cycles per uop")]
    CyclesPerUop,
    /// Uops for each instruction.
    #[serde(rename = "uops per instruction")]
    UopsPerInstruction,
    /// Uops in each cycle.
    #[serde(rename = "uops per cycle")]
    UopsPerCycle,
    /// Events in 1000 instructions.
    #[serde(rename = "per 1000 instructions")]
    PerThousandInstructions,
    /// A part of a whole, 0 to 1 but for noise.
    #[serde(rename = "share")]
    Share,
    /// A number without a unit that may exceed 1.
    #[serde(rename = "ratio")]
    Ratio,
    /// Cycles.
    #[serde(rename = "cycles")]
    Cycles,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Requests under way at once.
    #[serde(rename = "requests")]
    Requests,
    /// Events in each second on a CPU.
    #[serde(rename = "per second")]
    PerSecond,
}

/// The unit of a metric's denominator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// Instructions retired.
    Instruction,
    /// Uops, or macro-ops where the manufacturer counts those.
    Uop,
    /// Cycles in which the thread runs.
    Cycle,
    /// Accesses to the cache or the table that misses.
    Access,
    /// Branches retired.
    Branch,
    /// Misses of the level before.
    Miss,
    /// Places for a uop in a cycle.
    Slot,
    /// Requests to memory.
    Request,
    /// Seconds on a CPU.
    Second,
}

/// A name that is not in the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// No such metric.
    #[error("no metric is called `{given}`: {remedy}")]
    UnknownMetric {
        /// The requested name.
        given: String,
        /// The nearest name, or all of them.
        remedy: String,
    },
    /// No such group of metrics.
    #[error("no group of metrics is called `{given}`: {remedy}")]
    UnknownGroup {
        /// The requested name.
        given: String,
        /// The nearest name, or all of them.
        remedy: String,
    },
}

/// The whole catalogue, in the order of a report.
pub fn catalogue() -> &'static [Metric] {
    static CATALOGUE: LazyLock<Vec<Metric>> = LazyLock::new(|| {
        let text = include_str!("../tables/metrics.toml");
        toml::from_str::<File>(text).expect("the embedded catalogue is tested").metric
    });
    &CATALOGUE
}

/// A metric by its name.
///
/// # Errors
/// If there is none; names the nearest one.
pub fn named(name: &str) -> Result<&'static Metric, MetricError> {
    catalogue().iter().find(|metric| metric.name == name).ok_or_else(|| {
        let known: Vec<&str> = catalogue().iter().map(|metric| metric.name.as_str()).collect();
        let remedy = nearest::remedy(name, &known);
        MetricError::UnknownMetric { given: name.to_owned(), remedy }
    })
}

/// The names of the groups, in the order in which the catalogue first mentions them.
pub fn groups() -> Vec<&'static str> {
    let mut groups: Vec<&str> = Vec::new();
    for group in catalogue().iter().flat_map(|metric| &metric.groups) {
        if !groups.contains(&group.as_str()) {
            groups.push(group);
        }
    }
    groups
}

/// The metrics of a group, in the catalogue's order.
///
/// # Errors
/// If there is no such group; names the nearest one.
pub fn of_group(group: &str) -> Result<Vec<&'static Metric>, MetricError> {
    let belongs = |metric: &&Metric| metric.groups.iter().any(|name| name == group);
    let metrics: Vec<&Metric> = catalogue().iter().filter(belongs).collect();
    if metrics.is_empty() {
        let remedy = nearest::remedy(group, &groups());
        return Err(MetricError::UnknownGroup { given: group.to_owned(), remedy });
    }
    Ok(metrics)
}

/// The file of the catalogue.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    metric: Vec<Metric>,
}

impl Unit {
    /// As reports print it.
    pub fn words(self) -> &'static str {
        match self {
            Self::CyclesPerInstruction => "cycles per instruction",
            Self::CyclesPerUop => "cycles per uop",
            Self::UopsPerInstruction => "uops per instruction",
            Self::UopsPerCycle => "uops per cycle",
            Self::PerThousandInstructions => "per 1000 instructions",
            Self::Share => "share",
            Self::Ratio => "ratio",
            Self::Cycles => "cycles",
            Self::Nanoseconds => "ns",
            Self::Requests => "requests",
            Self::PerSecond => "per second",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}
