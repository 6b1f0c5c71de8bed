//! The CPI as if nothing overlapped, against the measured CPI (Keeton et al. 1998, section 5.3 and
//! figure 8), and beside it the slots by outcome.
//!
//! Fixed penalties overcharge a processor that has several misses under way. So top-down, which
//! counts every slot once, stands in the same row, or the reason why it does not.

use serde::Serialize;
use workahead_counters::cycles::{Component, NonOverlappedSum};
use workahead_counters::event::Privilege;

use super::costs::{Costs, ghz};
use super::{CellCounts, bars, each_once, name, side_word};
use crate::chart::Screen;
use crate::chart::stacked::{Bar, Stacked};
use crate::number;
use crate::view::View;
use crate::words;

/// The figures of one place.
#[derive(Debug, Serialize)]
pub(crate) struct Overlap {
    /// The common label of its cells; empty if there is one.
    pub(crate) title: String,
    pub(crate) drawing: String,
    /// Names of the four parts of top-down.
    pub(crate) heads: Vec<&'static str>,
    pub(crate) rows: Vec<Row>,
}

/// A bar in figures.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) measured: String,
    pub(crate) non_overlapped: String,
    /// Measured over non-overlapped.
    pub(crate) overlap: String,
    /// Shares of slots, in the heads' order.
    pub(crate) slots: Vec<String>,
}

/// Metrics without which there is no bar: a study without them has none.
const COMPUTATION: &str = "computation_cpi";
const CPI: &str = "cpi";

/// One bar: its cell, the privilege, the sum.
struct Sum<'a, 'b> {
    of: &'b CellCounts<'a>,
    side: Privilege,
    parts: NonOverlappedSum,
}

/// The figures of every place, with notes.
pub(super) fn overlaps(
    view: &View<'_>,
    groups: &[(String, Vec<&CellCounts<'_>>)],
) -> (Vec<Overlap>, Vec<String>) {
    let all = || groups.iter().flat_map(|(_, cells)| cells.iter().copied());
    let is_requested = |of: &CellCounts<'_>| {
        let mut names = of.metrics.values().iter().map(|one| one.metric.name.as_str());
        names.any(|name| name == COMPUTATION)
    };
    if !all().any(is_requested) {
        return (Vec::new(), Vec::new());
    }
    let not_drawn = |why: &str| {
        let why = why.trim_end_matches('.');
        (Vec::new(), vec![format!("CPI if nothing overlapped: not drawn, {why}.")])
    };
    // Missing counts are reported before missing penalties.
    let clocks: Vec<Result<f64, String>> = all().map(ghz).collect();
    let Some(fastest) = clocks.iter().flatten().copied().reduce(f64::max) else {
        return not_drawn(clocks.iter().find_map(|one| one.as_ref().err()).map_or("", |why| why));
    };
    let costs = match Costs::of(view) {
        Ok(costs) => costs,
        Err(why) => return not_drawn(&why),
    };
    let mut notes = costs.sentences(fastest);
    let mut drawn = Vec::new();
    for (title, cells) in groups {
        let sums: Vec<Sum<'_, '_>> = cells.iter().flat_map(|of| sums(&costs, of)).collect();
        if sums.is_empty() {
            continue;
        }
        notes.extend(unavailable(&sums));
        drawn.push(Overlap {
            title: title.clone(),
            drawing: stacked(view, title, &sums, cells).draw(Screen::Narrow),
            heads: bars::TOP_DOWN.iter().map(|(_, name)| *name).collect(),
            rows: sums.iter().map(|sum| row(view, sum)).collect(),
        });
    }
    if let Some(why) = all().find_map(no_slots) {
        notes.push(format!("Slots, top-down: none beside it, {}.", why.trim_end_matches('.')));
    }
    (drawn, each_once(notes))
}

/// The caption, with the tier.
pub(super) fn caption(tier: &str) -> String {
    format!(
        "Every miss is charged its whole penalty, as if the processor did one thing at a time \
         (Keeton et al. 1998, section 5.3 and figure 8); the black mark is the measured CPI. \
         Measured over non-overlapped is the share not hidden: the lower, the more is hidden; \
         above 1 a part is missing. Fixed penalties overcharge a processor with several misses \
         under way: the slots beside them count each slot once. {tier}."
    )
}

fn sums<'a, 'b>(costs: &Costs, of: &'b CellCounts<'a>) -> Vec<Sum<'a, 'b>> {
    let Ok(ghz) = ghz(of) else { return Vec::new() };
    let sum = |side: &Privilege| {
        let parts = costs.penalties().non_overlapped(&of.metrics, *side, ghz);
        let has_part = parts.components.iter().any(|part| part.cpi.is_ok());
        has_part.then_some(Sum { of, side: *side, parts })
    };
    of.sides.iter().filter_map(sum).collect()
}

fn label(view: &View<'_>, sum: &Sum<'_, '_>) -> String {
    let name = name(view, sum.of.cell);
    match sum.of.sides.len() {
        1 => name,
        _ => format!("{name}, {}", side_word(sum.side)),
    }
}

fn stacked(
    view: &View<'_>,
    place: &str,
    sums: &[Sum<'_, '_>],
    cells: &[&CellCounts<'_>],
) -> Stacked {
    let bar = |sum: &Sum<'_, '_>| {
        let part = |part: &Component| Some((part.name.clone(), part.cpi.clone().ok()?));
        Bar {
            label: label(view, sum),
            parts: sum.parts.components.iter().filter_map(part).collect(),
            mark: sum.of.value(CPI, sum.side),
        }
    };
    let mut names: Vec<String> = Vec::new();
    for part in sums.iter().flat_map(|sum| &sum.parts.components) {
        if !names.contains(&part.name) {
            names.push(part.name.clone());
        }
    }
    let modelled = if view.is_modelled() { ", modelled" } else { "" };
    Stacked {
        description: format!("CPI if nothing overlapped. {place}"),
        unit: format!("cycles per instruction{modelled}"),
        names,
        mark: "measured",
        joined: bars::lie_along_an_axis(view, cells),
        bars: sums.iter().map(bar).collect(),
    }
}

fn row(view: &View<'_>, sum: &Sum<'_, '_>) -> Row {
    let figure = |value: Option<f64>| value.map_or(number::NONE.to_owned(), number::plain);
    let measured = sum.of.value(CPI, sum.side);
    let share = |(metric, _): &(&str, &str)| {
        let share = sum.of.value(metric, sum.side);
        share.map_or(number::NONE.to_owned(), number::percent)
    };
    let overlap = measured.and_then(|cpi| sum.parts.overlap(&Ok(cpi)).ok());
    Row {
        name: label(view, sum),
        measured: figure(measured),
        non_overlapped: figure(sum.parts.cpi().ok()),
        overlap: figure(overlap),
        slots: bars::TOP_DOWN.iter().map(share).collect(),
    }
}

/// Parts missing from a sum; with one missing there is no sum.
fn unavailable(sums: &[Sum<'_, '_>]) -> Vec<String> {
    let parts = sums.iter().flat_map(|sum| &sum.parts.components);
    let reasons = parts.filter_map(|part| {
        let why = part.cpi.as_ref().err()?;
        let part = words::capital(&part.name);
        Some(format!("{part}: not in the sum, and so there is none: {why}."))
    });
    each_once(reasons)
}

/// Why a cell has no slots; `None` if it has some.
fn no_slots(of: &CellCounts<'_>) -> Option<String> {
    let metrics = || bars::TOP_DOWN.iter().map(|(metric, _)| *metric);
    let has_one = |side: &Privilege| metrics().any(|metric| of.value(metric, *side).is_some());
    if of.sides.iter().any(has_one) {
        return None;
    }
    let why = metrics().find_map(|metric| of.why(metric, Privilege::Both));
    Some(why.unwrap_or("the study does not collect the counters `topdown`").to_owned())
}
