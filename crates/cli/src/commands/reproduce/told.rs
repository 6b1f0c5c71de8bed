//! What `workahead reproduce` prints.

use std::path::Path;

use comfy_table::ContentArrangement;
use serde::Serialize;
use workahead_report::{Reproduced, Tabled};
use workahead_study::reproduction::Row;

use super::super::counters::beside;
use super::super::study::summary;
use super::{Args, seeds};

/// One seed for programs.
#[derive(Serialize)]
pub(super) struct Listed {
    seed: &'static str,
    paper: &'static str,
    experiments: usize,
    studies: Vec<&'static str>,
}

pub(super) fn listed() -> Vec<Listed> {
    let listed = seeds().map(|(seed, studies)| Listed {
        seed: seed.name,
        paper: seed.paper,
        experiments: seed.rows().count(),
        studies,
    });
    listed.collect()
}

pub(super) fn list() -> String {
    let mut table = summary::table(&["seed", "paper", "experiments", "studies here"]);
    for one in listed() {
        table.add_row([
            one.seed.to_owned(),
            one.paper.to_owned(),
            one.experiments.to_string(),
            match one.studies.len() {
                0 => "none yet".to_owned(),
                some => some.to_string(),
            },
        ]);
    }
    let table = summary::lines(table);
    format!("{table}\n\n`workahead reproduce SEED --scale small` runs those that fit this machine.")
}

/// One line for every row, and where the page is.
pub(super) fn text(reproduced: &Reproduced, page: &Path) -> String {
    let mut header = vec!["row", "the paper"];
    if reproduced.measured {
        header.extend(["measured", "tier", "verdict"]);
    }
    if reproduced.modelled {
        header.extend(["modelled", "verdict"]);
    }
    let mut table = summary::table(&header);
    for row in &reproduced.rows {
        let mut cells = vec![row.row.clone(), row.words.clone()];
        if reproduced.measured {
            let tier = row.tier.clone().unwrap_or_default();
            cells.extend([row.reason.clone(), tier, row.word.text().to_owned()]);
        }
        if reproduced.modelled {
            let said = row.modelled.as_ref();
            let said = said.map(|said| [said.reason.clone(), said.word.text().to_owned()]);
            cells.extend(said.unwrap_or_else(|| ["–".to_owned(), "–".to_owned()]));
        }
        table.add_row(cells);
    }
    let table = summary::lines(table);
    let (paper, sentence) = (reproduced.paper, &reproduced.sentence);
    let (machine, tier) = (&reproduced.machine, &reproduced.tier);
    let page = page.display();
    let tables: String = reproduced.tables.iter().map(tabled).collect();
    let why = hypotheses(&reproduced.rows);
    format!("{paper}\n{sentence}\n\n{table}\n\n{why}{tables}{machine}. {tier}.\n\nreport: {page}")
}

/// Columns of a table of sentences.
const COLUMNS: u16 = 100;

/// Why ours may disagree, each hypothesis once with the rows that it is about.
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
    let mut table = summary::table(&["disagrees", "why, perhaps"]);
    // Sentences are read on a screen, or not at all.
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(COLUMNS);
    for (hypothesis, of) in found {
        table.add_row([of.join(", ").as_str(), hypothesis]);
    }
    format!("{}\n\n", summary::lines(table))
}

/// One of the paper's tables, each column as printed and then ours.
fn tabled(tabled: &Tabled) -> String {
    let Tabled { table, tier, modelled, verdicts, .. } = tabled;
    let verdicts = match verdicts.is_empty() {
        true => "no experiment of the paper's".to_owned(),
        false => verdicts.join("; "),
    };
    let modelled = if *modelled { "modelled, " } else { "" };
    format!("{}\n  {modelled}tier {tier}; {verdicts}\n\n", beside::whole(table))
}

/// The command that goes on.
pub(super) fn command(args: &Args, out: &Path) -> String {
    let seed = args.seed.as_deref().unwrap_or_default();
    let mut command = format!("workahead reproduce {seed}");
    if let Some(scale) = &args.scale {
        command.push_str(&format!(" --scale {scale}"));
    }
    if let Some(tier) = args.tier {
        command.push_str(&format!(" --tier {}", tier.word()));
    }
    if let Some(repetitions) = args.repetitions {
        command.push_str(&format!(" --repetitions {repetitions}"));
    }
    format!("{command} --out {}", out.display())
}
