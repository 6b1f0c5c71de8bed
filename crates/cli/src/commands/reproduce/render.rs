//! The output of `workahead reproduce`.

use std::path::Path;

use comfy_table::ContentArrangement;
use serde::Serialize;
use workahead_reproduce::page::{Reproduction, TableSection};
use workahead_reproduce::verdicts::Row;

use super::super::counters::side_by_side;
use super::super::study::summary;
use super::{Args, papers};

/// One paper as JSON.
#[derive(Serialize)]
pub(super) struct PaperEntry {
    paper: &'static str,
    authors: &'static str,
    experiments: usize,
    studies: Vec<&'static str>,
}

pub(super) fn listed() -> Vec<PaperEntry> {
    let listed = papers().map(|(paper, studies)| PaperEntry {
        paper: paper.name,
        authors: paper.authors,
        experiments: paper.rows().count(),
        studies,
    });
    listed.collect()
}

pub(super) fn list() -> String {
    let mut table = summary::table(&["paper", "authors", "experiments", "studies here"]);
    for one in listed() {
        table.add_row([
            one.paper.to_owned(),
            one.authors.to_owned(),
            one.experiments.to_string(),
            match one.studies.len() {
                0 => "none yet".to_owned(),
                some => some.to_string(),
            },
        ]);
    }
    let table = summary::lines(table);
    format!(
        "{table}\n\n`workahead reproduce PAPER --scale small` runs those that fit this machine."
    )
}

/// One line per row, and the path of the page.
pub(super) fn text(reproduction: &Reproduction, page: &Path) -> String {
    let mut header = vec!["row", "the paper"];
    if reproduction.measured {
        header.extend(["measured", "tier", "direction, size"]);
    }
    if reproduction.modelled {
        header.extend(["modelled", "direction, size"]);
    }
    let mut table = summary::table(&header);
    for row in &reproduction.rows {
        let mut cells = vec![row.row.clone(), row.words.clone()];
        if reproduction.measured {
            let tier = row.tier.clone().unwrap_or_default();
            cells.extend([row.measured.reason.clone(), tier, row.measured.words()]);
        }
        if reproduction.modelled {
            cells.extend(match &row.modelled {
                Some(said) => [said.reason.clone(), said.words()],
                // Beside what was measured of it, which has its own reason.
                None if reproduction.measured => ["–".to_owned(), "–".to_owned()],
                None => [row.measured.reason.clone(), row.measured.words()],
            });
        }
        table.add_row(cells);
    }
    let table = summary::lines(table);
    let (authors, sentence) = (reproduction.authors, &reproduction.sentence);
    let (machine, tier) = (&reproduction.machine, &reproduction.tier);
    let page = page.display();
    let tables: String = reproduction.tables.iter().map(section).collect();
    let why = hypotheses(&reproduction.rows);
    format!("{authors}\n{sentence}\n\n{table}\n\n{why}{tables}{machine}. {tier}.\n\nreport: {page}")
}

/// Columns of a table of sentences.
const COLUMNS: u16 = 100;

/// Hypotheses of why ours differ, each once with its rows.
fn hypotheses(rows: &[Row]) -> String {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows {
        for hypothesis in row.claims.iter().filter_map(|claim| claim.hypothesis.as_deref()) {
            match found.iter_mut().find(|(known, _)| *known == hypothesis) {
                Some((_, of)) if of.last() != Some(&row.row.as_str()) => of.push(&row.row),
                Some(_) => {}
                None => found.push((hypothesis, vec![&row.row])),
            }
        }
    }
    if found.is_empty() {
        return String::new();
    }
    let mut table = summary::table(&["differs", "why, perhaps"]);
    // Sentences are wrapped to the screen.
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS);
    for (hypothesis, of) in found {
        table.add_row([of.join(", ").as_str(), hypothesis]);
    }
    format!("{}\n\n", summary::lines(table))
}

/// One of the paper's tables, each column as printed and then ours.
fn section(section: &TableSection) -> String {
    let TableSection { table, tier, modelled, cells, verdicts, .. } = section;
    let cells = cells.iter().map(|cells| format!("{}: {}", cells.words(), cells.reason));
    let said: Vec<String> =
        cells.chain(verdicts.iter().map(|words| format!("claims of {words}"))).collect();
    let said = match said.is_empty() {
        true => "no experiment of the paper's".to_owned(),
        false => said.join("; "),
    };
    let modelled = if *modelled { "modelled, " } else { "" };
    format!("{}\n  {modelled}tier {tier}; {said}\n\n", side_by_side::whole(table))
}

/// The command that resumes.
pub(super) fn command(args: &Args, out: &Path) -> String {
    let paper = args.paper.as_deref().unwrap_or_default();
    let mut command = format!("workahead reproduce {paper}");
    if let Some(scale) = &args.scale {
        command.push_str(&format!(" --scale {scale}"));
    }
    if let Some(tier) = args.tier {
        command.push_str(&format!(" --tier {}", tier.word()));
    }
    for change in &args.change {
        command.push_str(&format!(" --change {change}"));
    }
    if let Some(repetitions) = args.repetitions {
        command.push_str(&format!(" --repetitions {repetitions}"));
    }
    format!("{command} --out {}", out.display())
}
