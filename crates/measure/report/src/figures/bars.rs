//! Bars from cells.

use workahead_study::cell::Cell;
use workahead_study::claim::Claim;
use workahead_study::measure::THROUGHPUT;
use workahead_study::method::Chart;

use super::{Part, RATIO};
use crate::chart::{Bar, Bars, Limit, PaperFigure, Reading, Tone};
use crate::view::{View, ratio_words};
use crate::words;

/// Limits this near to each other (as a logarithm) are the same.
const LIMITS_ALIKE: f64 = 0.05;

pub(super) fn bars(part: &Part<'_>) -> Bars {
    let mut cells: Vec<&Cell> = part.cells.to_vec();
    let axis = part.axes.series;
    if let Some(series) = axis {
        // Groups in the order in which their first cell comes; the order within a group stays.
        let group = |cell: &Cell| part.cells.iter().position(|other| same(other, cell, series));
        cells.sort_by_key(|cell| group(cell));
    }
    let mut bars: Vec<Bar> = Vec::with_capacity(cells.len());
    for (index, cell) in cells.iter().enumerate() {
        let starts = |series: &str| index == 0 || !same(cells[index - 1], cell, series);
        let heading = axis.filter(|series| starts(series));
        let heading =
            heading.and_then(|series| Some(words::setting(series, cell.place.get(series)?)));
        let mut bar = bar(part, cell, heading);
        merge_limit(&bars, &mut bar);
        bars.push(bar);
    }
    let aside = ![THROUGHPUT, RATIO].contains(&part.chart.measure.as_str());
    Bars { description: part.description.clone(), unit: part.unit(), aside, bars }
}

fn same(one: &Cell, other: &Cell, axis: &str) -> bool {
    one.place.get(axis) == other.place.get(axis)
}

fn bar(part: &Part<'_>, cell: &Cell, heading: Option<String>) -> Bar {
    let finding = part.view.finding(cell);
    let (ratio, ratio_interval) = match part.chart.measure.as_str() {
        // The bar itself is the ratio.
        RATIO => (String::new(), ratio_words(finding).1),
        _ => ratio_words(finding),
    };
    let reading = match (part.value(cell), &finding.failure) {
        (Some((value, interval)), _) => Reading::Value { value, interval },
        (None, None)
            if finding.is_baseline && finding.samples > 0 && part.chart.measure == RATIO =>
        {
            Reading::Value { value: 1.0, interval: None }
        }
        (None, _) => Reading::Missing(words::label(&part.view.results.absence(cell.index))),
    };
    let name = cell.place.get(part.axes.along).map_or_else(
        || part.view.technique(cell),
        |value| match part.axes.along {
            "case" => words::value(value),
            along => words::setting(along, value),
        },
    );
    let paper_figures = part.claims().filter_map(|claim| {
        let value = part.paper_value(claim, cell)?;
        Some(PaperFigure { value, label: part.paper_label(claim.1) })
    });
    Bar {
        heading,
        name,
        reading,
        ratio,
        ratio_interval: short(ratio_interval),
        tone: part.view.tone(finding),
        limit: limit(part, cell),
        paper_figures: paper_figures.collect(),
    }
}

/// Shortened for the last column of a chart.
fn short(interval: String) -> String {
    match interval.as_str() {
        "no difference shown" => "no difference".to_owned(),
        "one sample only" => "one sample".to_owned(),
        _ => interval,
    }
}

/// A limit that differs from an earlier one of the same name by less than it can be measured to
/// is that one: separate lines and labels would suggest otherwise.
fn merge_limit(bars: &[Bar], bar: &mut Bar) {
    let Some(limit) = &mut bar.limit else { return };
    let alike = |other: &&Limit| {
        other.label == limit.label && (other.value / limit.value).ln().abs() < LIMITS_ALIKE
    };
    if let Some(earlier) = bars.iter().filter_map(|bar| bar.limit.as_ref()).find(alike) {
        limit.value = earlier.value;
    }
}

fn limit(part: &Part<'_>, cell: &Cell) -> Option<Limit> {
    if part.chart.measure != THROUGHPUT {
        return None;
    }
    let value = part.view.limit(cell)?;
    let label = match part.view.threads_words(cell) {
        Some(threads) => format!("limit, {threads}"),
        None => "limit".to_owned(),
    };
    Some(Limit { value, label })
}

/// The signs that a chart uses, with their words.
pub(super) fn keys(
    view: &View<'_>,
    chart: &Chart,
    cells: &[&Cell],
) -> Vec<(&'static str, &'static str)> {
    let has = |tone: Tone| cells.iter().any(|cell| view.tone(view.finding(cell)) == tone);
    let compared = view.baseline().is_some();
    let is_throughput = chart.measure == THROUGHPUT;
    let claims = is_throughput && view.results.spec.claims.iter().any(Claim::is_of_throughput);
    let limits = is_throughput && cells.iter().any(|cell| view.limit(cell).is_some());
    [
        (compared && has(Tone::Baseline), "baseline", "baseline"),
        (compared && has(Tone::Better), "better", "faster than the baseline"),
        (compared && has(Tone::Worse), "worse", "slower than the baseline"),
        (compared && has(Tone::Level), "level", "no difference shown"),
        (limits, "limit", "the most this machine allows, measured"),
        (claims, "paper", "the paper"),
    ]
    .into_iter()
    .filter_map(|(is_used, class, word)| is_used.then_some((class, word)))
    .collect()
}
