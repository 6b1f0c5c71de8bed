//! Lines from cells.

use workahead_study::cell::Cell;
use workahead_study::claim::Claim;
use workahead_study::setting::Setting;

use super::{LATENCIES, LATENCY, Part, RATIO};
use crate::chart::{Curves, PaperPoint, Point, Series, XAxis};
use crate::words;

/// Sizes that span this factor or more lie on a doubling axis.
const DOUBLING_FROM: f64 = 8.0;

pub(super) fn curves(part: &Part<'_>) -> Curves {
    let ticks = ticks(part);
    let x_axis = axis(&ticks);
    let place = |cell: &Cell| {
        let value = cell.place.get(part.axes.along)?;
        match x_axis {
            XAxis::Named(_) => ticks.iter().position(|tick| *tick == value).map(|at| at as f64),
            XAxis::Doubling | XAxis::Even => value.as_number(),
        }
    };
    let mut lines = Vec::new();
    for cell in part.cells {
        match part.chart.measure == LATENCY {
            true => {
                for (measure, name) in LATENCIES.iter().zip(["median", "95 %", "99 %"]) {
                    let value = part.value_of(cell, measure);
                    add(&mut lines, (name, None), name.to_owned(), point(place(cell), value));
                }
            }
            false => {
                let value = part.value_of(cell, &part.chart.measure);
                let key = ("", part.axes.series.and_then(|series| cell.place.get(series)));
                add(&mut lines, key, name(part, cell), point(place(cell), value));
            }
        }
    }
    let mut series: Vec<Series> = lines.into_iter().map(|(_, one)| one).collect();
    for one in &mut series {
        one.points.sort_by(|left, right| left.x.total_cmp(&right.x));
    }
    let (paper_points, paper_levels) = paper_points(part, &place);
    let baseline = part.view.baseline().filter(|_| part.chart.measure == RATIO);
    Curves {
        description: part.description.clone(),
        x_unit: words::axis(part.axes.along),
        y_unit: part.unit(),
        x_axis,
        series,
        level: baseline.map(|baseline| (1.0, format!("baseline: {baseline}"))),
        paper_points,
        paper_levels,
    }
}

/// What tells lines apart: a quantity and a value. Their names may be cut to the same words.
type Key<'a> = (&'a str, Option<&'a Setting>);

/// Adds a point to its line; no line without one.
fn add<'a>(lines: &mut Vec<(Key<'a>, Series)>, key: Key<'a>, name: String, point: Option<Point>) {
    let Some(point) = point else { return };
    match lines.iter_mut().find(|(other, _)| *other == key) {
        Some((_, one)) => one.points.push(point),
        None => lines.push((key, Series { name, points: vec![point] })),
    }
}

fn name(part: &Part<'_>, cell: &Cell) -> String {
    match part.axes.series.and_then(|series| Some((series, cell.place.get(series)?))) {
        Some(("case", value)) => words::value(value),
        Some((series, value)) => words::setting(series, value),
        None => words::quantity(&part.chart.measure),
    }
}

/// A point at a value with its interval, if both are known.
fn point(x: Option<f64>, value: Option<(f64, Option<(f64, f64)>)>) -> Option<Point> {
    let (y, interval) = value?;
    Some(Point { x: x?, y, interval })
}

/// The different values along x, in the study's order.
fn ticks<'a>(part: &Part<'a>) -> Vec<&'a Setting> {
    let mut ticks: Vec<&Setting> = Vec::new();
    for value in part.cells.iter().filter_map(|cell| cell.place.get(part.axes.along)) {
        if !ticks.contains(&value) {
            ticks.push(value);
        }
    }
    ticks
}

fn axis(ticks: &[&Setting]) -> XAxis {
    let numbers: Option<Vec<f64>> = ticks.iter().map(|value| value.as_number()).collect();
    match numbers {
        None => XAxis::Named(ticks.iter().map(|value| words::bare(value)).collect()),
        Some(numbers) => {
            let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
            let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            match least > 0.0 && most / least >= DOUBLING_FROM {
                true => XAxis::Doubling,
                false => XAxis::Even,
            }
        }
    }
}

/// A claim on one point is a diamond there; a claim on all of a line with one value is a level.
fn paper_points(
    part: &Part<'_>,
    place: &dyn Fn(&Cell) -> Option<f64>,
) -> (Vec<PaperPoint>, Vec<(f64, String)>) {
    let mut points = Vec::new();
    let mut levels = Vec::new();
    for claim in part.claims() {
        let meant: Vec<(f64, f64)> = meant(part, claim, place);
        let label = part.paper_label(claim.1);
        match meant[..] {
            [] => {}
            [(x, y)] => points.push(PaperPoint { x, y, label }),
            [(_, y), ..] if part.chart.measure == RATIO => levels.push((y, label)),
            _ => {
                points.extend(meant.iter().map(|&(x, y)| PaperPoint { x, y, label: label.clone() }))
            }
        }
    }
    (points, levels)
}

fn meant(
    part: &Part<'_>,
    claim: (usize, &Claim),
    place: &dyn Fn(&Cell) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let point = |cell: &&Cell| Some((place(cell)?, part.paper_value(claim, cell)?));
    part.cells.iter().filter_map(point).collect()
}
