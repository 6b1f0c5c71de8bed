//! The charts of a study, drawn from its observations.
//!
//! ```text
//!   charts of the study ──► cells with `where` ──► panels: one per value of the axes not named
//!       bars     a row per value of `by`, grouped by `series`
//!       curves   a line per value of `series` over `x`
//! ```
//! Panels of one chart keep the same order of techniques, so that the eye can compare them. The
//! measure `ratio` is the ratio to the baseline, whose level, 1, is then drawn as a line.

use serde::Serialize;
use workahead_study::cell::Cell;
use workahead_study::claim::Claim;
use workahead_study::measure::THROUGHPUT;
use workahead_study::method::{Chart, ChartKind};

use crate::chart::Screen;
use crate::view::View;
use crate::words;

mod bars;
mod curves;
mod heat;
mod ratios;
pub(crate) mod steps;
mod usual;

/// The measure that is not one of a sample: throughput over the baseline's.
const RATIO: &str = "ratio";
/// Nor is this one: three percentiles of latency together.
const LATENCY: &str = "latency";
/// The measures of which it is made.
const LATENCIES: [&str; 3] = ["latency_p50_ms", "latency_p95_ms", "latency_p99_ms"];

/// A figure of more cells is not looked at.
const CELLS_MAX: usize = 2_000;
/// Nor is one of more panels.
const PANELS_MAX: usize = 200;

/// One chart of the study, ready for the page.
#[derive(Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) title: String,
    /// Signs that need a word, bar charts only: class of the sign, the word.
    pub(crate) keys: Vec<(&'static str, &'static str)>,
    pub(crate) panels: Vec<Panel>,
    /// The caption, with its evidence tier.
    pub(crate) caption: String,
}

/// One drawing of a figure.
#[derive(Debug, Serialize)]
pub(crate) struct Panel {
    /// Its label; empty if it is the only one.
    pub(crate) title: String,
    /// For a laptop; only where the panel is alone.
    pub(crate) wide: Option<String>,
    /// For a phone, or beside other panels.
    pub(crate) narrow: String,
}

/// A drawing before it is laid out.
trait Draw {
    fn draw(&self, screen: Screen) -> String;
}

impl Draw for crate::chart::Bars {
    fn draw(&self, screen: Screen) -> String {
        crate::chart::Bars::draw(self, screen)
    }
}

impl Draw for crate::chart::Curves {
    fn draw(&self, screen: Screen) -> String {
        crate::chart::Curves::draw(self, screen)
    }
}

impl Draw for crate::chart::heat::Heat {
    fn draw(&self, screen: Screen) -> String {
        crate::chart::heat::Heat::draw(self, screen)
    }
}

impl Draw for crate::chart::ratios::Ratios {
    fn draw(&self, screen: Screen) -> String {
        crate::chart::ratios::Ratios::draw(self, screen)
    }
}

/// Every chart of the study; default charts if it names none.
pub(crate) fn figures(view: &View<'_>) -> Vec<Figure> {
    let requested = &view.results.spec.method.charts;
    let usual = usual::charts(view);
    let charts = if requested.is_empty() { &usual } else { requested };
    charts.iter().filter_map(|chart| figure(view, chart)).collect()
}

fn figure(view: &View<'_>, chart: &Chart) -> Option<Figure> {
    if chart.kind == ChartKind::Steps {
        return steps::figure(view, chart);
    }
    let axes = Axes::of(view, chart)?;
    let shown = |cell: &&Cell| cell.has(&chart.only) && axes.takes_sweeps_of(cell, view);
    let cells: Vec<&Cell> = view.cells().iter().filter(shown).collect();
    let not_drawn = |why: String| not_drawn(heading(view, chart, &axes), &why);
    if cells.len() > CELLS_MAX {
        return Some(not_drawn(format!("{} cells are more than {CELLS_MAX}", cells.len())));
    }
    let Some(mut panels) = panels(view, &cells, &axes) else {
        return Some(not_drawn(format!("it would have more than {PANELS_MAX} panels")));
    };
    if chart.kind != ChartKind::Bars {
        // A drawing without a figure is left out; the reason is given elsewhere.
        let has_figure = |cell: &&Cell| match chart.measure.as_str() {
            RATIO => view.finding(cell).ratio.is_some(),
            LATENCY => LATENCIES.iter().any(|name| view.value(cell, name).is_some()),
            measure => view.value(cell, measure).is_some(),
        };
        panels.retain(|(_, cells)| cells.iter().any(has_figure));
    }
    if panels.is_empty() {
        return None;
    }
    let alone = panels.len() == 1;
    let draw = |(title, cells): &(String, Vec<&Cell>)| {
        let description = format!("{}. {title}", heading(view, chart, &axes));
        let part = Part { view, chart, axes: &axes, cells, description };
        let drawing: Box<dyn Draw> = match chart.kind {
            ChartKind::Bars => Box::new(bars::bars(&part)),
            ChartKind::Curves => Box::new(curves::curves(&part)),
            ChartKind::Heat => Box::new(heat::heat(&part)),
            ChartKind::Ratios | ChartKind::Steps => Box::new(ratios::ratios(&part)),
        };
        Panel {
            title: if alone && chart.kind == ChartKind::Bars {
                String::new()
            } else {
                title.clone()
            },
            wide: alone.then(|| drawing.draw(Screen::Wide)),
            narrow: drawing.draw(Screen::Narrow),
        }
    };
    let keys = match chart.kind {
        ChartKind::Bars => bars::keys(view, chart, &cells),
        ChartKind::Ratios => ratios::keys(view, &cells),
        ChartKind::Curves | ChartKind::Heat | ChartKind::Steps => Vec::new(),
    };
    Some(Figure {
        title: heading(view, chart, &axes),
        keys,
        panels: panels.iter().map(draw).collect(),
        caption: caption(view, chart),
    })
}

/// In the place of a chart that would be too large.
fn not_drawn(title: String, why: &str) -> Figure {
    let caption = format!("Not drawn: {why}.");
    Figure { title, keys: Vec::new(), panels: Vec::new(), caption }
}

/// The axes of a chart: along rows or along x, and the one that tells lines or groups apart.
struct Axes<'a> {
    along: &'a str,
    series: Option<&'a str>,
}

impl<'a> Axes<'a> {
    /// The named axes; by default the case along bars and the last other axis along x. `None` for a
    /// study of a single cell without axes.
    fn of(view: &'a View<'_>, chart: &'a Chart) -> Option<Self> {
        let axes = &view.results.run_plan.axes;
        let named = match chart.kind {
            ChartKind::Bars | ChartKind::Ratios => chart.by.as_deref(),
            ChartKind::Curves | ChartKind::Heat | ChartKind::Steps => {
                chart.x.as_deref().or(chart.by.as_deref())
            }
        };
        let likely = match chart.kind {
            ChartKind::Bars => axes.last(),
            _ => axes.iter().rev().find(|axis| *axis != "case").or(axes.last()),
        };
        let along = named.or(likely.map(String::as_str))?;
        // Down a coloured table goes another named axis, or the first other one.
        let down =
            || axes.iter().map(String::as_str).find(|axis| *axis != along && *axis != "case");
        let series = match chart.kind {
            ChartKind::Heat => chart.by.as_deref().filter(|by| *by != along).or_else(down),
            _ => chart.series.as_deref(),
        };
        Some(Self { along, series: series.filter(|series| *series != along) })
    }

    /// Whether a cell belongs to the sweeps that the chart is over, and to no other.
    fn takes_sweeps_of(&self, cell: &Cell, view: &View<'_>) -> bool {
        let mut sweeps = view.results.run_plan.sweeps.iter();
        sweeps.all(|axis| self.names(axis) == cell.place.contains_key(axis))
    }

    fn names(&self, axis: &str) -> bool {
        axis == self.along || Some(axis) == self.series
    }
}

/// The input of one drawing.
struct Part<'a> {
    view: &'a View<'a>,
    chart: &'a Chart,
    axes: &'a Axes<'a>,
    cells: &'a [&'a Cell],
    description: String,
}

impl Part<'_> {
    /// The value of the chart's measure in a cell, with its 95 % interval.
    fn value(&self, cell: &Cell) -> Option<(f64, Option<(f64, f64)>)> {
        self.value_of(cell, &self.chart.measure)
    }

    fn value_of(&self, cell: &Cell, measure: &str) -> Option<(f64, Option<(f64, f64)>)> {
        let view = self.view;
        if measure == RATIO {
            let ratio = view.finding(cell).ratio?;
            return Some((ratio.ratio, ratio.interval.map(|ends| (ends.low, ends.high))));
        }
        Some((view.value(cell, measure)?, view.interval(cell, measure)))
    }

    /// The measure with its unit.
    fn unit(&self) -> String {
        let modelled = if self.view.is_modelled() { ", modelled" } else { "" };
        if self.chart.measure == LATENCY {
            return format!("client latency, ms{modelled}");
        }
        match self.chart.measure == RATIO {
            true => {
                let baseline = self.view.baseline().unwrap_or_default();
                format!("ratio to {baseline}, ×{modelled}")
            }
            false => self.view.unit(&self.chart.measure),
        }
    }

    /// The paper's ratio for a cell, converted to the chart's measure: times our own baseline for a
    /// throughput.
    fn paper_value(&self, (position, claim): (usize, &Claim), cell: &Cell) -> Option<f64> {
        let own = self.view.claim_baseline(position, cell)?;
        let (ratio, base) = (claim.ratio?, self.view.value(own, THROUGHPUT)?);
        match self.chart.measure.as_str() {
            RATIO if claim.against.is_empty() => Some(ratio),
            THROUGHPUT => Some(ratio * base),
            _ => None,
        }
    }

    /// The figure of the paper with its ratio: `Fig. 6b: 1.50×`.
    fn paper_label(&self, claim: &Claim) -> String {
        let ratio = crate::number::ratio(claim.ratio.unwrap_or(f64::NAN));
        let against: Vec<String> = claim.against.values().map(words::bare).collect();
        match against.is_empty() {
            true => format!("{}: {ratio}", claim.figure),
            false => words::label(&format!("{}: {ratio} of {}", claim.figure, against.join(", "))),
        }
    }

    /// With their positions.
    fn claims(&self) -> impl Iterator<Item = (usize, &Claim)> {
        self.view.results.spec.claims.iter().enumerate()
    }
}

/// The cells of each panel, in the run plan's order, and the panel's name; none if they are too
/// many.
fn panels<'a>(
    view: &View<'_>,
    cells: &[&'a Cell],
    axes: &Axes<'_>,
) -> Option<Vec<(String, Vec<&'a Cell>)>> {
    let all = &view.results.run_plan.axes;
    let varies = |axis: &&String| {
        cells.iter().any(|cell| cell.place.get(*axis) != cells[0].place.get(*axis))
    };
    let others = all.iter().filter(|axis| !axes.names(axis)).filter(varies);
    let others: Vec<&String> = others.collect();
    let same = |one: &Cell, cell: &Cell| {
        others.iter().all(|axis| one.place.get(*axis) == cell.place.get(*axis))
    };
    let named: Vec<&str> = all.iter().map(String::as_str).filter(|axis| axes.names(axis)).collect();
    let mut panels: Vec<(String, Vec<&Cell>)> = Vec::new();
    for cell in cells {
        match panels.iter().position(|panel| same(panel.1[0], cell)) {
            Some(at) => panels[at].1.push(cell),
            None if panels.len() == PANELS_MAX => return None,
            None => panels.push((view.place(cell, &named), vec![cell])),
        }
    }
    Some(panels)
}

fn heading(view: &View<'_>, chart: &Chart, axes: &Axes<'_>) -> String {
    if let Some(title) = &chart.title {
        return words::label(title);
    }
    let what = match (chart.measure.as_str(), view.baseline()) {
        (RATIO, Some(baseline)) => format!("Ratio to {baseline}"),
        (LATENCY, _) => "Client latency".to_owned(),
        (measure, _) => words::quantity(measure),
    };
    let preposition = match chart.kind {
        ChartKind::Bars | ChartKind::Ratios => "by",
        _ => "over",
    };
    format!("{what} {preposition} {}", words::axis(axes.along))
}

fn caption(view: &View<'_>, chart: &Chart) -> String {
    // An answer may be known before all repetitions.
    let samples = view.findings.iter().map(|finding| finding.samples).max().unwrap_or(0);
    let mut parts = Vec::new();
    if chart.kind == ChartKind::Heat && chart.measure == RATIO {
        parts.push(
            "Blue is faster than the baseline, orange slower; in bold where the 95 % interval leaves \
             out 1; a dash where there is no figure."
                .to_owned(),
        );
    } else if samples > 1 {
        parts.push(format!("Whiskers: 95 % interval over {samples} samples."));
    }
    if chart.kind == ChartKind::Bars
        && chart.measure == THROUGHPUT
        && view.results.spec.claims.iter().any(Claim::is_of_throughput)
    {
        parts.push("◆ the paper's ratio times our own baseline.".to_owned());
    }
    parts.push(format!("{}.", words::capital(&view.tier())));
    parts.join(" ")
}
