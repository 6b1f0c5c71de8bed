//! The section of counters: counts of every cell, and reasons for missing ones.
//!
//! ```text
//!   slots of a cell ──► metrics ──► a table: a row a metric; user, kernel, all of every cell
//!                              ├──► bars: CPI by its parts, beside it slots by outcome
//!                              ├──► bars: CPI if nothing overlapped, against the measured one
//!                              └──► columns and bars by logical CPU, H0 beside H1
//! ```
//! A machine without hardware counters still counts page faults and switches of tasks. Such a page
//! has a short table and a long list of missing metrics.

use std::collections::HashSet;

use serde::Serialize;
use workahead_counters::event::Privilege;
use workahead_counters::metrics::{MetricValue, Metrics, PRIVILEGES};
use workahead_counters::siblings::CAUSES;
use workahead_counters::stream::Stream;
use workahead_study::cell::Cell;

use crate::view::View;
use crate::words;

mod bars;
mod costs;
mod overlap;
mod siblings;
mod slots;
mod table;

use bars::Pair;
use overlap::Overlap;
use siblings::Siblings;
use table::Table;

/// The section.
#[derive(Debug, Serialize)]
pub(crate) struct CountsSection {
    /// Sentences over all figures: how they were constructed, where no machine was counted.
    pub(crate) constructed: Vec<String>,
    /// Targets and machines of the counts.
    pub(crate) targets: Vec<String>,
    pub(crate) pairs: Vec<Pair>,
    /// Notes on bars or parts that are missing or differ from their names.
    pub(crate) of_bars: Vec<String>,
    /// Parts of a CPI bar may overlap; empty without bars.
    pub(crate) bars_caption: String,
    /// The CPI as if nothing overlapped.
    pub(crate) overlaps: Vec<Overlap>,
    pub(crate) of_overlaps: Vec<String>,
    pub(crate) overlaps_caption: String,
    /// By logical CPU of a core.
    pub(crate) siblings: Option<Siblings>,
    pub(crate) tables: Vec<Table>,
    /// Missing columns, with the reason.
    pub(crate) columns: Vec<String>,
    /// Metrics without any value, by reason.
    pub(crate) unavailable: Vec<UnavailableMetrics>,
    /// Their number, if there are many reasons.
    pub(crate) unavailable_count: Option<String>,
    /// Whether a figure is marked as noisy.
    pub(crate) is_noisy: bool,
    pub(crate) tier: String,
}

/// Metrics without a value for one reason.
#[derive(Debug, Serialize)]
pub(crate) struct UnavailableMetrics {
    pub(crate) metrics: usize,
    /// The number in words.
    pub(crate) count: String,
    /// Their names.
    pub(crate) names: String,
    pub(crate) why: String,
    /// Whether the list is folded.
    pub(crate) is_long: bool,
}

/// Cells in it: each has up to three columns of more than a hundred metrics.
const CELLS_MAX: usize = 500;
/// More names than this are folded away.
const NAMES_MAX: usize = 14;
/// So are more reasons than this.
const REASONS_MAX: usize = 6;

/// The counts of one cell.
struct CellCounts<'a> {
    cell: &'a Cell,
    stream: Stream,
    metrics: Metrics,
    /// Privileges with values, in the order of display.
    sides: Vec<Privilege>,
}

impl<'a> CellCounts<'a> {
    /// `None` where nothing was counted in the cell.
    fn new(view: &View<'_>, cell: &'a Cell) -> Option<Self> {
        let stream = view.results.counts(cell.index)?;
        let metrics = Metrics::of(&stream).only(is_used);
        let is_there = |side: &Privilege| {
            metrics.values().iter().any(|one| one.privilege == *side && is_over_all(one))
        };
        let sides = PRIVILEGES.into_iter().filter(is_there).collect();
        Some(Self { cell, stream, metrics, sides })
    }

    /// A metric over all CPUs.
    fn metric_value(&self, metric: &str, side: Privilege) -> Option<&MetricValue> {
        self.metrics.get(metric, side, None)
    }

    /// A value over all CPUs.
    fn value(&self, metric: &str, side: Privilege) -> Option<f64> {
        self.metric_value(metric, side)?.value
    }

    /// Why a metric has no value: for this side, or at all.
    fn why(&self, metric: &str, side: Privilege) -> Option<&str> {
        let of_metric = || self.metrics.values().iter().filter(|one| one.metric.name == metric);
        let own = of_metric().find(|one| one.privilege == side && one.cpu.is_none());
        own.or_else(|| of_metric().next())?.why.as_deref()
    }
}

/// Whether a figure may be of it: on a CPU by itself only causes of stalls are looked at. A machine
/// may have thousands of CPUs, and those of all cells are held at once.
fn is_used(one: &MetricValue) -> bool {
    one.cpu.is_none() || CAUSES.iter().any(|(_, name)| *name == one.metric.name)
}

fn is_over_all(one: &MetricValue) -> bool {
    one.cpu.is_none() && one.value.is_some()
}

fn side_word(side: Privilege) -> &'static str {
    match side {
        Privilege::User => "user",
        Privilege::Kernel => "kernel",
        Privilege::Both => "all",
    }
}

/// The section; `None` for a study without counters.
pub(crate) fn counted(view: &View<'_>) -> Option<CountsSection> {
    if view.results.spec.method.counters.is_empty() {
        return None;
    }
    let counted = view.cells().iter().filter_map(|cell| CellCounts::new(view, cell));
    let cells: Vec<CellCounts<'_>> = counted.take(CELLS_MAX).collect();
    let groups = by_surroundings(view, &cells);
    let (pairs, of_bars) = bars::pairs(view, &groups);
    let (overlaps, of_overlaps) = overlap::overlaps(view, &groups);
    let tables = table::tables(view, &groups);
    let unavailable = unavailable(&cells);
    let metrics: usize = unavailable.iter().map(|unavailable| unavailable.metrics).sum();
    let constructed = each_once(cells.iter().filter_map(|of| of.stream.header.constructed.clone()));
    // Constructed counts are not evidence, whatever this machine's tier.
    let tier = match constructed.is_empty() {
        true => words::capital(&view.tier()),
        false => "No evidence: constructed, not counted".to_owned(),
    };
    let bars_caption = match pairs.is_empty() {
        true => String::new(),
        false => bars::caption(&tier),
    };
    let overlaps_caption = match overlaps.is_empty() {
        true => String::new(),
        false => overlap::caption(&tier),
    };
    let mut siblings = siblings::of_siblings(view, &groups, &tier);
    // The penalties are listed once.
    if let Some(siblings) = &mut siblings {
        siblings.notes.retain(|note| !of_overlaps.contains(note));
    }
    Some(CountsSection {
        constructed,
        targets: each_once(cells.iter().map(|of| {
            let header = &of.stream.header;
            format!("{} on {}", header.target, header.machine)
        })),
        pairs,
        of_bars,
        bars_caption,
        overlaps,
        of_overlaps,
        overlaps_caption,
        siblings,
        is_noisy: tables.iter().any(Table::is_noisy),
        tables,
        columns: columns(view, &cells),
        unavailable_count: (unavailable.len() > REASONS_MAX)
            .then(|| words::counted(metrics, "metric")),
        unavailable,
        tier,
    })
}

/// Groups of cells that differ only by their case, as in the page's other sections.
fn by_surroundings<'a, 'b>(
    view: &View<'_>,
    cells: &'b [CellCounts<'a>],
) -> Vec<(String, Vec<&'b CellCounts<'a>>)> {
    let has_cases = cells.iter().any(|of| !of.cell.case().is_empty());
    let mut groups: Vec<(String, Vec<&CellCounts<'_>>)> = Vec::new();
    for of in cells {
        let place = if has_cases { view.surroundings(of.cell) } else { String::new() };
        let known = groups.iter_mut().find(|(other, members)| {
            let first = members[0].cell;
            *other == place && (!has_cases || view.have_same_surroundings(first, of.cell))
        });
        match known {
            Some((_, members)) => members.push(of),
            None => groups.push((place, vec![of])),
        }
    }
    groups
}

/// The name of a cell among its surroundings.
fn name(view: &View<'_>, cell: &Cell) -> String {
    match view.technique(cell) {
        nothing if nothing.is_empty() => "all".to_owned(),
        technique => technique,
    }
}

/// Columns that a reader may look for.
fn columns(view: &View<'_>, cells: &[CellCounts<'_>]) -> Vec<String> {
    let (mut entries, mut left_out) = (Vec::new(), 0);
    for cell in view.cells() {
        if cells.iter().any(|of| of.cell.index == cell.index) {
            continue;
        }
        if cells.len() == CELLS_MAX && view.results.counts(cell.index).is_some() {
            left_out += 1;
            continue;
        }
        let reasons = view.results.uncollected(cell.index);
        let why = match reasons.is_empty() {
            true => view.results.absence(cell.index),
            false => reasons.join("; "),
        };
        entries.push((view.place(cell, &[]), why));
    }
    let mut sentences: Vec<String> =
        words::by_reason(entries).into_iter().map(|(why, names)| sentence(&names, &why)).collect();
    if left_out > 0 {
        let more = format!("{} more", words::counted(left_out, "cell"));
        let why = format!("counts of at most {CELLS_MAX} are on a page");
        sentences.push(sentence(&[more], &why));
    }
    let is_missing = |side: &Privilege| !cells.iter().any(|of| of.sides.contains(side));
    let missing: Vec<String> = PRIVILEGES
        .into_iter()
        .filter(|side| !cells.is_empty() && is_missing(side))
        .map(|side| side_word(side).to_owned())
        .collect();
    if !missing.is_empty() {
        let lacks = cells.iter().find_map(|of| of.stream.header.lacks.clone());
        let why = match lacks {
            Some(lacks) => format!("{lacks}; the kernel’s own events know all work only"),
            None => "it was not counted by itself".to_owned(),
        };
        sentences.push(sentence(&missing, &why));
    }
    sentences
}

fn sentence(names: &[String], why: &str) -> String {
    format!("No column for {}: {}.", names.join("; "), why.trim_end_matches('.'))
}

/// Metrics that have no value anywhere.
fn unavailable(cells: &[CellCounts<'_>]) -> Vec<UnavailableMetrics> {
    let mut names: Vec<&str> = Vec::new();
    for one in cells.iter().flat_map(|of| of.metrics.values()) {
        if !names.contains(&one.metric.name.as_str()) {
            names.push(&one.metric.name);
        }
    }
    let has_value = |name: &&str| {
        let of_name = |one: &&MetricValue| one.metric.name == **name && is_over_all(one);
        cells.iter().any(|of| of.metrics.values().iter().any(|one| of_name(&one)))
    };
    names.retain(|name| !has_value(name));
    let entries = names.into_iter().filter_map(|name| {
        let why = cells.iter().find_map(|of| of.why(name, Privilege::Both))?;
        Some((name.to_owned(), why.to_owned()))
    });
    let unavailable = |(why, names): (String, Vec<String>)| UnavailableMetrics {
        metrics: names.len(),
        count: words::counted(names.len(), "metric"),
        is_long: names.len() > NAMES_MAX,
        names: names.join(", "),
        why,
    };
    words::by_reason(entries).into_iter().map(unavailable).collect()
}

fn each_once(entries: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut known = HashSet::new();
    entries.into_iter().filter(|words| known.insert(words.clone())).collect()
}

#[cfg(test)]
mod tests {
    use workahead_counters::metric;

    use super::*;

    #[test]
    fn of_a_cpu_by_itself_only_causes_of_stalls_are_held() {
        let of = |name: &str, cpu| MetricValue {
            metric: metric::named(name).unwrap(),
            privilege: Privilege::Both,
            cpu,
            value: Some(1.0),
            why: None,
            instead: None,
            slots: 1,
            noisy: false,
        };
        assert!(is_used(&of("cpi", None)) && is_used(&of("l3_mpki", Some(7))));
        assert!(!is_used(&of("cpi", Some(7))));
    }
}
