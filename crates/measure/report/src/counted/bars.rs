//! CPI by its parts, and beside it the slots of each cycle by outcome.
//!
//! The first is the picture of Keeton et al. (1998, figures 2, 3 and 5). Its parts are of a
//! processor that could be taken to do one thing at a time; one of today overlaps them, so the
//! top-down view, which counts every slot once, stands beside it.

use serde::Serialize;
use workahead_counters::event::Privilege;
use workahead_study::setting::Setting;

use super::{CellCounts, each_once, name, side_word};
use crate::chart::Screen;
use crate::chart::stacked::{Bar, Stacked};
use crate::view::View;
use crate::words;

/// A part of a bar: the metric and its label.
pub(super) type Part = (&'static str, &'static str);

const CPI: [Part; 3] = [
    ("computation_cpi", "computation"),
    ("resource_stall_cpi", "resource stalls"),
    ("instruction_stall_cpi", "instruction stalls"),
];
pub(super) const TOP_DOWN: [Part; 4] = [
    ("retiring", "retiring"),
    ("bad_speculation", "bad speculation"),
    ("frontend_bound", "front end"),
    ("backend_bound", "back end"),
];

/// Both drawings of one place.
#[derive(Debug, Serialize)]
pub(crate) struct Pair {
    /// The common label of its cells; empty if there is one pair.
    pub(crate) title: String,
    pub(crate) panels: Vec<Panel>,
}

/// One of the two.
#[derive(Debug, Serialize)]
pub(crate) struct Panel {
    pub(crate) title: String,
    /// The drawing; `None` if no part was counted.
    pub(crate) drawing: Option<String>,
    /// Why there is none.
    pub(crate) why: String,
}

/// How one kind of bars is made.
struct Kind {
    title: &'static str,
    unit: &'static str,
    parts: &'static [Part],
    /// The metric of the whole.
    whole: Option<&'static str>,
}

const KINDS: [Kind; 2] = [
    Kind {
        title: "CPI by its parts",
        unit: "cycles per instruction",
        parts: &CPI,
        whole: Some("cpi"),
    },
    Kind {
        title: "Slots of cycles, top-down",
        unit: "share of slots",
        parts: &TOP_DOWN,
        whole: None,
    },
];

/// The drawings of every place with notes; empty if the study collects none of their metrics.
pub(super) fn pairs(
    view: &View<'_>,
    groups: &[(String, Vec<&CellCounts<'_>>)],
) -> (Vec<Pair>, Vec<String>) {
    let all = || groups.iter().flat_map(|(_, cells)| cells.iter().copied());
    let kinds: Vec<&Kind> = KINDS.iter().filter(|kind| kind.is_requested(all())).collect();
    let mut notes: Vec<String> = Vec::new();
    for kind in &kinds {
        match all().any(|of| kind.has_part(of)) {
            true => notes.extend(kind.notes(all())),
            false => notes.push(format!("{}: not drawn, {}.", kind.title, kind.why(all()))),
        }
    }
    let pair = |(title, cells): &(String, Vec<&CellCounts<'_>>)| {
        let panels: Vec<Panel> = kinds.iter().map(|kind| kind.panel(view, title, cells)).collect();
        let is_drawn = panels.iter().any(|panel| panel.drawing.is_some());
        is_drawn.then(|| Pair { title: title.clone(), panels })
    };
    (groups.iter().filter_map(pair).collect(), each_once(notes))
}

/// The caption, with the tier.
pub(super) fn caption(tier: &str) -> String {
    format!(
        "Parts of CPI as Keeton et al. (1998, figures 2, 3 and 5) draw them, from their own counts; \
         the black mark is the measured CPI. A processor that works out of order does \
         several of them at once: where the parts end before the mark, something is in none of \
         them; where they end after it, they overlap. Top-down counts every slot once. {tier}."
    )
}

impl Kind {
    /// Whether the study collects it.
    fn is_requested<'a>(&self, mut cells: impl Iterator<Item = &'a CellCounts<'a>>) -> bool {
        cells.any(|of| {
            let mut values = of.metrics.values().iter();
            values.any(|one| self.parts.iter().any(|(metric, _)| one.metric.name == *metric))
        })
    }

    fn has_part(&self, of: &CellCounts<'_>) -> bool {
        let at = |side: &Privilege| {
            self.parts.iter().any(|(metric, _)| of.value(metric, *side).is_some())
        };
        of.sides.iter().any(at)
    }

    fn why<'a>(&self, mut cells: impl Iterator<Item = &'a CellCounts<'a>>) -> String {
        let why = cells.find_map(|of| of.why(self.parts[0].0, Privilege::Both));
        why.unwrap_or("none of its metrics was counted").trim_end_matches('.').to_owned()
    }

    /// Notes on parts without a value, and on parts that differ from their names.
    fn notes<'a>(&self, cells: impl Iterator<Item = &'a CellCounts<'a>>) -> Vec<String> {
        let cells: Vec<&CellCounts<'_>> = cells.collect();
        let note = |(metric, name): &Part| {
            let has_value = |of: &&&CellCounts<'_>| {
                of.sides.iter().any(|side| of.value(metric, *side).is_some())
            };
            let Some(of) = cells.iter().find(has_value) else {
                let why = cells.iter().find_map(|of| of.why(metric, Privilege::Both))?;
                return Some(format!("{}: not drawn, {why}.", words::capital(name)));
            };
            let valued = of.sides.iter().filter_map(|side| of.metric_value(metric, *side));
            let instead = valued.filter_map(|one| one.instead.as_ref()).next()?;
            Some(format!("{}: {instead}.", words::capital(name)))
        };
        self.parts.iter().filter_map(note).collect()
    }

    fn panel(&self, view: &View<'_>, place: &str, cells: &[&CellCounts<'_>]) -> Panel {
        let drawn = cells.iter().any(|of| self.has_part(of));
        let why = if drawn { String::new() } else { self.why(cells.iter().copied()) };
        let drawing = drawn.then(|| self.stacked(view, place, cells).draw(Screen::Narrow));
        Panel { title: self.title.to_owned(), drawing, why }
    }

    fn stacked(&self, view: &View<'_>, place: &str, cells: &[&CellCounts<'_>]) -> Stacked {
        let bars =
            cells.iter().flat_map(|of| of.sides.iter().map(|side| self.bar(view, of, *side)));
        let modelled = if view.is_modelled() { ", modelled" } else { "" };
        Stacked {
            description: format!("{}. {place}", self.title),
            unit: format!("{}{modelled}", self.unit),
            names: self.parts.iter().map(|(_, name)| (*name).to_owned()).collect(),
            mark: "measured",
            joined: lie_along_an_axis(view, cells),
            bars: bars.collect(),
        }
    }

    fn bar(&self, view: &View<'_>, of: &CellCounts<'_>, side: Privilege) -> Bar {
        let part = |(metric, name): &Part| Some(((*name).to_owned(), of.value(metric, side)?));
        let name = name(view, of.cell);
        Bar {
            label: match of.sides.len() {
                1 => name,
                _ => format!("{name}, {}", side_word(side)),
            },
            parts: self.parts.iter().filter_map(part).collect(),
            mark: self.whole.and_then(|whole| of.value(whole, side)),
        }
    }
}

/// Whether the cells differ along one axis of numbers, and each is one bar: then a line over them
/// is meaningful, as over the cache sizes of Keeton's figure 8.
pub(super) fn lie_along_an_axis(view: &View<'_>, cells: &[&CellCounts<'_>]) -> bool {
    let varies = |axis: &&String| view.varies(axis);
    let mut axes = view.results.run_plan.axes.iter().filter(varies);
    let (Some(axis), None) = (axes.next(), axes.next()) else { return false };
    let is_number = |of: &&CellCounts<'_>| {
        matches!(of.cell.place.get(axis), Some(Setting::Integer(_) | Setting::Number(_)))
    };
    cells.iter().all(|of| is_number(of) && of.sides.len() == 1)
}
