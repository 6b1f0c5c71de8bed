//! Gains and losses of each technique over all places of a study.
//!
//! The charts show one place at a time, and the answer names the extremes of all; to choose a
//! technique, readers need to know how often it loses, and how much.

use std::collections::HashMap;

use serde::Serialize;
use workahead_study::cell::Cell;
use workahead_study::results::Finding;
use workahead_study::statistics::Significance;

use crate::number;
use crate::view::{View, ratio_words};

/// One technique over all its places.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// The technique.
    pub(crate) technique: String,
    /// `2 threads`, if known.
    pub(crate) threads: String,
    /// Places in which it is shown to be faster than the baseline.
    pub(crate) faster: usize,
    /// Those in which no difference is shown.
    pub(crate) level: usize,
    /// Those in which it is shown to be slower.
    pub(crate) slower: usize,
    /// Its largest ratio.
    pub(crate) best: Extreme,
    /// Its smallest.
    pub(crate) worst: Extreme,
}

/// The end of a technique's range.
#[derive(Debug, Serialize)]
pub(crate) struct Extreme {
    /// `better`, `worse` or `level`.
    pub(crate) tone: &'static str,
    /// `0.72×`.
    pub(crate) ratio: String,
    /// `0.71 to 0.74`.
    pub(crate) interval: String,
    /// `hash join, in cache`.
    pub(crate) place: String,
}

/// One row for each technique, in the study's order; none when no technique is compared twice.
pub(crate) fn rows(view: &View<'_>) -> Vec<Row> {
    let mut techniques: HashMap<&str, usize> = HashMap::new();
    let mut all: Vec<Vec<ComparedCell<'_>>> = Vec::new();
    for cell in view.cells().iter().filter(|cell| !cell.case().is_empty()) {
        let place = *techniques.entry(cell.case()).or_insert_with(|| {
            all.push(Vec::new());
            all.len() - 1
        });
        all[place].extend(compared(view, cell));
    }
    match all.iter().any(|places| places.len() > 1) {
        true => all.iter().filter_map(|places| row(view, places)).collect(),
        false => Vec::new(),
    }
}

/// A cell with its finding and ratio.
type ComparedCell<'a> = (&'a Cell, &'a Finding, f64);

fn compared<'a>(view: &'a View<'_>, cell: &'a Cell) -> Option<ComparedCell<'a>> {
    let finding = view.finding(cell);
    Some((cell, finding, finding.ratio?.ratio))
}

fn shown(finding: &Finding) -> Significance {
    finding.ratio.map_or(Significance::NoDifference, |ratio| ratio.shown())
}

fn row(view: &View<'_>, places: &[ComparedCell<'_>]) -> Option<Row> {
    let by_ratio = |one: &&ComparedCell<'_>, other: &&ComparedCell<'_>| one.2.total_cmp(&other.2);
    let count = |what| places.iter().filter(|(_, finding, _)| shown(finding) == what).count();
    let best = places.iter().max_by(by_ratio)?;
    let worst = places.iter().min_by(by_ratio)?;
    Some(Row {
        technique: view.technique(best.0),
        threads: view.threads_words(best.0).unwrap_or_default(),
        faster: count(Significance::Faster),
        level: count(Significance::NoDifference),
        slower: count(Significance::Slower),
        best: extreme(view, best),
        worst: extreme(view, worst),
    })
}

fn extreme(view: &View<'_>, (cell, finding, ratio): &ComparedCell<'_>) -> Extreme {
    let (_, interval) = ratio_words(finding);
    Extreme {
        tone: match shown(finding) {
            Significance::Faster => "better",
            Significance::Slower => "worse",
            Significance::NoDifference => "level",
        },
        ratio: number::ratio(*ratio),
        interval,
        place: view.surroundings(cell),
    }
}
