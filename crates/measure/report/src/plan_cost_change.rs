//! Why a parallel plan is cheaper than the one of a lower degree: which operators took less.
//!
//! Chang (2013) found steps that were faster than ideal, or took less CPU time, and saw that the
//! parallel plan must be the cheaper one. Where operators were timed (`explain = "run"`), both
//! plans are shown side by side with the time of all workers together, to show the cheaper
//! operators.

use workahead_study::classes::{self, Class, ScalingCurve, Step};
use workahead_study::plans::{Row, Side, diff};

use crate::figures::steps;
use crate::number;
use crate::plans::{Line, Pair, line, shown};
use crate::view::View;

/// A pair of plans for every group of cells in the class of super-scaling.
pub(crate) fn pairs(view: &View<'_>) -> Vec<Pair> {
    let Some(axis) = steps::degrees(view) else { return Vec::new() };
    let found = classes::scaling_curves(view.results, axis);
    let cheaper = found.iter().filter(|one| one.scaling.class == Class::SuperScaling);
    let all = cheaper.clone().count();
    let mut pairs = shown(cheaper.filter_map(|one| pair(view, one)), all);
    pairs.iter_mut().take(1).for_each(|first| first.open = true);
    pairs
}

fn pair(view: &View<'_>, one: &ScalingCurve) -> Option<Pair> {
    let scaling = &one.scaling;
    let is_cheaper = |step: &&Step| step.is_above_ideal || step.cpu_falls;
    let step = scaling.steps.iter().find(is_cheaper);
    let at = scaling.steps.iter().position(|other| Some(other) == step)?;
    let (before, after) = (one.cells[at], one.cells[at + 1]);
    let (left, right) = (view.results.timed_plan_of(before)?, view.results.timed_plan_of(after)?);
    let rows = diff(&left, &right);
    let place = |cell: usize| view.place(&view.cells()[cell], &[]);
    let lines: Vec<Line> = rows.iter().map(line).collect();
    Some(Pair {
        label: Class::SuperScaling.text(),
        cells: format!("{} ({})", one.label, scaling.reason),
        left: place(before),
        right: place(after),
        changes: lines.iter().filter(|line| line.class != "same").count(),
        lines,
        says: sentence(&rows, &scaling.steps[at]),
        open: false,
    })
}

/// The times of the operators and the largest saving.
fn sentence(rows: &[Row], step: &Step) -> Option<String> {
    let (left, right): (f64, f64) =
        rows.iter().map(times_ms).fold((0.0, 0.0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
    let saved = |row: &Row| times_ms(row).0 - times_ms(row).1;
    let most = rows.iter().max_by(|one, other| saved(one).total_cmp(&saved(other)))?;
    let seconds = |ms: f64| number::seconds(ms * 1e-3);
    let all = format!(
        "All workers together spent {} in the operators at {}, and {} at {}.",
        seconds(left),
        step.from,
        seconds(right),
        step.to
    );
    let name = most.left.as_ref().or(most.right.as_ref())?.line.split(" [").next()?.to_owned();
    Some(match right < left {
        true => {
            let (left, right) = times_ms(most);
            let (left, right) = (seconds(left), seconds(right));
            format!("{all} Most was saved in {name}: {left} to {right}.")
        }
        false => format!("{all} The saving is elsewhere."),
    })
}

/// The times of a line's two operators; 0 for a missing one.
fn times_ms(row: &Row) -> (f64, f64) {
    let of = |side: &Option<Side>| side.as_ref().and_then(|side| side.time_ms).unwrap_or_default();
    (of(&row.left), of(&row.right))
}
