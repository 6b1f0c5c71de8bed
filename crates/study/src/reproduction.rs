//! A seed's experiments against what was found here: one verdict a row.
//!
//! ```text
//! row of the ledger ──► claims of the seed's studies with that row ──► a verdict each ──► one word
//!                  └──► no study: why, and *cannot be said here*
//! ```
//!
//! A row that the paper only draws gets a verdict on the direction alone (D12): its size was never
//! printed, and reading it off a picture would be inventing it.

use serde::Serialize;

use crate::ledger::{Entry, Seed};
use crate::results::Results;
use crate::verdict::{self, Word};

/// A study of the seed: its result, or why there is none.
#[derive(Debug)]
pub struct Ran {
    /// Id of the study.
    pub study: String,
    /// Its result, or why there is none.
    pub outcome: Result<Results, String>,
    /// Rows of the ledger that it answers.
    pub ledger: Vec<String>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its name in the ledger.
    pub row: String,
    /// What the paper found, in our words.
    pub words: String,
    /// One of three words.
    pub word: Word,
    /// Why.
    pub reason: String,
    /// Every claim that the row was judged by.
    pub claims: Vec<Judged>,
}

/// One claim of a study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// Id of the study.
    pub study: String,
    /// Figure or table of the paper.
    pub figure: String,
    /// The paper, short.
    pub says: String,
    /// The paper's ratio, where it prints one.
    pub paper_ratio: Option<f64>,
    /// Evidence tier of ours.
    pub tier: String,
    /// The word.
    pub word: Word,
    /// Ours, and why the word.
    pub reason: String,
}

/// All rows of a seed.
pub fn rows(seed: Seed, ran: &[Ran]) -> Vec<Row> {
    seed.rows().map(|entry| row(entry, ran)).collect()
}

fn row(entry: &Entry, ran: &[Ran]) -> Row {
    let claims: Vec<Judged> = ran.iter().flat_map(|study| judged(entry, study)).collect();
    let (word, reason) = match claims.is_empty() {
        true => (Word::CannotBeSaidHere, silent(entry, ran)),
        false => {
            let words: Vec<(Word, String)> =
                claims.iter().map(|claim| (claim.word, claim.reason.clone())).collect();
            verdict::together_as(&words, "claims")
        }
    };
    Row { row: entry.row.clone(), words: entry.words.clone(), word, reason, claims }
}

fn judged(entry: &Entry, ran: &Ran) -> Vec<Judged> {
    let Ok(results) = &ran.outcome else { return Vec::new() };
    let verdicts = match entry.is_curve_only() {
        true => results.verdicts_of_direction(),
        false => results.verdicts(),
    };
    let of_row = verdicts.into_iter().filter_map(|verdict| {
        let claim = &results.spec.paper[verdict.claim];
        (claim.row == entry.row).then(|| Judged {
            study: ran.study.clone(),
            figure: claim.figure.clone(),
            says: claim.says.clone(),
            paper_ratio: claim.ratio.filter(|_| !entry.is_curve_only()),
            tier: verdict.tier,
            word: verdict.word,
            reason: verdict.reason,
        })
    });
    of_row.collect()
}

/// Why nothing can be said of a row that no claim is about.
fn silent(entry: &Entry, ran: &[Ran]) -> String {
    let of_row = |ran: &&Ran| ran.ledger.contains(&entry.row);
    match ran.iter().find(of_row) {
        Some(Ran { study, outcome: Err(why), .. }) => format!("{study}: {why}"),
        Some(Ran { study, outcome: Ok(_), .. }) => {
            format!("{study} shows it, and the paper gives nothing to judge it by")
        }
        None => entry.unanswered(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Mock};

    const STUDY: &str = "title = 't'\nquestion = 'q'\nengine = 'mock'\n\
        ledger = ['E0.4', 'E0.14', 'E0.18']\nworkload = { rows = 1000 }\n\
        [[cases]]\nname = 'off'\n[[cases]]\nname = 'on'\nspeed = 1.2\n\
        [method]\nrepetitions = 4\nbaseline = { case = 'off' }\n\
        [[paper]]\nrow = 'E0.4'\nfigure = 'Fig. 3a'\nwhere = { case = 'on' }\n\
        ratio = 1.16\nsays = 'faster'\n\
        [[paper]]\nrow = 'E0.14'\nfigure = 'Fig. 8'\nwhere = { case = 'on' }\n\
        ratio = 0.9\nsays = 'slower'\n\
        [[paper]]\nrow = 'E0.18'\nfigure = 'Fig. 12'\nwhere = { case = 'on' }\n\
        ratio = 9.0\nsays = 'up'\n";

    #[test]
    fn every_row_gets_one_of_three_words() {
        let dir = tempfile::tempdir().unwrap();
        let results = testing::results(dir.path(), STUDY, &mut Mock::new());
        let ledger = results.spec.ledger.clone();
        let ran = [Ran { study: "demo".to_owned(), outcome: Ok(results), ledger }];
        let rows = rows(Seed::find("hassanein").unwrap(), &ran);
        assert_eq!(rows.len(), 24);
        let word = |name: &str| rows.iter().find(|row| row.row == name).unwrap();
        assert_eq!(word("E0.4").word, Word::Agrees);
        assert_eq!(word("E0.14").word, Word::Disagrees);
        // Drawn only: the side of 1 decides, whatever size a study puts there.
        assert_eq!(word("E0.18").word, Word::Agrees, "{:?}", word("E0.18"));
        assert_eq!(word("E0.18").claims[0].paper_ratio, None);
        assert_eq!(word("E0.6").word, Word::CannotBeSaidHere);
        assert_eq!(word("E0.6").reason, "it takes hardware counters");
    }

    #[test]
    fn a_study_that_could_not_run_says_why_for_its_rows() {
        let ran = [Ran {
            study: "hassanein/speedup".to_owned(),
            outcome: Err("PostgreSQL is not installed".to_owned()),
            ledger: vec!["E0.4".to_owned()],
        }];
        let rows = rows(Seed::find("hassanein").unwrap(), &ran);
        let row = rows.iter().find(|row| row.row == "E0.4").unwrap();
        assert_eq!(row.reason, "hassanein/speedup: PostgreSQL is not installed");
        assert_eq!(row.word, Word::CannotBeSaidHere);
    }
}
