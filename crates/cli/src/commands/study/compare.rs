//! `workahead study compare`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use serde::Serialize;
use workahead_advise::causes::Causes;
use workahead_study::comparison::{Comparison, Difference, Line};
use workahead_study::measure::THROUGHPUT;
use workahead_study::results::Results;
use workahead_study::statistics::{Significance, UnpairedComparison};
use workahead_study::throughput::Unit;

use super::summary;
use crate::commands::compare;
use crate::output;

/// Cells of one result only beyond this number are counted, not named.
const NAMED_MAX: usize = 6;

const EXAMPLES: &str = "\
Examples:
  workahead study compare workahead-results/quick workahead-results/quick-2
  workahead study compare before after --html change.html

The runs are not paired: whatever else differs between them is in the ratios, and is named.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Directory of the first result
    pub(crate) before: PathBuf,
    /// Directory of the second: of the same study, or of one with cells of the same settings
    pub(crate) after: PathBuf,
    /// Where the page goes [default: compare.html in the second directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct Facts<'a> {
    before: &'a PathBuf,
    after: &'a PathBuf,
    html: &'a PathBuf,
    paired: bool,
    #[serde(flatten)]
    compared: &'a Comparison,
    /// Of the clearest change.
    causes: Option<&'a Causes>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let before = Results::load(&args.before)?;
    let after = Results::load(&args.after)?;
    for (dir, results) in [(&args.before, &before), (&args.after, &after)] {
        if !results.is_timed() {
            bail!(
                "{} was counted under valgrind and has no times to compare: read the reports of \
                 both side by side",
                dir.display()
            );
        }
    }
    let compared = Comparison::of(&before, &after);
    if compared.lines.is_empty() {
        bail!(
            "{} ({}) and {} ({}) have no cell in common: compare two results of one study",
            args.before.display(),
            before.record.study,
            args.after.display(),
            after.record.study
        );
    }
    let causes = causes((&before, &after), &compared);
    let view = causes.as_ref().map(compare::View::of);
    let page = workahead_report::render_comparison(&before, &after, &compared, view.as_ref())?;
    let html = compare::keep_page(args.html.as_deref(), &args.after, &page)?;
    let facts = Facts {
        before: &args.before,
        after: &args.after,
        html: &html,
        paired: false,
        compared: &compared,
        causes: causes.as_ref(),
    };
    output::show(args.json, &facts, || {
        let mut text = text((&before, &after), &compared);
        if let Some(causes) = &causes {
            text = format!("{text}\n\n{}", compare::text(causes));
        }
        format!("{text}\n\nreport: {}", html.display())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Of the clearest change: none where there is none, or a model has neither time nor chance.
fn causes((before, after): (&Results, &Results), compared: &Comparison) -> Option<Causes> {
    let line = workahead_report::clearest(compared)?;
    if before.record.host.is_modelled() || after.record.host.is_modelled() {
        return None;
    }
    let causes = Causes::of_cells((before, line.before), (after, line.after)).ok()?;
    causes.is_shown.then_some(causes)
}

fn text((before, after): (&Results, &Results), compared: &Comparison) -> String {
    let unit = workahead_report::comparison_unit(before, after);
    let header = ["cell", &unit.name, "after", "after over before (95 %)", "p", ""];
    let mut table = summary::table(&header);
    for line in compared.lines.iter().filter(|line| line.speedup.is_some()) {
        table.add_row(row(line, (before, after), &unit));
    }
    summary::right(&mut table, 1..4);
    let [sentence, tally] = workahead_report::comparison_in_words(compared);
    let sentence = output::one_line(&sentence);
    let mut parts = vec![format!("{sentence}\n{tally}"), summary::lines(table)];
    if !compared.differences.is_empty() {
        let lines: Vec<String> = compared.differences.iter().map(difference).collect();
        parts.push(format!("Other differences:\n{}", lines.join("\n")));
    }
    parts.extend(absent(compared));
    parts.extend(only("before", &compared.only_before));
    parts.extend(only("after", &compared.only_after));
    parts.join("\n\n")
}

fn difference(one: &Difference) -> String {
    let [name, before, after] =
        [&one.name, &one.before, &one.after].map(|text| output::short_line(text));
    format!("  {name}: {before} before, {after} after")
}

/// Cells without a figure in one of the results, by reason.
fn absent(compared: &Comparison) -> Option<String> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in compared.lines.iter().filter_map(|line| line.missing.as_deref()) {
        *reasons.entry(reason).or_default() += 1;
    }
    let line = |(reason, cells): (&str, usize)| {
        format!("  {}: {}", summary::count(cells, "cell"), output::short_line(reason))
    };
    let lines: Vec<String> = reasons.into_iter().map(line).collect();
    (!lines.is_empty()).then(|| format!("Without a figure:\n{}", lines.join("\n")))
}

fn only(when: &str, cells: &[String]) -> Option<String> {
    let named = cells.iter().take(NAMED_MAX).map(|cell| output::one_line(cell));
    let named = named.collect::<Vec<_>>().join("; ");
    let more = match cells.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!cells.is_empty()).then(|| format!("Only {when}: {named}{more}"))
}

fn row(line: &Line, (before, after): (&Results, &Results), unit: &Unit) -> [String; 6] {
    let figure = |results: &Results, cell: usize| {
        let value = results.value(cell, THROUGHPUT);
        value.map(|value| summary::significant(unit.scaled(value))).unwrap_or_default()
    };
    let p = line.p_adjusted.map(|p| format!("{p:.3}")).unwrap_or_default();
    let shown = line.speedup.and_then(|one| match (one.interval, one.shown()) {
        (None, _) => Some("one sample only".to_owned()),
        (Some(_), Significance::NoDifference) => Some("no difference shown".to_owned()),
        (Some(_), _) => None,
    });
    let remarks = [shown, line.plan.map(|label| label.text().to_owned())];
    [
        output::one_line(&line.label),
        figure(before, line.before),
        figure(after, line.after),
        line.speedup.map(ratio).unwrap_or_default(),
        p,
        remarks.into_iter().flatten().collect::<Vec<_>>().join("; "),
    ]
}

fn ratio(one: UnpairedComparison) -> String {
    match one.interval {
        None => format!("{:.2}", one.ratio),
        Some(ends) => format!("{:.2} ({:.2} to {:.2})", one.ratio, ends.low, ends.high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_setting_has_lines_that_pass_for_ours() {
        let long = "x".repeat(1 << 20);
        let one = Difference {
            name: "sql".to_owned(),
            before: "select 1\n\nreport: /tmp/other.html".to_owned(),
            after: long,
        };
        let line = difference(&one);
        let wanted = "  sql: select 1 report: /tmp/other.html before, xxx";
        assert!(line.starts_with(wanted) && line.ends_with("xx… after"), "{}", line.len());
        assert!(!line.contains('\n') && line.chars().count() < output::CHARS_MAX + 100);
        let named = only("after", &["a\nb".to_owned(), "c".to_owned()]);
        assert_eq!(named.as_deref(), Some("Only after: a b; c"));
    }
}
