//! The cells as CSV (RFC 4180), one row each, for spreadsheets; unrounded, empty where unknown.
//!
//! Beside it every sample, one row each, as `observations.parquet` has them; plans by their
//! fingerprints. Each sample repeats the settings of its cell, so that a result of megabytes may be
//! a table of gigabytes: it is written field by field, and none of it is kept here.

use std::collections::BTreeSet;
use std::io::{self, Write};

use workahead_study::cell::Cell;
use workahead_study::comparison::Comparison;
use workahead_study::observation::Outcome;
use workahead_study::plans::PlanText;
use workahead_study::results::Results;
use workahead_study::setting::Setting;
use workahead_study::statistics::Significance;

use crate::view::View;

/// Every cell, with a line of names first.
pub(crate) fn csv(results: &Results, to: &mut dyn Write) -> io::Result<()> {
    let view = View::of(results);
    let settings: BTreeSet<&String> =
        view.cells().iter().flat_map(|cell| cell.settings.keys()).collect();
    let measures = results.measures();
    let tier = if view.is_modelled() { "E" } else { results.record.host.tier.as_str() };
    let mut table = Table::new(to);
    table.fields(["study", "cell", "block"])?;
    table.names("setting", settings.iter().copied())?;
    table.fields(FIGURES)?;
    table.names("measure", &measures)?;
    table.fields(["tier", "failure", "limitation", "impossible"])?;
    table.end_row()?;
    for cell in view.cells() {
        let finding = view.finding(cell);
        table.field(&results.record.study)?;
        table.fields([cell.index, cell.block].map(|number| number.to_string()))?;
        for name in &settings {
            table.setting(cell.get(name))?;
        }
        table.fields(figures(&view, cell))?;
        for name in &measures {
            table.field(&exact(results.value(cell.index, name)))?;
        }
        table.field(tier)?;
        for words in [&finding.failure, &finding.limitation, &finding.impossible] {
            table.field(words.as_deref().unwrap_or_default())?;
        }
        table.end_row()?;
    }
    Ok(())
}

/// Every sample and failure, with a line of names first.
pub(crate) fn samples(results: &Results, to: &mut dyn Write) -> io::Result<()> {
    let cells = &results.run_plan.cells;
    let settings: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.settings.keys()).collect();
    let measures = results.measures();
    let mut table = Table::new(to);
    table.fields(["cell", "block", "repetition", "slot", "unix_ms", "protocol"])?;
    table.names("setting", settings.iter().copied())?;
    table.fields(SAMPLE)?;
    table.names("measure", &measures)?;
    table.fields(["answer_rows", "answer_checksum", "plan_fingerprint", "failure"])?;
    table.end_row()?;
    let fingerprint = |cell: &Cell| results.plan_of(cell.index).map(PlanText::fingerprint);
    let plans: Vec<Option<String>> = cells.iter().map(fingerprint).collect();
    for seen in &results.observations {
        let cell = &cells[seen.cell];
        table.fields([seen.cell, cell.block].map(|number| number.to_string()))?;
        table.field(&seen.repetition.to_string())?;
        table.field(&seen.slot.to_string())?;
        table.field(&seen.unix_ms.to_string())?;
        table.field(cell.protocol.start.name())?;
        for name in &settings {
            table.setting(cell.get(name))?;
        }
        table.fields(SAMPLE.map(|name| match (name, seen.sample()) {
            ("tuples", sample) => sample.map(|one| one.tuples.to_string()).unwrap_or_default(),
            (name, _) => exact(results.measure(seen, name)),
        }))?;
        for name in &measures {
            table.field(&exact(seen.measure(name)))?;
        }
        let answer = seen.sample().map(|sample| sample.answer);
        table.field(&answer.map(|answer| answer.rows.to_string()).unwrap_or_default())?;
        table.field(&answer.map(|one| format!("{:016x}", one.checksum)).unwrap_or_default())?;
        table.field(plans[seen.cell].as_deref().unwrap_or_default())?;
        table.field(match &seen.outcome {
            Outcome::Failed { failure } => failure.as_str(),
            Outcome::Sample(_) => "",
        })?;
        table.end_row()?;
    }
    Ok(())
}

/// Two results, one row for each cell that both have.
pub(crate) fn comparison(compared: &Comparison, to: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new(to);
    table.fields(["cell", "before", "after"])?;
    table.fields(["ratio", "ratio_low", "ratio_high", "p_adjusted", "cpu_ratio", "plan"])?;
    table.end_row()?;
    for one in &compared.lines {
        let ends = one.speedup.and_then(|speedup| speedup.interval);
        table.field(&one.label)?;
        table.fields([one.before.to_string(), one.after.to_string()])?;
        table.fields([
            exact(one.speedup.map(|speedup| speedup.ratio)),
            exact(ends.map(|ends| ends.low)),
            exact(ends.map(|ends| ends.high)),
            exact(one.p_adjusted),
            exact(one.cpu.map(|cpu| cpu.ratio)),
        ])?;
        table.field(one.plan.map(|label| label.text()).unwrap_or_default())?;
        table.end_row()?;
    }
    Ok(())
}

const SAMPLE: [&str; 4] = ["wall_s", "cpu_s", "tuples", "mtuples_per_s"];

const FIGURES: [&str; 10] = [
    "samples",
    "mtuples_per_s",
    "wall_s",
    "cpu_s",
    "is_baseline",
    "ratio",
    "ratio_low",
    "ratio_high",
    "ratio_shown",
    "limit_fraction",
];

fn figures(view: &View<'_>, cell: &Cell) -> [String; 10] {
    let finding = view.finding(cell);
    let value = |name: &str| exact(view.results.value(cell.index, name));
    let interval = finding.ratio.and_then(|ratio| ratio.interval);
    let shown = finding.ratio.map(|ratio| match ratio.shown() {
        Significance::Faster => "faster",
        Significance::Slower => "slower",
        Significance::NoDifference => "no difference",
    });
    [
        finding.samples.to_string(),
        exact(finding.mtuples_per_s),
        value("wall_s"),
        value("cpu_s"),
        finding.is_baseline.to_string(),
        exact(finding.ratio.map(|ratio| ratio.ratio)),
        exact(interval.map(|ends| ends.low)),
        exact(interval.map(|ends| ends.high)),
        shown.unwrap_or_default().to_owned(),
        exact(view.limit_fraction(cell)),
    ]
}

fn exact(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map(|value| value.to_string()).unwrap_or_default()
}

/// A table as it is written.
struct Table<'a> {
    to: &'a mut dyn Write,
    /// Whether the next field is the first of its row.
    is_at_start: bool,
}

impl<'a> Table<'a> {
    fn new(to: &'a mut dyn Write) -> Self {
        Self { to, is_at_start: true }
    }

    /// A spreadsheet runs a text that begins as a formula; OWASP, "CSV Injection".
    fn field(&mut self, field: &str) -> io::Result<()> {
        if !std::mem::take(&mut self.is_at_start) {
            self.to.write_all(b",")?;
        }
        let is_formula =
            field.starts_with(['=', '+', '-', '@', '\t', '\r']) && field.parse::<f64>().is_err();
        let guard = if is_formula { "'" } else { "" };
        if !field.contains([',', '"', '\n', '\r']) {
            return write!(self.to, "{guard}{field}");
        }
        write!(self.to, "\"{guard}")?;
        for (at, part) in field.split('"').enumerate() {
            let quote = if at > 0 { "\"\"" } else { "" };
            write!(self.to, "{quote}{part}")?;
        }
        self.to.write_all(b"\"")
    }

    fn fields<T: AsRef<str>>(&mut self, fields: impl IntoIterator<Item = T>) -> io::Result<()> {
        fields.into_iter().try_for_each(|field| self.field(field.as_ref()))
    }

    /// Names of columns of one kind.
    fn names<'b>(
        &mut self,
        kind: &str,
        names: impl IntoIterator<Item = &'b String>,
    ) -> io::Result<()> {
        names.into_iter().try_for_each(|name| self.field(&format!("{kind}.{name}")))
    }

    fn setting(&mut self, value: Option<&Setting>) -> io::Result<()> {
        match value {
            Some(Setting::Text(text)) => self.field(text),
            Some(other) => self.field(&other.to_string()),
            None => self.field(""),
        }
    }

    fn end_row(&mut self) -> io::Result<()> {
        self.is_at_start = true;
        self.to.write_all(b"\r\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<const N: usize>(fields: [&str; N]) -> String {
        let mut text = Vec::new();
        let mut table = Table::new(&mut text);
        table.fields(fields).and_then(|()| table.end_row()).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn no_text_is_a_formula() {
        let fields = ["=1+cmd|' /C calc'!A0", "@x", "-1.5", "+a,b", "a=b"];
        assert_eq!(row(fields), "'=1+cmd|' /C calc'!A0,'@x,-1.5,\"'+a,b\",a=b\r\n");
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let fields = ["plain", "a,b", "say \"x\"", ""];
        assert_eq!(row(fields), "plain,\"a,b\",\"say \"\"x\"\"\",\r\n");
    }
}
