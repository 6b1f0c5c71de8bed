//! Figures of the cells of a study that were counted.

use workahead_counters::metrics::Metrics;
use workahead_study::cell::Cell;
use workahead_study::results::Results;

use super::{Figure, Source, StreamFigures};
use crate::published::Configuration;

/// The cells of a result that were counted.
pub(super) struct ResultFigures<'a> {
    cells: Vec<(&'a Cell, Metrics)>,
}

impl<'a> ResultFigures<'a> {
    pub(super) fn of(results: &'a Results) -> Self {
        let counted = |cell: &'a Cell| Some((cell, results.metrics(cell.index)?));
        Self { cells: results.run_plan.cells.iter().filter_map(counted).collect() }
    }

    pub(super) fn is_counted(&self) -> bool {
        !self.cells.is_empty()
    }
}

impl Source for ResultFigures<'_> {
    fn figure(&self, metric: &str, at: &Configuration) -> Result<Figure, String> {
        let fitting = |(cell, _): &&(&Cell, Metrics)| fits(cell, at);
        // The largest machine of those that fit, as the paper's base is its largest.
        let found = self.cells.iter().filter(fitting).max_by_key(|(cell, _)| processors(cell));
        let (cell, metrics) = found.ok_or_else(|| no_cell(at))?;
        let of_stream = StreamFigures { metrics, processors: processors(cell) };
        of_stream.figure(metric, &Configuration { workload: None, ..at.clone() })
    }
}

/// Whether a cell is of the work that a figure is of. A cell with any number of processors stands
/// for the paper's base.
fn fits(cell: &Cell, at: &Configuration) -> bool {
    let of_base = at.processors.is_none_or(|number| {
        number == BASE_PROCESSORS || processors(cell) == Some(u32::from(number))
    });
    of_base && is_of_work(cell, at)
}

/// Whether a cell is of the work that a figure is of.
pub(super) fn is_of_work(cell: &Cell, at: &Configuration) -> bool {
    at.workload.as_deref().is_none_or(|workload| {
        let name = cell.text("query").or_else(|| cell.text("workload"));
        name.is_some_and(|name| plain(name) == plain(workload))
    })
}

/// The base system of Keeton et al. (1998, Table 1).
const BASE_PROCESSORS: u8 = 4;

fn processors(cell: &Cell) -> Option<u32> {
    cell.integer("cpus").and_then(|cpus| u32::try_from(cpus).ok())
}

/// `uTPC-C` and `utpcc` are one.
fn plain(name: &str) -> String {
    let lower = name.to_lowercase().replace('µ', "u");
    lower.chars().filter(|letter| letter.is_alphanumeric()).collect()
}

fn no_cell(at: &Configuration) -> String {
    match (at.processors, &at.workload) {
        (_, Some(workload)) => format!("no cell of ours is of {workload}"),
        (Some(1), None) => "no run on 1 processor was counted".to_owned(),
        (Some(number), None) => format!("no run on {number} processors was counted"),
        (None, None) => "no cell of ours is of that".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_of_queries_are_compared_without_their_dress() {
        assert_eq!(plain("µTPC-C"), plain("utpcc"));
        assert_ne!(plain("uSS"), plain("unj"));
    }
}
