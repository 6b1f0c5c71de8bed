//! Two results, before and after: cell by cell where both have one, and other differences.
//!
//! ```text
//! same settings        the usual case: the same study twice
//! same place           no cell has the same settings, but the axes agree: a setting of all cells
//! was changed (a buffer, a scale) and is named only in one          listed
//! ```
//!
//! The runs are not paired, so ratios are Welch's, and whatever differs between the runs is in
//! them. p values are adjusted over all cells (Holm 1979).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::cell::Cell;
use crate::cell_index::CellIndex;
use crate::measure::THROUGHPUT;
use crate::plans::Label;
use crate::results::Results;
use crate::setting::Settings;
use crate::statistics::{UnpairedComparison, holm};

/// The same work at more or less CPU time.
const CPU_PER_TUPLE: &str = "cpu_ns_per_tuple";

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The cells that both have.
    pub lines: Vec<Line>,
    /// Labels of cells without a partner, before.
    pub only_before: Vec<String>,
    /// Labels of cells without a partner, after.
    pub only_after: Vec<String>,
    /// Other differences: machine, versions, settings of all cells.
    pub differences: Vec<Difference>,
}

/// One cell, twice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// The cell in words.
    pub label: String,
    /// Its index before.
    pub before: usize,
    /// Its index after.
    pub after: usize,
    /// Throughput after over before: above 1 is faster.
    pub speedup: Option<UnpairedComparison>,
    /// CPU time for each tuple, after over before: above 1 is more expensive.
    pub cpu: Option<UnpairedComparison>,
    /// The p value of the speed-up, adjusted for all lines.
    pub p_adjusted: Option<f64>,
    /// Whether the plan is the same, where plans are known.
    pub plan: Option<Label>,
    /// Why there is no ratio.
    pub missing: Option<String>,
}

/// A difference between the two results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its name.
    pub name: String,
    /// Before.
    pub before: String,
    /// After.
    pub after: String,
}

impl Comparison {
    /// Of two results. With empty `lines` they have no cell in common.
    pub fn of(before: &Results, after: &Results) -> Comparison {
        let pairs = pairs(before, after);
        let mut lines: Vec<Line> =
            pairs.iter().map(|(one, other)| line((before, one), (after, other))).collect();
        let p: Vec<Option<f64>> = lines.iter().map(|line| line.speedup?.p).collect();
        for (line, adjusted) in lines.iter_mut().zip(holm(&p)) {
            line.p_adjusted = adjusted;
        }
        let is_new = |results: &Results, found: &BTreeSet<usize>| -> Vec<String> {
            let cells = results.run_plan.cells.iter();
            let left = cells.filter(|cell| !found.contains(&cell.index));
            left.map(|cell| label(results, cell)).collect()
        };
        let of_before: BTreeSet<usize> = pairs.iter().map(|(one, _)| one.index).collect();
        let of_after: BTreeSet<usize> = pairs.iter().map(|(_, other)| other.index).collect();
        Comparison {
            lines,
            only_before: is_new(before, &of_before),
            only_after: is_new(after, &of_after),
            differences: differences(before, after, &pairs),
        }
    }
}

type Pair<'a> = (&'a Cell, &'a Cell);

fn pairs<'a>(before: &'a Results, after: &'a Results) -> Vec<Pair<'a>> {
    let (cells, others) = (before.run_plan.cells.iter(), &after.run_plan.cells);
    let by_settings = CellIndex::new(others, |cell| (&cell.settings, Some(cell.protocol.start)));
    let same = |cell: &'a Cell| {
        let key = (&cell.settings, Some(cell.protocol.start));
        Some((cell, by_settings.find(others, key)?))
    };
    let same: Vec<Pair<'a>> = cells.clone().filter_map(same).collect();
    if !same.is_empty() || before.record.study != after.record.study {
        return same;
    }
    let at_place = |cell: &'a Cell| Some((cell, after.run_plan.cell_at(&cell.place)?));
    cells.filter_map(at_place).collect()
}

fn line((before, one): (&Results, &Cell), (after, other): (&Results, &Cell)) -> Line {
    let speedup = UnpairedComparison::of(
        &before.values(one.index, THROUGHPUT),
        &after.values(other.index, THROUGHPUT),
    );
    let plan = before.plan_of(one.index).zip(after.plan_of(other.index));
    Line {
        label: label(before, one),
        before: one.index,
        after: other.index,
        speedup,
        cpu: UnpairedComparison::of(
            &before.values(one.index, CPU_PER_TUPLE),
            &after.values(other.index, CPU_PER_TUPLE),
        ),
        p_adjusted: None,
        plan: plan.map(|(one, other)| other.against(one)),
        missing: speedup.is_none().then(|| missing((before, one), (after, other))),
    }
}

fn missing(before: (&Results, &Cell), after: (&Results, &Cell)) -> String {
    let why = |(results, cell): (&Results, &Cell)| {
        let none = results.values(cell.index, THROUGHPUT).is_empty();
        none.then(|| results.absence(cell.index))
    };
    match (why(before), why(after)) {
        (None, None) => "a throughput is 0".to_owned(),
        (Some(one), Some(other)) if one == other => one,
        (Some(one), Some(other)) => format!("before: {one}; after: {other}"),
        (Some(one), None) => format!("before: {one}"),
        (None, Some(other)) => format!("after: {other}"),
    }
}

fn label(results: &Results, cell: &Cell) -> String {
    match cell.label(&results.run_plan.axes) {
        nothing if nothing.is_empty() => results.spec.title.clone(),
        label => label,
    }
}

fn differences(before: &Results, after: &Results, pairs: &[Pair<'_>]) -> Vec<Difference> {
    let (one, other) = (&before.record, &after.record);
    let engine =
        |results: &Results| format!("{} {}", results.record.engine, results.record.engine_version);
    let scale = |results: &Results| {
        results.spec.scale.clone().unwrap_or_else(|| "the study's own".to_owned())
    };
    let mut facts = vec![
        ("study", one.study.clone(), other.study.clone()),
        ("scale", scale(before), scale(after)),
        ("machine", one.host.name.clone(), other.host.name.clone()),
        (
            "machine's hardware and settings",
            one.host.fingerprint.clone(),
            other.host.fingerprint.clone(),
        ),
        ("evidence tier", one.host.tier.clone(), other.host.tier.clone()),
        ("engine", engine(before), engine(after)),
        ("workahead", one.command_version.clone(), other.command_version.clone()),
        ("seed", one.seed.to_string(), other.seed.to_string()),
        (
            "repetitions",
            before.run_plan.repetitions.to_string(),
            after.run_plan.repetitions.to_string(),
        ),
    ];
    let shown = |value: Option<&crate::setting::Setting>| {
        value.map_or_else(|| "not set".to_owned(), ToString::to_string)
    };
    let mut set: BTreeMap<&str, (String, String)> = BTreeMap::new();
    for (one, other) in pairs {
        let names = one.settings.keys().chain(other.settings.keys());
        for name in names.filter(|name| one.get(name) != other.get(name)) {
            set.entry(name).or_insert_with(|| (shown(one.get(name)), shown(other.get(name))));
        }
    }
    facts.extend(set.into_iter().map(|(name, (one, other))| (name, one, other)));
    let differs = |(name, before, after): (&str, String, String)| {
        (before != after).then(|| Difference { name: name.to_owned(), before, after })
    };
    facts.into_iter().filter_map(differs).collect()
}

/// Settings that all cells of a result have alike.
pub fn shared_settings(results: &Results) -> Settings {
    let mut cells = results.run_plan.cells.iter();
    let mut shared = cells.next().map(|cell| cell.settings.clone()).unwrap_or_default();
    for cell in cells {
        shared.retain(|name, value| cell.get(name) == Some(value));
    }
    shared
}

#[cfg(test)]
mod tests;
