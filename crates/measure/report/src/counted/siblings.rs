//! The counts of each logical CPU of a core: H0 and H1 side by side, as Hassanein et al. (2008,
//! figures 7a and 16) draw them.
//!
//! The paper leaves open whether a logical CPU's misses are over its own instructions or over those
//! of both (ledger S0.15): a stall that looks divided between siblings by one is not by the other.
//! So both are drawn, each with its name.

use serde::Serialize;
use workahead_counters::cycles::{Denominator, LogicalCpu, Penalty, Series, Stalls};
use workahead_counters::event::Privilege;
use workahead_counters::metrics::Metrics;
use workahead_counters::siblings::{Sibling, siblings};

use super::bars::Panel;
use super::costs::{self, Costs, ghz};
use super::{CellCounts, each_once, is_over_all, name};
use crate::chart::Screen;
use crate::chart::stacked::{Bar, Stacked};
use crate::number;
use crate::view::View;

/// The figures by logical CPU.
#[derive(Debug, Serialize)]
pub(crate) struct Siblings {
    pub(crate) places: Vec<Place>,
    /// Reasons for missing figures, and explanations.
    pub(crate) notes: Vec<String>,
    pub(crate) caption: String,
}

/// The cells of one place.
#[derive(Debug, Serialize)]
pub(crate) struct Place {
    /// Their common label; empty if there is one.
    pub(crate) title: String,
    /// Stall components, a panel for each denominator.
    pub(crate) panels: Vec<Panel>,
    pub(crate) heads: Vec<Head>,
    pub(crate) rows: Vec<Row>,
}

/// A cell over its columns.
#[derive(Debug, Serialize)]
pub(crate) struct Head {
    pub(crate) cell: String,
    /// The series: O, or H0, H1.
    pub(crate) series: Vec<String>,
    /// The CPUs of each series.
    pub(crate) cpus: Vec<String>,
}

/// One metric.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) figures: Vec<String>,
}

/// A cell with its series.
struct CellSeries<'a, 'b> {
    of: &'b CellCounts<'a>,
    siblings: Vec<Sibling>,
    /// The metrics of each series that have a value over all its CPUs.
    metrics: Vec<Metrics>,
    ghz: Option<f64>,
}

/// A chart of stall components by one denominator.
struct StallChart {
    denominator: Denominator,
    title: &'static str,
    unit: &'static str,
}

const STALL_CHARTS: [StallChart; 2] = [
    StallChart {
        denominator: Denominator::Own,
        title: "Stalls over a logical CPU’s own instructions",
        unit: "cycles per instruction of its own",
    },
    StallChart {
        denominator: Denominator::All,
        title: "Stalls over the instructions of all logical CPUs",
        unit: "cycles per instruction of all logical CPUs together",
    },
];

/// The section; `None` if nothing was counted.
pub(super) fn of_siblings(
    view: &View<'_>,
    groups: &[(String, Vec<&CellCounts<'_>>)],
    tier: &str,
) -> Option<Siblings> {
    let side = side_of(groups.iter().find_map(|(_, cells)| cells.first())?);
    let mut whys = Vec::new();
    let mut places: Vec<(&str, Vec<CellSeries<'_, '_>>)> = Vec::new();
    for (title, cells) in groups {
        let mut series = Vec::new();
        for of in cells {
            match siblings(&of.stream, &of.metrics, side) {
                Ok(siblings) => series.push(CellSeries::new(of, siblings)),
                Err(why) => whys.push(why),
            }
        }
        places.push((title, series));
    }
    let all = || places.iter().flat_map(|(_, cells)| cells);
    if all().all(|of| of.siblings.len() < 2) {
        let why = match (whys.into_iter().next(), view.results.record.host.siblings) {
            (Some(why), _) => why,
            (None, true) => "in no cell two CPUs of one core did work".to_owned(),
            (None, false) => "no two CPUs of this machine are seen to share a core".to_owned(),
        };
        let why = why.trim_end_matches('.');
        let notes = vec![format!("By logical CPU, H0 beside H1: nothing to show, {why}.")];
        return Some(Siblings { places: Vec::new(), notes, caption: String::new() });
    }
    let fastest = all().filter_map(|of| of.ghz).reduce(f64::max);
    let costs = match fastest {
        Some(fastest) => Costs::of(view).map(|costs| (costs.sentences(fastest), costs)),
        None => Err("no cycles were counted".to_owned()),
    };
    let (mut notes, costs) = match costs {
        Ok((sentences, costs)) => (sentences, Some(costs)),
        Err(why) => (vec![format!("Stall components: not drawn, {why}.")], None),
    };
    notes.extend(each_once(whys).iter().map(|why| format!("A cell without columns: {why}.")));
    let places = places.iter().filter(|(_, cells)| !cells.is_empty());
    let place = |(title, cells): &(&str, Vec<CellSeries<'_, '_>>)| Place {
        title: (*title).to_owned(),
        panels: costs.as_ref().map_or_else(Vec::new, |costs| panels(view, cells, costs)),
        heads: cells.iter().map(|cell| head(view, cell)).collect(),
        rows: rows(side, cells),
    };
    Some(Siblings { places: places.map(place).collect(), notes, caption: caption(side, tier) })
}

fn caption(side: Privilege, tier: &str) -> String {
    let whose = match side {
        Privilege::User => "User code only, as in the paper. ",
        Privilege::Kernel | Privilege::Both => "User and kernel together. ",
    };
    format!(
        "O: one logical CPU of each core ran. H0, H1: the first of every core, the second. A \
         component is the penalty of an event times its events per instruction, nothing overlapped \
         (Hassanein et al. 2008, section 4.6): over all instructions the components of siblings \
         add up to the core’s, over their own they do not. {whose}{tier}."
    )
}

/// The privilege shown: user code, if it was counted separately.
fn side_of(of: &CellCounts<'_>) -> Privilege {
    match of.sides.contains(&Privilege::User) {
        true => Privilege::User,
        false => Privilege::Both,
    }
}

impl<'a, 'b> CellSeries<'a, 'b> {
    fn new(of: &'b CellCounts<'a>, siblings: Vec<Sibling>) -> Self {
        let metrics = |one: &Sibling| Metrics::of(&of.stream.on(&one.cpus)).only(is_over_all);
        let metrics = siblings.iter().map(metrics).collect();
        Self { of, siblings, metrics, ghz: ghz(of).ok() }
    }

    fn series(&self) -> Vec<String> {
        let one = self.siblings.len() == 1;
        let series = |at: u32| if one { Series::Off } else { Series::On(at) };
        (0..).take(self.siblings.len()).map(|at| series(at).to_string()).collect()
    }

    /// Instructions of each per second.
    fn work(&self) -> Vec<f64> {
        let work = |one: &Sibling| one.counted.instructions.clone().unwrap_or(0.0);
        self.siblings.iter().map(work).collect()
    }
}

fn panels(view: &View<'_>, cells: &[CellSeries<'_, '_>], costs: &Costs) -> Vec<Panel> {
    let panel = |chart: &StallChart| Panel {
        title: chart.title.to_owned(),
        drawing: Some(stacked(view, chart, cells, costs).draw(Screen::Narrow)),
        why: String::new(),
    };
    STALL_CHARTS.iter().map(panel).collect()
}

fn head(view: &View<'_>, cell: &CellSeries<'_, '_>) -> Head {
    Head {
        cell: name(view, cell.of.cell),
        series: cell.series(),
        cpus: cell.siblings.iter().map(|one| numbers(&one.cpus)).collect(),
    }
}

fn numbers(cpus: &[u32]) -> String {
    let numbers: Vec<String> = cpus.iter().map(u32::to_string).collect();
    let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("{noun} {}", numbers.join(", "))
}

fn stacked(
    view: &View<'_>,
    chart: &StallChart,
    cells: &[CellSeries<'_, '_>],
    costs: &Costs,
) -> Stacked {
    let StallChart { denominator, unit, .. } = chart;
    let bars = |cell: &CellSeries<'_, '_>| -> Vec<Bar> {
        let penalties = cell.ghz.map(|ghz| costs.penalties().of_stalls(ghz)).unwrap_or_default();
        let counted: Vec<LogicalCpu> =
            cell.siblings.iter().map(|one| one.counted.clone()).collect();
        let of_cell = name(view, cell.of.cell);
        let bar = |stalls: &Stalls| {
            let parts = stalls.components.iter();
            let part = |(cause, value): &(_, Result<f64, _>)| {
                Some((costs::name(*cause).to_owned(), *value.as_ref().ok()?))
            };
            Bar {
                label: format!("{of_cell}, {}", stalls.series),
                parts: parts.filter_map(part).collect(),
                mark: None,
            }
        };
        Stalls::of(&counted, &penalties, *denominator).iter().map(bar).collect()
    };
    let charged: Vec<Penalty> = costs.penalties().of_stalls(1.0);
    let modelled = if view.is_modelled() { ", modelled" } else { "" };
    Stacked {
        description: format!("Stall components of each logical CPU, {unit}."),
        unit: format!("{unit}{modelled}"),
        names: costs::names(&charged),
        mark: "measured",
        joined: false,
        bars: cells.iter().flat_map(bars).collect(),
    }
}

/// The share of the work, and every metric that any series has.
fn rows(side: Privilege, cells: &[CellSeries<'_, '_>]) -> Vec<Row> {
    let shares = cells.iter().flat_map(|cell| {
        let work = cell.work();
        let all: f64 = work.iter().sum();
        work.into_iter().map(move |own| number::percent(own / all)).collect::<Vec<_>>()
    });
    let mut rows = vec![Row {
        name: "share of the cell’s instructions".to_owned(),
        unit: "share",
        figures: shares.collect(),
    }];
    for metric in workahead_counters::metric::catalogue() {
        let value = |metrics: &Metrics| metrics.get(&metric.name, side, None)?.value;
        let values: Vec<Option<f64>> =
            cells.iter().flat_map(|cell| cell.metrics.iter().map(value)).collect();
        if values.iter().any(Option::is_some) {
            let figure = |value: Option<f64>| value.map_or(number::NONE.to_owned(), number::plain);
            rows.push(Row {
                name: metric.words.clone(),
                unit: metric.unit.words(),
                figures: values.into_iter().map(figure).collect(),
            });
        }
    }
    rows
}
