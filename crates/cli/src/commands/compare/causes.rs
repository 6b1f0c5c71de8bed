//! Causes as text and as rows of a page.

use serde::Serialize;
use workahead_advise::causes::{Basis, Cause, Causes, ChangedValue, Part, PartChange};
use workahead_advise::time;

use crate::commands::study::summary;
use crate::output::short_line;

/// Other differences beyond this number are counted, not named.
const NAMED_MAX: usize = 20;

/// The contents of the page.
#[derive(Debug, Serialize)]
pub(crate) struct View {
    sentence: String,
    unit: String,
    rows: Vec<Row>,
    parts: Vec<[String; 4]>,
    changed: Vec<ChangedValue>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Row {
    says: String,
    share: String,
    interval: String,
    basis: &'static str,
    parts: Vec<&'static str>,
    evidence: Vec<String>,
    or: Vec<String>,
}

impl View {
    pub(crate) fn of(causes: &Causes) -> View {
        View {
            sentence: causes.sentence.clone(),
            unit: unit(causes).to_owned(),
            rows: causes.causes.iter().map(row).collect(),
            parts: causes.parts.iter().map(part).collect(),
            changed: causes.changed.clone(),
            notes: causes.notes.clone(),
        }
    }
}

fn unit(causes: &Causes) -> &str {
    causes.counted.strip_suffix('s').unwrap_or(&causes.counted)
}

fn row(cause: &Cause) -> Row {
    Row {
        says: cause.says.clone(),
        share: percent(cause.share),
        interval: interval(cause),
        basis: basis(cause.basis),
        parts: cause.parts.iter().map(|part| part.name()).collect(),
        evidence: cause.evidence.clone(),
        or: cause.or.clone(),
    }
}

fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Shown => "shown",
        Basis::Documented => "documented to act on it",
        Basis::Place => "place, not cause",
        Basis::Unexplained => "",
    }
}

fn interval(cause: &Cause) -> String {
    let ends = cause.interval.map(|ends| (percent(ends.low), percent(ends.high)));
    ends.map(|(low, high)| format!("{low} to {high}")).unwrap_or_default()
}

/// `87 %`, `−3 %`.
fn percent(share: f64) -> String {
    // Not −0.
    let share = (100.0 * share).round() + 0.0;
    format!("{share:.0} %").replace('-', "−")
}

fn part(part: &PartChange) -> [String; 4] {
    let change = part.change;
    let difference = time(change.difference_s());
    let difference = match (part.is_shown, change.difference_s() > 0.0) {
        (false, _) => "no change shown".to_owned(),
        (true, true) => format!("+{difference}"),
        (true, false) => difference,
    };
    [part.part.name().to_owned(), time(change.before_s), time(change.after_s), difference]
}

/// The answer as text: the sentence, causes, parts, other differences, notes.
pub(crate) fn text(causes: &Causes) -> String {
    let mut all = vec![short_line(&causes.sentence)];
    if !causes.causes.is_empty() {
        let mut table = summary::table(&["share", "(95 %)", "cause", ""]);
        for cause in &causes.causes {
            let or = cause.or.iter().map(|or| short_line(&format!("or {or}")));
            let evidence = cause.evidence.iter().map(|evidence| short_line(evidence));
            let says = std::iter::once(short_line(&cause.says)).chain(or).chain(evidence);
            table.add_row([
                percent(cause.share),
                interval(cause),
                says.collect::<Vec<_>>().join("\n"),
                basis(cause.basis).to_owned(),
            ]);
        }
        summary::right(&mut table, 0..2);
        all.push(summary::lines(table));
    }
    let header = format!("of a {}", unit(causes));
    let mut table = summary::table(&[&header, "before", "after", "change"]);
    let is_seen = |part: &&PartChange| part.is_shown || part.part != Part::Other;
    causes.parts.iter().filter(is_seen).for_each(|one| {
        table.add_row(part(one));
    });
    summary::right(&mut table, 1..4);
    all.push(summary::lines(table));
    if !causes.changed.is_empty() {
        let line = |one: &ChangedValue| {
            let texts = [&one.name, &one.before, &one.after].map(|text| short_line(text));
            let [name, before, after] = texts;
            format!("  {name}: {before} before, {after} after")
        };
        let mut lines: Vec<String> = causes.changed.iter().take(NAMED_MAX).map(line).collect();
        if let Some(more) = causes.changed.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            lines.push(format!("  and {more} more"));
        }
        all.push(format!("Changed too, with no share known:\n{}", lines.join("\n")));
    }
    all.push(causes.notes.iter().map(|note| short_line(note)).collect::<Vec<_>>().join("\n"));
    all.join("\n\n")
}
