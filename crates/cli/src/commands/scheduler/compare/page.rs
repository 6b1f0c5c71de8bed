//! The comparison as one page with pictures, losses first.

use serde::Serialize;
use workahead_report::document;
use workahead_report::drawing::{self, Drawing, RelativeFigure, Standing, SubjectFigure};

use super::loads::LOADS;
use super::record::{Middle, Record};
use super::render::{Evaluation, head, number};
use super::rows::Row;

const TEMPLATE: &str = include_str!("../../../../templates/scheduler_compare.html");

#[derive(Serialize)]
struct Page {
    sentence: String,
    head: String,
    workahead: String,
    /// The denominator of the ratios.
    baseline: String,
    losses: Vec<String>,
    failures: Vec<String>,
    schedulers: Vec<[String; 2]>,
    loads: Vec<LoadPart>,
}

/// A load with its rows.
#[derive(Serialize)]
struct LoadPart {
    name: &'static str,
    says: &'static str,
    ratios: Drawing,
    rows: Vec<RowPart>,
}

#[derive(Serialize)]
struct RowPart {
    label: String,
    bars: Drawing,
    cells: Vec<CellPart>,
}

#[derive(Serialize)]
struct CellPart {
    median: String,
    ends: String,
    is_best: bool,
}

/// The page.
///
/// # Errors
/// Only if the template is broken.
pub(super) fn html(record: &Record) -> anyhow::Result<String> {
    let judged = Evaluation::of(record);
    let names: Vec<String> =
        record.schedulers.iter().map(|scheduler| scheduler.words.clone()).collect();
    let part = |load: &super::Load| {
        let rows: Vec<&Row> = judged.rows.iter().filter(|row| row.load == load.name).collect();
        (!rows.is_empty()).then(|| LoadPart {
            name: load.name,
            says: load.says,
            ratios: ratios(load.name, &short(&names), &rows, record.rounds),
            rows: rows.iter().map(|row| row_part(row, &names)).collect(),
        })
    };
    let named = |scheduler: &super::record::SchedulerName| {
        let name = scheduler.name.clone().unwrap_or_else(|| "never had the tasks".to_owned());
        [scheduler.words.clone(), name]
    };
    let page = Page {
        sentence: judged.sentence.clone(),
        head: head(record),
        workahead: record.workahead.clone(),
        baseline: names.first().cloned().unwrap_or_default(),
        losses: judged.losses_in_words(),
        failures: record.failures(),
        schedulers: record.schedulers.iter().map(named).collect(),
        loads: LOADS.iter().filter_map(part).collect(),
    };
    Ok(document(TEMPLATE, &page)?)
}

/// The program of each, with its options only where two have the same program.
fn short(names: &[String]) -> Vec<String> {
    let first = |name: &String| name.split(' ').next().unwrap_or_default().to_owned();
    let twice =
        |name: &String| names.iter().filter(|other| first(other) == first(name)).count() > 1;
    names.iter().map(|name| if twice(name) { name.clone() } else { first(name) }).collect()
}

/// How many times as good as the first scheduler each one is.
fn ratios(load: &str, names: &[String], rows: &[&Row], rounds: u32) -> Drawing {
    let compared = |row: &&Row| {
        let square = |at: usize| {
            let ratio = row.ratio(at, 0)?;
            let (one, first) = (row.values[at]?, row.values[0]?);
            // Of one round nothing is sure.
            let is_sure = at > 0 && rounds > 1 && !one.overlaps(&first);
            Some(RelativeFigure { ratio, is_sure })
        };
        (row.label.to_owned(), (0..names.len()).map(square).collect())
    };
    let rows: Vec<(String, Vec<Option<RelativeFigure>>)> = rows.iter().map(compared).collect();
    let description = format!("{load}: how many times as good as the first scheduler each one is");
    drawing::ratios(&description, names, &rows)
}

fn row_part(row: &Row, names: &[String]) -> RowPart {
    let measured = |(at, name): (usize, &String)| SubjectFigure {
        name: name.clone(),
        value: row.values[at].map(|Middle { median, least, most }| (median, (least, most))),
        standing: match at {
            at if row.is_level(at) => Standing::Best,
            0 => Standing::Baseline,
            _ => Standing::Other,
        },
    };
    let subjects: Vec<SubjectFigure> = names.iter().enumerate().map(measured).collect();
    let unit = if row.unit.is_empty() { "share" } else { row.unit };
    let better = match row.better {
        super::rows::Better::More => "more is better",
        super::rows::Better::Less => "less is better",
    };
    let label = format!("{}, {unit}; {better}", row.label);
    let cell = |at: usize| {
        let (median, ends) = match row.values[at] {
            Some(Middle { median, least, most }) => {
                (number(median), format!("{} to {}", number(least), number(most)))
            }
            None => ("–".to_owned(), String::new()),
        };
        CellPart { median, ends, is_best: row.is_level(at) }
    };
    RowPart {
        bars: drawing::bars(&format!("{}: {label}", row.load), unit, &subjects),
        cells: (0..names.len()).map(cell).collect(),
        label,
    }
}
