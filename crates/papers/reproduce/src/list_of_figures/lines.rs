//! The list as a page opens with it: each figure with its two words, or what it describes.

use serde::Serialize;
use workahead_study::verdict::{Judgement, Size};

use super::{Figure, of};
use crate::ledger::entries;
use crate::paper::Paper;
use crate::tables::{FilledTable, PaperTable, Row as TableRow, unjudged, verdict};
use crate::verdicts::{ClaimVerdict, Row, together};

/// One figure or table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// As the document numbers it.
    pub figure: String,
    /// Its caption, short.
    pub title: String,
    /// The experiments that hold it.
    pub rows: Vec<String>,
    /// What it describes, and the rows that carry it, where it shows no result.
    pub description: Option<String>,
    /// Both words by what was measured, and why.
    pub measured: Option<Judgement>,
    /// The same by modelled machines.
    pub modelled: Option<Judgement>,
}

/// What a page has of a paper.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageContents<'a> {
    /// Its rows.
    pub rows: &'a [Row],
    /// Its tables with ours.
    pub tables: &'a [FilledTable],
    /// Whether the page has measured results.
    pub measured: bool,
}

/// Of every figure of a paper.
pub(crate) fn lines(paper: Paper, contents: PageContents<'_>) -> Vec<Line> {
    of(paper.name).iter().map(|figure| line(figure, contents)).collect()
}

fn line(figure: &Figure, contents: PageContents<'_>) -> Line {
    let rows = contents.rows.iter().filter(|row| figure.rows.contains(&row.row)).collect();
    let sources = FigureSources { figure, rows, tables: contents.tables };
    let is_experiment = !figure.rows.is_empty();
    let modelled = !contents.measured || sources.rows.iter().any(|row| row.modelled.is_some());
    Line {
        figure: figure.id.clone(),
        title: figure.title.clone(),
        rows: figure.rows.clone(),
        description: (!is_experiment).then(|| description(figure)),
        measured: (is_experiment && contents.measured).then(|| sources.said(Tier::Measured)),
        modelled: (is_experiment && modelled).then(|| sources.said(Tier::Modelled)),
    }
}

/// `S4.7, Work-ahead set: …; …`.
fn description(figure: &Figure) -> String {
    let rows = figure.describes.iter().map(|row| {
        let entry = entries().iter().find(|entry| entry.row == *row);
        format!("{row}, {}", entry.map_or("", |entry| entry.words.as_str()))
    });
    rows.collect::<Vec<_>>().join("; ")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    Measured,
    Modelled,
}

impl Tier {
    fn has(self, claim: &ClaimVerdict) -> bool {
        claim.is_modelled() == (self == Tier::Modelled)
    }

    /// What the tier says of a row, or why nothing does.
    fn of(self, row: &Row) -> &Judgement {
        match self {
            Tier::Measured => &row.measured,
            Tier::Modelled => row.modelled.as_ref().unwrap_or(&row.measured),
        }
    }
}

/// What holds a figure.
struct FigureSources<'a> {
    figure: &'a Figure,
    rows: Vec<&'a Row>,
    tables: &'a [FilledTable],
}

impl<'a> FigureSources<'a> {
    /// The claims that cite it and the cells of its table, together.
    fn said(&self, tier: Tier) -> Judgement {
        let claims = self.claims(tier).filter(|claim| self.figure.is_cited(&claim.figure));
        let claims: Vec<ClaimVerdict> = claims.cloned().collect();
        let claimed = (!claims.is_empty()).then(|| together(&claims));
        match (claimed, verdict(self.cells(tier))) {
            (Some(claimed), Some(cells)) => Judgement {
                direction: claimed.direction.max(cells.direction),
                size: Size::worst([claimed.size, cells.size]),
                reason: format!("{}; {}", claimed.reason, cells.reason),
            },
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => Judgement::unsaid(self.why_silent(tier)),
        }
    }

    fn claims(&self, tier: Tier) -> impl Iterator<Item = &'a ClaimVerdict> {
        self.rows.iter().flat_map(|row| &row.claims).filter(move |claim| tier.has(claim))
    }

    fn cells(&self, tier: Tier) -> impl Iterator<Item = (&'a PaperTable, &'a TableRow)> {
        let of_tier =
            self.tables.iter().filter(move |one| one.modelled == (tier == Tier::Modelled));
        let rows = of_tier.flat_map(|one| one.table.rows.iter().map(move |row| (&one.table, row)));
        rows.filter(|(table, row)| self.figure.has_cells(&table.id, &row.name))
    }

    fn why_silent(&self, tier: Tier) -> String {
        if let Some(reason) = &self.figure.reason {
            return reason.clone();
        }
        let is_silent = |row: &&&Row| !row.claims.iter().any(|claim| tier.has(claim));
        let silent = self.rows.iter().filter(is_silent);
        let reasons = once(silent.map(|row| tier.of(row).reason.as_str()));
        if !reasons.is_empty() {
            return reasons.join("; ");
        }
        let cells = unjudged(self.cells(tier).map(|(_, row)| row));
        if !cells.is_empty() {
            return cells.join("; ");
        }
        let others = once(self.claims(tier).map(|claim| claim.figure.as_str())).join(", ");
        format!("no claim is about it: those of {} cite {others}", self.figure.rows.join(", "))
    }
}

/// The texts, each once.
fn once<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}
