//! The list as a page opens with it: each figure with its two words, or what it describes.

use serde::Serialize;
use workahead_study::verdict::Judgement;

use super::{Figure, of};
use crate::ledger::entries;
use crate::paper::Paper;
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

/// Of every figure of a paper; `measured`, whether the page has measured results.
pub(crate) fn lines(paper: Paper, rows: &[Row], measured: bool) -> Vec<Line> {
    of(paper.name).iter().map(|figure| line(figure, rows, measured)).collect()
}

fn line(figure: &Figure, rows: &[Row], measured: bool) -> Line {
    let held: Vec<&Row> = rows.iter().filter(|row| figure.rows.contains(&row.row)).collect();
    let is_experiment = !figure.rows.is_empty();
    let modelled = !measured || held.iter().any(|row| row.modelled.is_some());
    Line {
        figure: figure.id.clone(),
        title: figure.title.clone(),
        rows: figure.rows.clone(),
        description: (!is_experiment).then(|| description(figure)),
        measured: (is_experiment && measured).then(|| said(figure, &held, Tier::Measured)),
        modelled: (is_experiment && modelled).then(|| said(figure, &held, Tier::Modelled)),
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

/// The claims that cite a figure, together.
fn said(figure: &Figure, held: &[&Row], tier: Tier) -> Judgement {
    let of_tier = |row: &&Row| row.claims.iter().any(|claim| tier.has(claim));
    let claims = || held.iter().flat_map(|row| &row.claims).filter(|claim| tier.has(claim));
    let cited: Vec<ClaimVerdict> =
        claims().filter(|claim| figure.is_cited(&claim.figure)).cloned().collect();
    if !cited.is_empty() {
        return together(&cited);
    }
    if let Some(reason) = &figure.reason {
        return Judgement::unsaid(reason);
    }
    let silent = held.iter().filter(|row| !of_tier(row));
    let reasons = once(silent.map(|row| tier.of(row).reason.as_str()));
    match reasons.is_empty() {
        false => Judgement::unsaid(reasons.join("; ")),
        true => {
            let others = once(claims().map(|claim| claim.figure.as_str()));
            let (rows, others) = (figure.rows.join(", "), others.join(", "));
            Judgement::unsaid(format!("no claim is about it: those of {rows} cite {others}"))
        }
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
