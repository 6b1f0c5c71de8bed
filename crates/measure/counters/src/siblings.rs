//! The counts of each logical CPU of a core, for stall components (ledger S0.15, A6).
//!
//! ```text
//!   cores [[0, 32], [1, 33]]       H0 = CPUs 0 and 1     H1 = CPUs 32 and 33
//!   of each CPU                    instructions a second, misses per 1000 of them
//!   of a series                    sums over its CPUs: every core weighs by its work
//! ```
//!
//! Hassanein et al. (2008, section 4.6) have one core, and call its logical CPUs H0 and H1. Of
//! several cores the first logical CPUs are H0 together, the second H1. A CPU on which nothing ran
//! is in no series, so that a run without siblings is one series, O.

use crate::cycles::{LogicalCpu, StallCause, Value, missing};
use crate::event::Privilege;
use crate::metrics::{Metrics, PRIVILEGES};
use crate::rates::Rates;
use crate::stream::Stream;
use crate::table::Table;

/// The metric of each cause: its events per 1000 instructions.
pub const CAUSES: [(StallCause, &str); 7] = [
    (StallCause::L3, "l3_mpki"),
    (StallCause::L2, "l2_mpki"),
    (StallCause::L1d, "l1d_mpki"),
    (StallCause::Fetch, "l1i_mpki"),
    (StallCause::Dtlb, "dtlb_mpki"),
    (StallCause::Itlb, "itlb_mpki"),
    (StallCause::Branch, "branch_mpki"),
];

/// The logical CPUs with the same letter.
#[derive(Debug, Clone, PartialEq)]
pub struct Sibling {
    /// Their numbers, one of each core.
    pub cpus: Vec<u32>,
    /// Instructions and events by cause, per second, of all together.
    pub counted: LogicalCpu,
}

/// The series of a stream, H0 first; a single one where no two CPUs of a core ran.
///
/// # Errors
/// Why there are no figures by logical CPU, in one line.
pub fn siblings(
    stream: &Stream,
    metrics: &Metrics,
    privilege: Privilege,
) -> Result<Vec<Sibling>, String> {
    let header = &stream.header;
    if let Some(lacks) = &header.lacks {
        return Err(lacks.clone());
    }
    let table = header.table.as_deref().and_then(|name| Table::named(name).ok());
    let table = table.ok_or("no table of events knows this processor")?;
    if header.cores.is_empty() {
        return Err("which CPUs share a core was not recorded".to_owned());
    }
    let rates = Rates::of(stream, &table.work);
    let work = |cpu: u32| rates.rate(&table.work, privilege, Some(cpu)).map(|rate| rate.per_s.mean);
    let mut series: Vec<Vec<(u32, f64)>> = Vec::new();
    for core in &header.cores {
        let ran =
            core.iter().filter_map(|cpu| Some((*cpu, work(*cpu).filter(|work| *work > 0.0)?)));
        for (index, on) in ran.enumerate() {
            if series.len() == index {
                series.push(Vec::new());
            }
            series[index].push(on);
        }
    }
    if series.is_empty() {
        return Err("instructions were not counted on each CPU by itself".to_owned());
    }
    let sibling = |cpus: Vec<(u32, f64)>| {
        let misses =
            CAUSES.map(|(cause, metric)| (cause, events(metrics, metric, privilege, &cpus)));
        let instructions = Ok(cpus.iter().map(|(_, work)| work).sum());
        let counted = LogicalCpu { instructions, misses: misses.into() };
        Sibling { cpus: cpus.into_iter().map(|(cpu, _)| cpu).collect(), counted }
    };
    Ok(series.into_iter().map(sibling).collect())
}

/// Events of some CPUs in a second, out of their rates and instructions.
fn events(metrics: &Metrics, metric: &str, side: Privilege, cpus: &[(u32, f64)]) -> Value {
    cpus.iter().try_fold(0.0, |sum, (cpu, work)| {
        let valued = metrics.get(metric, side, Some(*cpu));
        match valued.and_then(|valued| valued.value) {
            Some(mpki) => Ok(sum + mpki / 1000.0 * work),
            None => Err(missing(metric, &why(metrics, metric, side, *cpu))),
        }
    })
}

/// Why a CPU has no value: the reason of all CPUs together, where they have none either.
fn why(metrics: &Metrics, metric: &str, side: Privilege, cpu: u32) -> String {
    let over_all = |side| metrics.get(metric, side, None);
    let valued = over_all(side).or_else(|| PRIVILEGES.into_iter().find_map(over_all));
    let Some(valued) = valued else { return "it was not requested".to_owned() };
    valued.why.clone().unwrap_or_else(|| format!("it was not counted on CPU {cpu}"))
}

#[cfg(test)]
mod tests;
