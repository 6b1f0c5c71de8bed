//! What the logical CPUs of a core did, each by itself: H0 and H1 beside each other, as Hassanein
//! et al. (2008, figures 7a and 16) draw them.
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
use super::{OfCell, each_once, name};
use crate::chart::Layout;
use crate::chart::stacked::{Bar, Stacked};
use crate::number;
use crate::view::View;

/// Everything told by logical CPU.
#[derive(Debug, Serialize)]
pub(crate) struct Siblings {
    pub(crate) places: Vec<Place>,
    /// Why something is not told, and how to read what is.
    pub(crate) notes: Vec<String>,
    pub(crate) caption: String,
}

/// The cells of one place.
#[derive(Debug, Serialize)]
pub(crate) struct Place {
    /// What they share; empty where there is one.
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
    /// Which CPUs each of them is.
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
struct OfSeries<'a, 'b> {
    of: &'b OfCell<'a>,
    siblings: Vec<Sibling>,
    /// The metrics of each series.
    metrics: Vec<Metrics>,
    ghz: Option<f64>,
}

const DENOMINATORS: [(Denominator, &str, &str); 2] = [
    (
        Denominator::Own,
        "Stalls over a logical CPU’s own instructions",
        "cycles per instruction of its own",
    ),
    (
        Denominator::All,
        "Stalls over the instructions of all logical CPUs",
        "cycles per instruction of all logical CPUs together",
    ),
];

/// The part of the page; `None` where nothing was counted at all.
pub(super) fn of_siblings(
    view: &View<'_>,
    groups: &[(String, Vec<&OfCell<'_>>)],
    tier: &str,
) -> Option<Siblings> {
    let all = || groups.iter().flat_map(|(_, cells)| cells.iter().copied());
    let side = side_of(all().next()?);
    let mut whys = Vec::new();
    let mut places: Vec<(&str, Vec<OfSeries<'_, '_>>)> = Vec::new();
    for (title, cells) in groups {
        let mut told = Vec::new();
        for of in cells {
            match siblings(&of.stream, &of.metrics, side) {
                Ok(siblings) => told.push(OfSeries::of(of, siblings)),
                Err(why) => whys.push(why),
            }
        }
        places.push((title, told));
    }
    let told = || places.iter().flat_map(|(_, cells)| cells);
    if told().all(|of| of.siblings.len() < 2) {
        let why = match (whys.into_iter().next(), view.results.record.host.siblings) {
            (Some(why), _) => why,
            (None, true) => "in no cell two CPUs of one core did any of the work".to_owned(),
            (None, false) => "no two CPUs of this machine are seen to share a core".to_owned(),
        };
        let why = why.trim_end_matches('.');
        let notes = vec![format!("By logical CPU, H0 beside H1: nothing to show, {why}.")];
        return Some(Siblings { places: Vec::new(), notes, caption: String::new() });
    }
    let fastest = told().filter_map(|of| of.ghz).reduce(f64::max);
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
    let place = |(title, cells): &(&str, Vec<OfSeries<'_, '_>>)| {
        place(view, (title, side), cells, costs.as_ref())
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

/// Whose work is shown: that of programs, where it was counted by itself.
fn side_of(of: &OfCell<'_>) -> Privilege {
    match of.sides.contains(&Privilege::User) {
        true => Privilege::User,
        false => Privilege::Both,
    }
}

impl<'a, 'b> OfSeries<'a, 'b> {
    fn of(of: &'b OfCell<'a>, siblings: Vec<Sibling>) -> Self {
        let metrics = siblings.iter().map(|one| Metrics::of(&of.stream.on(&one.cpus))).collect();
        Self { of, siblings, metrics, ghz: ghz(of).ok() }
    }

    fn series(&self) -> Vec<String> {
        let one = self.siblings.len() == 1;
        let series = |at: u8| if one { Series::Off } else { Series::On(at) };
        (0..).take(self.siblings.len()).map(|at| series(at).to_string()).collect()
    }

    /// Instructions of each, in a second.
    fn work(&self) -> Vec<f64> {
        let work = |one: &Sibling| one.counted.instructions.clone().unwrap_or(0.0);
        self.siblings.iter().map(work).collect()
    }
}

fn place(
    view: &View<'_>,
    (title, side): (&str, Privilege),
    cells: &[OfSeries<'_, '_>],
    costs: Option<&Costs>,
) -> Place {
    let panels = costs.map_or_else(Vec::new, |costs| {
        let panel = |(denominator, title, unit): &(Denominator, &str, &str)| Panel {
            title: (*title).to_owned(),
            drawing: Some(stacked(view, (*denominator, unit), cells, costs).draw(Layout::Narrow)),
            why: String::new(),
        };
        DENOMINATORS.iter().map(panel).collect()
    });
    let head = |cell: &OfSeries<'_, '_>| Head {
        cell: name(view, cell.of.cell),
        series: cell.series(),
        cpus: cell.siblings.iter().map(|one| numbers(&one.cpus)).collect(),
    };
    let (heads, rows) = (cells.iter().map(head).collect(), rows(side, cells));
    Place { title: title.to_owned(), panels, heads, rows }
}

fn numbers(cpus: &[u32]) -> String {
    let numbers: Vec<String> = cpus.iter().map(u32::to_string).collect();
    let noun = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("{noun} {}", numbers.join(", "))
}

fn stacked(
    view: &View<'_>,
    (denominator, unit): (Denominator, &str),
    cells: &[OfSeries<'_, '_>],
    costs: &Costs,
) -> Stacked {
    let bars = |cell: &OfSeries<'_, '_>| -> Vec<Bar> {
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
        Stalls::of(&counted, &penalties, denominator).iter().map(bar).collect()
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
fn rows(side: Privilege, cells: &[OfSeries<'_, '_>]) -> Vec<Row> {
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
            let told = |value: Option<f64>| value.map_or(number::NONE.to_owned(), number::plain);
            rows.push(Row {
                name: metric.words.clone(),
                unit: metric.unit.words(),
                figures: values.into_iter().map(told).collect(),
            });
        }
    }
    rows
}
