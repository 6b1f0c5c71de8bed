//! Ratios with their intervals from cells: elapsed time and, beside it, CPU time.

use workahead_study::cell::Cell;
use workahead_study::plans::Label;
use workahead_study::statistics::Ratio;

use super::Part;
use crate::chart::Tone;
use crate::chart::ratios::{Kind, Mark, Ratios, Row};
use crate::number;
use crate::view::View;
use crate::words;

pub(super) fn ratios(part: &Part<'_>) -> Ratios {
    let view = part.view;
    let mut cells: Vec<&Cell> = part.cells.to_vec();
    cells.retain(|cell| !view.finding(cell).is_baseline);
    if let Some(series) = part.axes.series {
        let group = |cell: &Cell| {
            part.cells.iter().position(|other| other.place.get(series) == cell.place.get(series))
        };
        cells.sort_by_key(|cell| group(cell));
    }
    let mut last = None;
    let mut rows = Vec::with_capacity(cells.len());
    for cell in cells {
        let group = part.axes.series.and_then(|series| Some((series, cell.place.get(series)?)));
        let heading = group.filter(|_| group != last);
        last = group;
        rows.push(Row {
            heading: heading.map(|(series, value)| words::setting(series, value)),
            name: name(part, cell),
            marks: marks(view, cell),
            missing: words::label(&view.results.absence(cell.index)),
        });
    }
    let baseline = view.baseline().unwrap_or_default();
    Ratios { description: part.description.clone(), unit: format!("times {baseline}"), rows }
}

fn name(part: &Part<'_>, cell: &Cell) -> String {
    match (part.axes.along, cell.place.get(part.axes.along)) {
        ("case", Some(value)) => words::value(value),
        (along, Some(value)) => words::setting(along, value),
        (_, None) => part.view.technique(cell),
    }
}

/// The speed of a cell and its CPU time for each tuple, over the baseline's.
fn marks(view: &View<'_>, cell: &Cell) -> Vec<Mark> {
    let finding = view.finding(cell);
    let Some(speed) = finding.ratio else { return Vec::new() };
    let tone = Kind::Speed(view.tone(finding));
    let plan = finding.plan.filter(|label| *label != Label::Same);
    let mut marks = vec![mark(speed, tone, plan.map(Label::text).unwrap_or_default())];
    if let Some(cpu) = view.cpu_ratio(cell) {
        marks.push(mark(cpu, Kind::Cpu, "CPU"));
    }
    marks
}

fn mark(ratio: Ratio, kind: Kind, note: &str) -> Mark {
    let interval = ratio.interval.map(|ends| (ends.low, ends.high));
    let ends = interval.map_or_else(|| "one sample".to_owned(), number::ratio_interval);
    let words = if note.is_empty() { ends } else { format!("{ends} · {note}") };
    Mark { ratio: ratio.ratio, interval, kind, words }
}

/// The signs, with their words.
pub(super) fn keys(view: &View<'_>, cells: &[&Cell]) -> Vec<(&'static str, &'static str)> {
    let has = |tone: Tone| cells.iter().any(|cell| view.tone(view.finding(cell)) == tone);
    let has_cpu = cells.iter().any(|cell| view.cpu_ratio(cell).is_some());
    [
        (has(Tone::Better), "better", "faster than the baseline"),
        (has(Tone::Worse), "worse", "slower than the baseline"),
        (has(Tone::Level), "level", "no difference shown"),
        (has_cpu, "cpu", "CPU time for the same work: above 1 is more expensive"),
    ]
    .into_iter()
    .filter_map(|(is_used, class, word)| is_used.then_some((class, word)))
    .collect()
}
