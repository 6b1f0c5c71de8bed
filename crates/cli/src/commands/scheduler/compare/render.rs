//! The comparison for a terminal, and for programs.

use serde::Serialize;

use super::loads::LOADS;
use super::record::{Middle, Record};
use super::rows::{self, Loss, Row};
use crate::commands::study::summary;

/// A record with what was made of it.
#[derive(Serialize)]
pub(super) struct Evaluation<'a> {
    pub(super) record: &'a Record,
    pub(super) sentence: String,
    pub(super) rows: Vec<Row>,
    pub(super) losses: Vec<Loss>,
}

impl<'a> Evaluation<'a> {
    pub(super) fn of(record: &'a Record) -> Self {
        let rows = rows::rows(record);
        let losses = rows::losses(record, &rows);
        let sentence = rows::sentence(record, &rows, &losses);
        Self { record, sentence, rows, losses }
    }

    /// Where others are better, a line each.
    pub(super) fn losses_in_words(&self) -> Vec<String> {
        let line = |loss: &Loss| {
            let row = &self.rows[loss.row];
            let value = |at: usize| row.values[at].map(|value| value.median);
            let of = |at: usize| words(value(at), row.unit);
            let name = |at: usize| &self.record.schedulers[at].words;
            let ratio = loss.ratio.map(|ratio| format!(", {ratio:.2} times as good"));
            format!(
                "{}, {}: {} {}, {} {}{}",
                row.load,
                row.label,
                name(loss.by),
                of(loss.by),
                name(loss.ours),
                of(loss.ours),
                ratio.unwrap_or_default()
            )
        };
        self.losses.iter().map(line).collect()
    }
}

/// A number with its unit.
fn words(value: Option<f64>, unit: &str) -> String {
    let Some(value) = value else { return "–".to_owned() };
    let number = number(value);
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// Three digits.
pub(super) fn number(value: f64) -> String {
    let decimals = if value > 0.0 { (2.0 - value.log10().floor()).clamp(0.0, 5.0) } else { 0.0 };
    format!("{value:.0$}", decimals as usize)
}

/// A value with a star where it is the best or level with it.
fn starred(row: &Row, at: usize) -> String {
    match row.values[at] {
        Some(Middle { median, .. }) => {
            format!("{}{}", number(median), if row.is_level(at) { " *" } else { "  " })
        }
        None => "–  ".to_owned(),
    }
}

/// The whole comparison as text.
pub(super) fn table(judged: &Evaluation<'_>) -> String {
    let record = judged.record;
    let mut header = vec!["", ""];
    header.extend(record.schedulers.iter().map(|scheduler| scheduler.words.as_str()));
    let mut table = summary::table(&header);
    let mut load = "";
    for row in &judged.rows {
        let named = if row.load == load { "" } else { row.load };
        load = row.load;
        let label = match row.unit {
            "" => row.label.to_owned(),
            "/s" => format!("{} a second", row.label),
            unit => format!("{}, {unit}", row.label),
        };
        let mut cells = vec![named.to_owned(), label];
        cells.extend((0..row.values.len()).map(|at| starred(row, at)));
        table.add_row(cells);
    }
    summary::right(&mut table, 2..header.len());
    let mut parts = vec![
        head(record),
        summary::lines(table),
        "*: the best, or rounds that overlap with its own".to_owned(),
        judged.sentence.clone(),
    ];
    if !judged.losses.is_empty() {
        let lines = judged.losses_in_words().join("\n  ");
        parts.push(format!("Where others are better:\n  {lines}"));
    }
    let failures = record.failures();
    if !failures.is_empty() {
        parts.push(format!("Not measured:\n  {}", failures.join("\n  ")));
    }
    parts.push(loads_in_words(record).join("\n"));
    parts.join("\n\n")
}

/// The machine, the time and the rounds of a record.
pub(super) fn head(record: &Record) -> String {
    let rounds = if record.rounds == 1 { "one round" } else { "medians of rounds" };
    format!(
        "Linux {}, {} CPUs of {} cores, {}; {} s each, {rounds}{}",
        record.kernel,
        record.cpus,
        record.cores,
        record.cpu,
        number(record.seconds),
        if record.rounds == 1 { String::new() } else { format!(": {}", record.rounds) },
    )
}

/// The loads that there are in a record.
pub(super) fn loads_in_words(record: &Record) -> Vec<String> {
    let is_there = |name| record.cells.iter().any(|cell| cell.load == name);
    let there = LOADS.iter().filter(|load| is_there(load.name));
    there.map(|load| format!("{}: {}", load.name, load.says)).collect()
}
