//! The answer of a study of settings: the gain of a database, where, and the deciding axis.
//!
//! ```text
//! All CPUs is 1.42 times as fast as one CPU for unj at 10 clients [1.35, 1.50]; the number of
//! clients decides: at 1 client it is 0.98 times as fast [0.93, 1.04].
//! ```
//! The deciding axis is the one along which the ratio of that cell changes most, if its two ends
//! lie apart by their intervals.

use workahead_study::cell::Cell;
use workahead_study::statistics::{Ratio, Significance};

use super::ComparedCell;
use crate::facts::machine_of;
use crate::number;
use crate::view::View;
use crate::words;

pub(super) fn sentence(view: &View<'_>, baseline: &str, compared: &[ComparedCell<'_>]) -> String {
    let shown = |one: &&ComparedCell<'_>| {
        one.1.ratio.is_some_and(|ratio| ratio.shown() != Significance::NoDifference)
    };
    let distance = |one: &&ComparedCell<'_>| one.2.ln().abs();
    let farthest = compared
        .iter()
        .filter(shown)
        .max_by(|one, other| distance(one).total_cmp(&distance(other)));
    let Some((cell, finding, _)) = farthest else { return no_difference(view, baseline, compared) };
    let Some(ratio) = finding.ratio else { return no_difference(view, baseline, compared) };
    let place = view.spoken(cell, &["case"]);
    let place = if cell.case().is_empty() || place.is_empty() {
        String::new()
    } else {
        format!(" {place}")
    };
    let mut sentence = format!(
        "{} is {} as fast as {baseline}{place} {}",
        words::capital(&view.technique(cell)),
        times(ratio),
        interval(ratio)
    );
    sentence.push_str(&match decides(view, cell, ratio) {
        Some((axis, other, of_other)) => {
            let at = other.place.get(axis).map(|value| words::spoken(axis, value));
            let at = at.unwrap_or_default();
            let subject = words::subject(axis);
            let other = format!("{at} it is {} as fast {}", times(of_other), interval(of_other));
            format!("; {subject} decides: {other}.")
        }
        None => ".".to_owned(),
    });
    sentence.push_str(&beyond_cpus(view, cell, ratio).unwrap_or_default());
    sentence
}

/// Why a cell does more than its CPUs alone can, where its baseline has fewer of them: a reader who
/// sees 2.32 times by two CPUs would else doubt the measurement, or believe in SMT.
fn beyond_cpus(view: &View<'_>, cell: &Cell, ratio: Ratio) -> Option<String> {
    let all = machine_of(view)?.allowed_cpus().len();
    let cpus = |cell: &Cell| cell.integer("cpus").map_or(all, |cpus| cpus.unsigned_abs() as usize);
    let base = view.results.run_plan.baseline_of(cell, &view.results.spec.method.baseline)?;
    let (ours, of_base) = (cpus(cell), cpus(base));
    let is_beyond = ours > of_base && ratio.interval?.low > ours as f64 / of_base as f64;
    is_beyond.then(|| {
        format!(
            " That is more than {} against {of_base} can give by themselves: a server that is kept \
             on fewer also receives requests from the others, so that each message wakes one of \
             them, and has fewer private caches. This run does not tell these apart.",
            words::counted(ours, "CPU")
        )
    })
}

fn times(ratio: Ratio) -> String {
    words::unbroken(&format!("{} times", number::ratio(ratio.ratio).trim_end_matches('×')))
}

fn interval(ratio: Ratio) -> String {
    match ratio.interval {
        Some(ends) => {
            let ends = number::ratio_interval((ends.low, ends.high)).replace(" to ", ", ");
            words::unbroken(&format!("[{ends}]"))
        }
        None => "(one sample, no interval)".to_owned(),
    }
}

fn no_difference(view: &View<'_>, baseline: &str, compared: &[ComparedCell<'_>]) -> String {
    let ends = compared.first().zip(compared.last());
    let range = ends.map(|(least, most)| {
        format!(": the ratios lie between {} and {}", number::ratio(least.2), number::ratio(most.2))
    });
    let why = match view.results.run_plan.repetitions {
        1 => " One sample of each cell gives no interval, so nothing can be claimed.",
        _ => "",
    };
    let comparisons = words::counted(compared.len(), "comparison");
    format!(
        "No difference to {baseline} is shown in {comparisons}{}.{why}",
        range.unwrap_or_default()
    )
}

/// The axis that changes a cell's ratio most, the cell at its far end, and the ratio there.
fn decides<'a>(
    view: &'a View<'_>,
    cell: &Cell,
    ratio: Ratio,
) -> Option<(&'a str, &'a Cell, Ratio)> {
    let far = |axis: &'a String| {
        let others = view.cells().iter().filter(|other| {
            let mut place = other.place.clone();
            place.extend(cell.place.get(axis).map(|value| (axis.clone(), value.clone())));
            other.index != cell.index && place == cell.place
        });
        let with_ratio = others.filter_map(|other| Some((other, view.finding(other).ratio?)));
        let apart = |other: &Ratio| (other.ratio / ratio.ratio).ln().abs();
        with_ratio
            .filter(|(_, other)| lie_apart(ratio, *other))
            .max_by(|one, two| apart(&one.1).total_cmp(&apart(&two.1)))
            .map(|(other, of_other)| (axis.as_str(), other, of_other))
    };
    let axes = view.results.run_plan.axes.iter().filter(|axis| *axis != "case");
    let found = axes.filter_map(far);
    found.max_by(|one, two| {
        let apart = |other: Ratio| (other.ratio / ratio.ratio).ln().abs();
        apart(one.2).total_cmp(&apart(two.2))
    })
}

fn lie_apart(one: Ratio, other: Ratio) -> bool {
    match (one.interval, other.interval) {
        (Some(one), Some(other)) => !one.overlaps(&other),
        _ => false,
    }
}
