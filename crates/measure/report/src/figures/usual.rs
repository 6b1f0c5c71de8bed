//! The default charts of a study, by its axes and measures.
//!
//! ```text
//! techniques of ours            bars by case
//! settings of a database
//!   two axes and a baseline     coloured table of ratios: words down, numbers along
//!   an axis of words            ratios with intervals, elapsed and CPU, by that axis
//!   clients                     throughput against clients, latency against clients
//!   a degree of parallelism     steps from each degree to the next
//! ```

use workahead_study::measure::THROUGHPUT;
use workahead_study::method::{Chart, ChartKind};
use workahead_study::setting::Setting;

use super::{LATENCIES, LATENCY, RATIO, steps};
use crate::view::View;

pub(super) fn charts(view: &View<'_>) -> Vec<Chart> {
    if view.compares_techniques() || !view.results.is_timed() {
        return vec![chart(ChartKind::Bars, view.results.headline())];
    }
    let axes: Vec<&String> = view
        .results
        .run_plan
        .axes
        .iter()
        .filter(|axis| *axis != "case" && view.varies(axis))
        .collect();
    let is_words = |axis: &&&String| {
        view.cells().iter().all(|cell| cell.place.get(**axis).and_then(Setting::as_text).is_some())
    };
    let of_words = axes.iter().find(is_words).map(|axis| (*axis).clone());
    let numbers = axes.iter().rev().find(|axis| !is_words(axis)).map(|axis| (*axis).clone());
    let compared = view.findings.iter().any(|finding| finding.ratio.is_some());
    let mut charts = Vec::new();
    if compared && let (Some(down), Some(along)) = (&of_words, &numbers) {
        let heat = chart(ChartKind::Heat, RATIO);
        charts.push(Chart { by: Some(down.clone()), x: Some(along.clone()), ..heat });
    }
    if compared {
        let by = of_words.or_else(|| numbers.clone()).or_else(|| Some("case".to_owned()));
        charts.push(Chart { by, ..chart(ChartKind::Ratios, RATIO) });
    }
    if view.varies("clients") {
        let x = Some("clients".to_owned());
        let series = view.varies("case").then(|| "case".to_owned());
        let throughput = chart(ChartKind::Curves, THROUGHPUT);
        charts.push(Chart { x: x.clone(), series, ..throughput });
        if view.cells().iter().any(|cell| view.value(cell, LATENCIES[0]).is_some()) {
            charts.push(Chart { x, ..chart(ChartKind::Curves, LATENCY) });
        }
    }
    if let Some(axis) = steps::degrees(view) {
        charts.push(Chart { x: Some(axis.to_owned()), ..chart(ChartKind::Steps, THROUGHPUT) });
    }
    if charts.is_empty() {
        charts.push(chart(ChartKind::Bars, THROUGHPUT));
    }
    charts
}

fn chart(kind: ChartKind, measure: &str) -> Chart {
    Chart {
        kind,
        title: None,
        by: None,
        x: None,
        series: None,
        measure: measure.to_owned(),
        only: Default::default(),
    }
}
