//! The cells as CSV (RFC 4180), one row each, for spreadsheets; unrounded, empty where unknown.
//!
//! Beside it every sample, one row each, as `observations.parquet` has them; plans by their
//! fingerprints.

use std::collections::BTreeSet;

use workahead_study::cell::Cell;
use workahead_study::comparison::Comparison;
use workahead_study::observation::Outcome;
use workahead_study::plans::PlanText;
use workahead_study::results::Results;
use workahead_study::statistics::Significance;

use crate::view::View;

/// Every cell, with a line of names first.
pub(crate) fn csv(results: &Results) -> String {
    let view = View::of(results);
    let settings: BTreeSet<&String> =
        view.cells().iter().flat_map(|cell| cell.settings.keys()).collect();
    let measures = results.measures();
    let mut names: Vec<String> = ["study", "cell", "block"].map(str::to_owned).into();
    names.extend(settings.iter().map(|name| format!("setting.{name}")));
    names.extend(FIGURES.map(str::to_owned));
    names.extend(measures.iter().map(|name| format!("measure.{name}")));
    names.extend(["tier", "failure", "limitation", "impossible"].map(str::to_owned));
    let mut text = line(&names);
    for cell in view.cells() {
        let mut fields =
            vec![results.record.study.clone(), cell.index.to_string(), cell.block.to_string()];
        let setting = |name: &&String| cell.get(name).map(ToString::to_string).unwrap_or_default();
        fields.extend(settings.iter().map(setting));
        fields.extend(figures(&view, cell));
        fields.extend(measures.iter().map(|name| exact(results.value(cell.index, name))));
        let finding = view.finding(cell);
        fields.push(if view.is_modelled() {
            "E".to_owned()
        } else {
            results.record.host.tier.clone()
        });
        fields.push(finding.failure.clone().unwrap_or_default());
        fields.push(finding.limitation.clone().unwrap_or_default());
        fields.push(finding.impossible.clone().unwrap_or_default());
        text.push_str(&line(&fields));
    }
    text
}

/// Every sample and failure, with a line of names first.
pub(crate) fn samples(results: &Results) -> String {
    let cells = &results.run_plan.cells;
    let settings: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.settings.keys()).collect();
    let measures = results.measures();
    let mut names: Vec<String> =
        ["cell", "block", "repetition", "slot", "unix_ms", "protocol"].map(str::to_owned).into();
    names.extend(settings.iter().map(|name| format!("setting.{name}")));
    names.extend(SAMPLE.map(str::to_owned));
    names.extend(measures.iter().map(|name| format!("measure.{name}")));
    names.extend(
        ["answer_rows", "answer_checksum", "plan_fingerprint", "failure"].map(str::to_owned),
    );
    let fingerprint = |cell: &Cell| results.plan_of(cell.index).map(PlanText::fingerprint);
    let plans: Vec<Option<String>> = cells.iter().map(fingerprint).collect();
    let mut text = line(&names);
    for seen in &results.observations {
        let cell = &cells[seen.cell];
        let mut fields: Vec<String> = vec![
            seen.cell.to_string(),
            cell.block.to_string(),
            seen.repetition.to_string(),
            seen.slot.to_string(),
            seen.unix_ms.to_string(),
            cell.protocol.start.name().to_owned(),
        ];
        let setting = |name: &&String| cell.get(name).map(ToString::to_string).unwrap_or_default();
        fields.extend(settings.iter().map(setting));
        fields.extend(SAMPLE.map(|name| match (name, seen.sample()) {
            ("tuples", sample) => sample.map(|one| one.tuples.to_string()).unwrap_or_default(),
            (name, _) => exact(results.measure(seen, name)),
        }));
        fields.extend(measures.iter().map(|name| exact(seen.measure(name))));
        let answer = seen.sample().map(|sample| sample.answer);
        fields.push(answer.map(|answer| answer.rows.to_string()).unwrap_or_default());
        fields.push(answer.map(|answer| format!("{:016x}", answer.checksum)).unwrap_or_default());
        fields.push(plans[seen.cell].clone().unwrap_or_default());
        fields.push(match &seen.outcome {
            Outcome::Failed { failure } => failure.clone(),
            Outcome::Sample(_) => String::new(),
        });
        text.push_str(&line(&fields));
    }
    text
}

/// Two results, one row for each cell that both have.
pub(crate) fn comparison(compared: &Comparison) -> String {
    let names = ["cell", "ratio", "ratio_low", "ratio_high", "p_adjusted", "cpu_ratio", "plan"];
    let mut text = line(&names.map(str::to_owned));
    for one in &compared.lines {
        let ends = one.speedup.and_then(|speedup| speedup.interval);
        text.push_str(&line(&[
            one.label.clone(),
            exact(one.speedup.map(|speedup| speedup.ratio)),
            exact(ends.map(|ends| ends.low)),
            exact(ends.map(|ends| ends.high)),
            exact(one.p_adjusted),
            exact(one.cpu.map(|cpu| cpu.ratio)),
            one.plan.map(|label| label.text().to_owned()).unwrap_or_default(),
        ]));
    }
    text
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

fn line(fields: &[String]) -> String {
    let quoted: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
    format!("{}\r\n", quoted.join(","))
}

/// A spreadsheet runs a text that begins as a formula; OWASP, "CSV Injection".
fn quoted(field: &str) -> String {
    let formula =
        field.starts_with(['=', '+', '-', '@', '\t', '\r']) && field.parse::<f64>().is_err();
    let guarded = if formula { format!("'{field}") } else { field.to_owned() };
    let field = guarded.as_str();
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_a_formula() {
        let fields = ["=1+cmd|' /C calc'!A0", "@x", "-1.5", "+a,b", "a=b"].map(str::to_owned);
        assert_eq!(line(&fields), "'=1+cmd|' /C calc'!A0,'@x,-1.5,\"'+a,b\",a=b\r\n");
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let fields = ["plain", "a,b", "say \"x\"", ""].map(str::to_owned);
        assert_eq!(line(&fields), "plain,\"a,b\",\"say \"\"x\"\"\",\r\n");
    }
}
