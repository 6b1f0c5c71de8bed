//! The summary of a run: findings in a short table.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use comfy_table::{CellAlignment, ColumnConstraint, LineStyle, Table, TableStyle};
use workahead_study::cell::Cell;
use workahead_study::label;
use workahead_study::measure::INSTRUCTIONS;
use workahead_study::results::{Finding, Results};
use workahead_study::statistics::{Interval, Ratio, Significance};
use workahead_study::throughput::Unit;

use crate::output;

/// Longer tables are left to the report; here each block then has one row, its fastest cell.
const ROWS_MAX: usize = 40;

/// Characters of a reason in a table.
const REASON_MAX: usize = 60;

/// A line below the header and nothing else: easy on the eyes, and on `grep` and `awk`.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Characters of a line in a cell, and lines: a table pads every line to the longest.
const LINE_MAX: usize = 1_000;
const LINES_MAX: usize = 40;

/// A table as lines: columns without content dropped, no blanks at the end of a line.
pub(crate) fn lines(mut table: Table) -> String {
    for row in table.row_iter_mut() {
        if row.cell_iter().any(|cell| is_long(&cell.content())) {
            let cells: Vec<String> = row.cell_iter().map(|cell| cut(&cell.content())).collect();
            *row = cells.into();
        }
    }
    let columns = table.row_iter().map(|row| row.cell_count()).max().unwrap_or(0);
    let empty = |column: &usize| {
        table
            .row_iter()
            .filter_map(|row| row.cell_iter().nth(*column))
            .all(|c| c.content().is_empty())
    };
    let dropped: Vec<usize> = (0..columns).filter(empty).collect();
    for index in dropped {
        if let Some(column) = table.column_mut(index) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// An empty table with a header, as every `study` command draws it.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE).set_header(header.iter().map(|name| cut(name)));
    table
}

/// Aligns columns to the right, as figures are.
pub(crate) fn right(table: &mut Table, columns: impl IntoIterator<Item = usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn is_long(text: &str) -> bool {
    text.len() > LINE_MAX && (text.lines().count() > LINES_MAX || text.lines().any(is_long_line))
}

fn is_long_line(line: &str) -> bool {
    line.len() > LINE_MAX && line.chars().count() > LINE_MAX
}

fn cut(text: &str) -> String {
    let lines = text.lines().take(LINES_MAX);
    let mut lines: Vec<Cow<'_, str>> = lines.map(|line| label::cut(line, LINE_MAX)).collect();
    if text.lines().nth(LINES_MAX).is_some() {
        lines.push("…".into());
    }
    lines.join("\n")
}

/// Findings, claims of the paper, path of the report.
pub(crate) fn text(results: &Results, report: &Path) -> String {
    let findings = results.findings();
    let [title, question] =
        [&results.spec.title, &results.spec.question].map(|words| output::one_line(words));
    let mut parts = vec![format!("{title}\n{question}")];
    match findings.len() > ROWS_MAX {
        _ if !results.is_timed() => parts.push(counted(results, &findings)),
        true => parts.push(fastest(results, &findings)),
        false => parts.push(all(results, &findings)),
    }
    if !results.spec.claims.is_empty() {
        parts.push(paper(results));
    }
    if !results.is_complete() {
        let (kept, all) = (results.observations.len(), results.run_plan.samples());
        parts.push(format!("not finished: {kept} of {all} samples"));
    }
    parts.extend(remarks_of_all(findings.as_slice()));
    parts.extend(results.disturbance());
    let host = &results.record.host;
    parts.push(match host.is_modelled() {
        true => "Modelled, evidence tier E: nothing was measured".to_owned(),
        false => format!("{}, evidence tier {}", host.name, host.tier),
    });
    parts.push(format!("report: {}", report.display()));
    parts.join("\n\n")
}

fn all(results: &Results, findings: &[Finding]) -> String {
    let axes = shown_axes(results);
    let mut header: Vec<&str> = axes.iter().map(|axis| axis.as_str()).collect();
    let unit = results.unit();
    header.extend([unit.name.as_str(), "× baseline (95 %)", ""]);
    let mut table = table(&header);
    for finding in findings {
        let cell = &results.run_plan.cells[finding.cell];
        let mut row = places(cell, &axes);
        row.extend([throughput(finding, &unit), ratio(finding), remark(finding)]);
        table.add_row(row);
    }
    right(&mut table, axes.len()..axes.len() + 2);
    lines(table)
}

/// Counts of a model per tuple; nothing is timed below an instrumenting tool.
fn counted(results: &Results, findings: &[Finding]) -> String {
    let axes = shown_axes(results);
    let mut header: Vec<&str> = axes.iter().map(|axis| axis.as_str()).collect();
    header.extend(COUNTED.map(|(name, _)| name));
    header.push("");
    let mut table = table(&header);
    for finding in findings.iter().take(ROWS_MAX) {
        let mut row = places(&results.run_plan.cells[finding.cell], &axes);
        let value = |measure| results.value(finding.cell, measure).map(significant);
        row.extend(COUNTED.map(|(_, measure)| value(measure).unwrap_or_default()));
        row.push(remark(finding));
        table.add_row(row);
    }
    right(&mut table, axes.len()..axes.len() + COUNTED.len());
    let more = findings.len().saturating_sub(ROWS_MAX);
    let more = if more > 0 { format!("\nand {more} more in the report") } else { String::new() };
    let each = results.spec.method.tuples.as_str();
    format!("{}{more}\ncounted by a model, for each of the {each}; not timed", lines(table))
}

/// Columns of counts, and their measures.
const COUNTED: [(&str, &str); 5] = [
    ("instructions", INSTRUCTIONS),
    ("data refs", "data_references_per_tuple"),
    ("L1I misses", "l1i_misses_per_tuple"),
    ("L1D misses", "l1d_misses_per_tuple"),
    ("last-level misses", "last_level_misses_per_tuple"),
];

/// One row per block: the fastest cell beside its baseline.
fn fastest(results: &Results, findings: &[Finding]) -> String {
    let axes = shown_axes(results);
    let mut header: Vec<&str> = axes.iter().map(|axis| axis.as_str()).collect();
    let unit = results.unit();
    header.extend([unit.name.as_str(), "× baseline (95 %)", ""]);
    let mut table = table(&header);
    for block in 0..results.run_plan.blocks {
        let of_block = results.run_plan.block(block).iter().map(|cell| &findings[cell.index]);
        let measured = of_block.filter(|finding| finding.mtuples_per_s.is_some());
        let speed = |finding: &&Finding| finding.mtuples_per_s.unwrap_or(0.0);
        let Some(best) = measured.max_by(|a, b| speed(a).total_cmp(&speed(b))) else { continue };
        let mut row = places(&results.run_plan.cells[best.cell], &axes);
        row.extend([throughput(best, &unit), ratio(best), remark(best)]);
        table.add_row(row);
    }
    right(&mut table, axes.len()..axes.len() + 2);
    let table = lines(table);
    let cells = findings.len();
    let failed = findings.iter().filter(|finding| finding.failure.is_some()).count();
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    format!(
        "The fastest of each block ({cells} cells{failed}, all of them in the report):\n{table}"
    )
}

fn paper(results: &Results) -> String {
    let mut table = table(&["row", "the paper", "here", "direction, size"]);
    for verdict in results.verdicts() {
        let claim = &results.spec.claims[verdict.claim];
        table.add_row([
            claim.row.clone(),
            format!("{}: {}", claim.figure, claim.says),
            verdict.judgement.reason.clone(),
            verdict.judgement.words(),
        ]);
    }
    lines(table)
}

/// Axes with more than one value; the others distinguish no cells.
fn shown_axes(results: &Results) -> Vec<&String> {
    let cells = &results.run_plan.cells;
    let varies = |axis: &&String| {
        cells.iter().any(|cell| cell.place.get(*axis) != cells[0].place.get(*axis))
    };
    results.run_plan.axes.iter().filter(varies).collect()
}

fn places(cell: &Cell, axes: &[&String]) -> Vec<String> {
    let value = |axis: &&String| cell.place.get(*axis).map(ToString::to_string);
    axes.iter().map(|axis| value(axis).unwrap_or_default()).collect()
}

fn throughput(finding: &Finding, unit: &Unit) -> String {
    finding.mtuples_per_s.map(|value| significant(unit.scaled(value))).unwrap_or_default()
}

/// Three figures: more would be noise.
pub(crate) fn significant(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn ratio(finding: &Finding) -> String {
    match (finding.is_baseline, finding.ratio) {
        (true, _) => "baseline".to_owned(),
        (false, None) => String::new(),
        (false, Some(Ratio { ratio, interval: None, .. })) => format!("{ratio:.2}"),
        // A model's: it has no interval.
        (false, Some(Ratio { ratio, interval: Some(Interval { low, high }), .. }))
            if low >= high =>
        {
            format!("{ratio:.2}")
        }
        (false, Some(Ratio { ratio, interval: Some(interval), .. })) => {
            format!("{ratio:.2} ({:.2} to {:.2})", interval.low, interval.high)
        }
    }
}

fn remark(finding: &Finding) -> String {
    if let Some(failure) = &finding.failure {
        return format!("failed: {}", short(failure));
    }
    if let Some(why) = &finding.impossible {
        return format!("not here: {}", short(why));
    }
    let shown = finding.ratio.filter(|ratio| ratio.interval.is_some()).map(|ratio| ratio.shown());
    let mut remarks = Vec::new();
    if shown == Some(Significance::NoDifference) {
        remarks.push("no difference shown".to_owned());
    }
    if let (Some(p), Some(_)) = (finding.p_adjusted, finding.ratio) {
        remarks.push(format!("p {p:.3}"));
    }
    remarks.extend(finding.plan.map(|label| label.text().to_owned()));
    remarks.join("; ")
}

/// A reason that fits a column; the whole of a longer one stands under the table.
fn short(reason: &str) -> String {
    let line = reason.lines().next().unwrap_or_default();
    match line.char_indices().nth(REASON_MAX) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None if line.len() < reason.len() => format!("{line} …"),
        None => line.to_owned(),
    }
}

/// Remarks that hold for many cells, each once under the table instead of in every row.
fn remarks_of_all(findings: &[Finding]) -> Option<String> {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in findings.iter().filter_map(|finding| finding.limitation.as_deref()) {
        *reasons.entry(reason).or_default() += 1;
    }
    let line = |(reason, cells): (&str, usize)| format!("{}: {reason}", count(cells, "cell"));
    let mut lines: Vec<String> = reasons.into_iter().map(line).collect();
    for (word, reason) in [
        ("failed", (|finding| finding.failure.as_deref()) as fn(&Finding) -> Option<&str>),
        ("not here", |finding| finding.impossible.as_deref()),
    ] {
        let mut long: BTreeMap<&str, usize> = BTreeMap::new();
        let cut = |reason: &&str| short(reason) != **reason;
        for reason in findings.iter().filter_map(reason).filter(cut) {
            *long.entry(reason).or_default() += 1;
        }
        let line = |(why, cells): (&str, usize)| format!("{}, {word}: {why}", count(cells, "cell"));
        lines.extend(long.into_iter().map(line));
    }
    if findings.iter().any(|finding| finding.p_adjusted.is_some()) {
        lines.push(
            "p: adjusted for all ratios together (Holm 1979); the interval of each decides"
                .to_owned(),
        );
    }
    let overlapping = findings.iter().filter(|finding| {
        finding.ratio.is_some() && finding.overlap.is_some_and(|overlap| !overlap.allows_claim)
    });
    let overlapping = overlapping.count();
    if overlapping > 0 {
        lines.push(format!(
            "mean ± deviation overlap in {}: no claim there by Hassanein's rule",
            count(overlapping, "comparison")
        ));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Seconds for people.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{seconds:.0} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    }
}

/// A number and its noun.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Bytes for people.
pub(crate) fn mebibytes(bytes: u64) -> String {
    match bytes {
        bytes if bytes < 10 << 20 => format!("{} KiB", bytes.div_ceil(1 << 10)),
        bytes => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_stranger_widens_a_table() {
        let mut table = table(&["name", ""]);
        table.add_row(["x".repeat(60_000), "y\n".repeat(900)]);
        let text = lines(table);
        assert!(text.lines().all(|line| line.chars().count() < LINE_MAX + 10), "{}", text.len());
        assert!(text.lines().count() < LINES_MAX + 5);
    }

    #[test]
    fn a_reason_fits_its_column() {
        assert_eq!(short("the server went away"), "the server went away");
        assert_eq!(short("it ended; its log:\n  line"), "it ended; its log: …");
        let long = format!("{} {}", "é".repeat(REASON_MAX - 1), "end");
        assert_eq!(short(&long), format!("{}…", "é".repeat(REASON_MAX - 1)));
    }
}
