//! A coloured table from cells.

use workahead_study::cell::Cell;
use workahead_study::setting::Setting;
use workahead_study::statistics::Significance;

use super::{Part, RATIO};
use crate::chart::heat::{Heat, Hues, Row, Square};
use crate::number;
use crate::view::ratio_words;
use crate::words;

pub(super) fn heat(part: &Part<'_>) -> Heat {
    let columns = values(part, Some(part.axes.along));
    let rows = values(part, part.axes.series);
    let row = |of_row: &Option<&Setting>| {
        let square = |column: &Option<&Setting>| {
            let is_here = |cell: &&&Cell| {
                let has = |axis: Option<&str>, value: &Option<&Setting>| {
                    axis.is_none_or(|axis| cell.place.get(axis) == *value)
                };
                has(part.axes.series, of_row) && has(Some(part.axes.along), column)
            };
            match part.cells.iter().find(is_here) {
                Some(cell) => square(part, cell),
                None => Square::Missing("the study has no such cell".to_owned()),
            }
        };
        let name = match (part.axes.series, of_row) {
            (Some("case"), Some(value)) => words::value(value),
            (Some(axis), Some(value)) => words::setting(axis, value),
            _ => String::new(),
        };
        Row { name, note: String::new(), squares: columns.iter().map(square).collect() }
    };
    let name = |column: &Option<&Setting>| column.map(words::bare).unwrap_or_default();
    Heat {
        description: part.description.clone(),
        along: words::axis(part.axes.along),
        columns: columns.iter().map(name).collect(),
        rows: rows.iter().map(row).collect(),
        hues: if part.chart.measure == RATIO { Hues::AroundOne } else { Hues::Rising },
    }
}

/// The different values of an axis, in the study's order; a single `None` without an axis.
fn values<'a>(part: &Part<'a>, axis: Option<&str>) -> Vec<Option<&'a Setting>> {
    let Some(axis) = axis else { return vec![None] };
    let mut values = Vec::new();
    for value in part.cells.iter().map(|cell| cell.place.get(axis)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

fn square(part: &Part<'_>, cell: &Cell) -> Square {
    let finding = part.view.finding(cell);
    let Some((value, interval)) = part.value(cell) else {
        let why = match finding.samples > 0 {
            true if finding.is_baseline => "the baseline itself".to_owned(),
            true => "its baseline has no figure".to_owned(),
            false => words::label(&part.view.results.absence(cell.index)),
        };
        return Square::Missing(why);
    };
    let place = part.view.place(cell, &[]);
    if part.chart.measure == RATIO {
        let (words, of_interval) = ratio_words(finding);
        let is_sure =
            finding.ratio.is_some_and(|ratio| ratio.shown() != Significance::NoDifference);
        let title = format!("{place}: {words} ({of_interval})");
        return Square::Value { value, words, is_sure, title };
    }
    let words = number::plain(value);
    let mut title = format!("{place}: {words} {}", part.unit());
    if let Some((low, high)) = interval {
        let ends = format!("{} to {}", number::plain(low), number::plain(high));
        title.push_str(&format!(", 95 % interval {ends}"));
    }
    Square::Value { value, words, is_sure: false, title }
}
