//! All statistics of the samples of a cell, with every mean.
//!
//! The papers used different ones: plain means, means without outliers by an unnamed rule
//! (Hassanein et al. 2008), means without the smallest and the largest (Keeton et al. 1998). All
//! are shown side by side here, with the dropped samples.

use serde::Serialize;
use workahead_study::cell::Cell;
use workahead_study::statistics::{Interval, Summary};

use crate::number;
use crate::view::View;
use crate::words;

/// One cell.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) samples: usize,
    pub(crate) mean: String,
    pub(crate) sd: String,
    pub(crate) median: String,
    pub(crate) trimmed: String,
    pub(crate) cleaned: String,
    /// The dropped outliers.
    pub(crate) outliers: String,
    pub(crate) t_interval: String,
    pub(crate) bootstrap: String,
}

/// One row for every cell with samples; none where no cell has two.
pub(crate) fn rows(view: &View<'_>) -> Vec<Row> {
    let several = view.findings.iter().any(|finding| finding.samples > 1);
    let cells = view.cells().iter().filter(|_| several);
    cells.filter_map(|cell| row(view, cell)).collect()
}

fn row(view: &View<'_>, cell: &Cell) -> Option<Row> {
    let values = view.values(cell, view.results.headline());
    let summary = Summary::of(&values, view.results.spec.seed)?;
    let plain = |value: f64| number::plain(value);
    let interval = |ends: Option<Interval>| match ends {
        Some(ends) => format!("{} to {}", number::plain(ends.low), number::plain(ends.high)),
        None => number::NONE.to_owned(),
    };
    let dropped: Vec<String> = summary.cleaned.dropped.iter().copied().map(plain).collect();
    let mark = if summary.is_scattered() { " (more than a tenth of the mean)" } else { "" };
    Some(Row {
        name: view.place(cell, &[]),
        samples: summary.samples,
        mean: plain(summary.mean),
        sd: summary.sd.map_or_else(|| number::NONE.to_owned(), |sd| format!("{}{mark}", plain(sd))),
        median: plain(summary.median),
        trimmed: plain(summary.trimmed),
        cleaned: plain(summary.cleaned.mean),
        outliers: match dropped.is_empty() {
            true => "none".to_owned(),
            false => words::unbroken(&dropped.join(", ")),
        },
        t_interval: interval(summary.t_interval),
        bootstrap: interval(summary.bootstrap_interval),
    })
}
