//! Every table of a paper, filled by the studies that answer its rows.

use workahead_study::results::Results;

use super::modelled::ModelFigures;
use super::results::ResultFigures;
use super::{Figure, PaperTable, Source, fill};
use crate::published::{Configuration, Paper};
use crate::verdicts::StudyRun;

/// A table of a paper with figures of ours.
#[derive(Debug, Clone, PartialEq)]
pub struct FilledTable {
    /// The table.
    pub table: PaperTable,
    /// Whether its figures are modelled.
    pub modelled: bool,
}

/// Every table of a paper with figures of these results, each from the first result that answers
/// one of the table's rows: of those that were counted, and of those that were modelled, with each
/// cell judged. A table that neither fills is there once, with its reasons.
pub fn of_paper(paper: &Paper, ran: &[StudyRun]) -> Vec<FilledTable> {
    let (modelled, measured): (Vec<&StudyRun>, Vec<&StudyRun>) =
        ran.iter().partition(|ran| ran.modelled);
    let measured = answers(&measured, |results| {
        let of = ResultFigures::of(results);
        of.is_counted().then(|| fill(paper, &of))
    });
    let modelled = answers(&modelled, |results| Some(fill(paper, &ModelFigures(results))));
    let empty = fill(paper, &NoFigures("no study here counts it"));
    let mut all = Vec::new();
    for empty in empty {
        let found = |of: &[(&[String], Vec<PaperTable>)]| {
            let answering =
                of.iter().filter(|(ledger, _)| empty.ledger.iter().any(|row| ledger.contains(row)));
            let same =
                |tables: &Vec<PaperTable>| tables.iter().find(|one| one.id == empty.id).cloned();
            answering.filter_map(|(_, tables)| same(tables)).find(PaperTable::has_ours)
        };
        let known = all.len();
        let filled = |table: PaperTable, modelled| {
            let table = table.judged(modelled);
            FilledTable { table, modelled }
        };
        all.extend(found(&measured).map(|table| filled(table, false)));
        all.extend(found(&modelled).map(|table| filled(table, true)));
        if all.len() == known {
            let why = measured
                .iter()
                .find(|(ledger, _)| empty.ledger.iter().any(|row| ledger.contains(row)));
            let why = why.and_then(|(_, tables)| tables.iter().find(|one| one.id == empty.id));
            all.push(FilledTable { table: why.cloned().unwrap_or(empty), modelled: false });
        }
    }
    all
}

/// A paper's tables by each result that has figures, with the rows of the ledger it answers.
fn answers<'r>(
    ran: &[&'r StudyRun],
    tables: impl Fn(&'r Results) -> Option<Vec<PaperTable>>,
) -> Vec<(&'r [String], Vec<PaperTable>)> {
    let each = |ran: &&'r StudyRun| {
        let results = ran.outcome.as_ref().ok()?;
        Some((ran.ledger.as_slice(), tables(results)?))
    };
    ran.iter().filter_map(each).collect()
}

/// No figures, and why.
struct NoFigures(&'static str);

impl Source for NoFigures {
    fn figure(&self, _: &str, _: &Configuration) -> Result<Figure, String> {
        Err(self.0.to_owned())
    }
}

#[cfg(test)]
mod tests;
