//! `workahead counters papers`: our arithmetic on the figures that the papers print.

use std::process::ExitCode;

use serde::Serialize;
use workahead_reproduce::chang;
use workahead_reproduce::published::{
    self, Agreement, Contradiction, Nature, RecomputedFigure, contradictions, derived,
};

use super::super::study::summary;
use super::render;
use crate::errors::WrongUse;
use crate::output;

const HELP: &str = "\
Examples:
  workahead counters papers                all of it
  workahead counters papers A17 A20        the breakdown of CPI, the mixture by time
  workahead counters papers --json

A printed figure is anything that rounds to it. *Same* rounds to what is printed; *within rounding*
might, were its inputs not rounded themselves; whatever else differs can't be right in both places.
Nothing is measured here.";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Only these rows of the ledger (docs/ledger.toml)
    #[arg(value_name = "ROW")]
    rows: Vec<String>,
    /// Print JSON for programs
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Facts {
    papers: Vec<OfPaper>,
    contradictions: Vec<Contradiction>,
}

/// A paper's figures, recomputed.
#[derive(Serialize)]
struct OfPaper {
    paper: String,
    figures: Vec<Figure>,
}

#[derive(Serialize)]
struct Figure {
    #[serde(flatten)]
    derived: RecomputedFigure,
    /// The printed figure in words; the same as `printed`, which is by kind.
    prints: Option<String>,
    difference: Option<f64>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let facts = facts(&args.rows)?;
    output::show(args.json, &facts, || text(&facts))?;
    Ok(ExitCode::SUCCESS)
}

fn facts(rows: &[String]) -> anyhow::Result<Facts> {
    // Experiments of Hassanein et al. are E0 and S0 of the ledger.
    let (hassanein, keeton): (Vec<RecomputedFigure>, Vec<RecomputedFigure>) = derived()
        .into_iter()
        .partition(|of| of.row.starts_with("E0.") || of.row.starts_with("S0."));
    let papers = [
        (published::keeton().name().to_owned(), keeton),
        (published::hassanein().name().to_owned(), hassanein),
        ("Chang 2013".to_owned(), chang::recomputed()),
    ];
    let contradictions = contradictions();
    let known = || {
        let of_papers = papers.iter().flat_map(|(_, derived)| derived).map(|of| of.row);
        of_papers.chain(contradictions.iter().map(|of| of.row))
    };
    if let Some(row) = rows.iter().find(|row| known().all(|known| known != row.as_str())) {
        let mut all: Vec<&str> = known().collect();
        all.sort_unstable();
        all.dedup();
        return Err(WrongUse::error(format!(
            "nothing is recomputed for row `{row}`: there are {}",
            all.join(", ")
        )));
    }
    let is_requested = |row: &str| rows.is_empty() || rows.iter().any(|requested| requested == row);
    let of_paper = |(paper, derived): (String, Vec<RecomputedFigure>)| OfPaper {
        paper,
        figures: derived.into_iter().filter(|of| is_requested(of.row)).map(figure).collect(),
    };
    let papers = papers.into_iter().map(of_paper).filter(|of| !of.figures.is_empty()).collect();
    let contradictions = contradictions.into_iter().filter(|of| is_requested(of.row)).collect();
    Ok(Facts { papers, contradictions })
}

fn figure(derived: RecomputedFigure) -> Figure {
    let prints = derived.printed.map(|printed| printed.to_string());
    Figure { prints, difference: derived.difference(), derived }
}

fn text(facts: &Facts) -> String {
    let mut parts: Vec<String> = facts.papers.iter().map(of_paper).collect();
    if !facts.contradictions.is_empty() {
        parts.push(of_contradictions(&facts.contradictions));
    }
    parts.join("\n\n")
}

fn of_paper(of: &OfPaper) -> String {
    let header = ["row", "printed", "computed", "difference", "verdict", "what"];
    let mut table = summary::table(&header);
    for Figure { derived, prints, difference } in &of.figures {
        table.add_row([
            derived.row.to_owned(),
            prints.clone().unwrap_or_default(),
            render::figure(derived.ours),
            difference.map(render::signed).unwrap_or_default(),
            verdict(derived).to_owned(),
            // Last, as it may be longer than a line.
            derived.says.clone(),
        ]);
    }
    summary::right(&mut table, 1..4);
    format!("{}\n{}", of.paper, summary::lines(table))
}

fn verdict(derived: &RecomputedFigure) -> &'static str {
    match (derived.agreement, derived.nature) {
        (Agreement::Same, _) => "same",
        (Agreement::WithinRounding, _) => "within rounding",
        (Agreement::NothingPrinted, _) => "nothing printed",
        (Agreement::Disagrees, nature) => kind(nature),
    }
}

fn kind(nature: Nature) -> &'static str {
    match nature {
        Nature::Identity => "a slip of the paper",
        Nature::Estimate => "its error of measuring",
        Nature::Words => "text against table",
    }
}

fn of_contradictions(contradictions: &[Contradiction]) -> String {
    let mut table = summary::table(&["row", "printed", "the other figures give", "kind", "what"]);
    for of in contradictions {
        let note = of.note.map(|note| format!("; {note}")).unwrap_or_default();
        table.add_row([
            of.row.to_owned(),
            of.text_says.clone(),
            of.table_says.clone(),
            kind(of.nature).to_owned(),
            format!("{}{note}", of.place),
        ]);
    }
    format!("Where a paper contradicts itself\n{}", summary::lines(table))
}
