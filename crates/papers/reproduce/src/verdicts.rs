//! A paper's experiments against what was found here: one verdict a row.
//!
//! ```text
//! row of the ledger ──► claims of its studies with that row ──► a verdict each ──► one word
//!                  └──► no study: why, and *cannot be said here*
//! ```
//!
//! A row that the paper only draws gets a verdict on the direction alone (D12): its size was never
//! printed, and reading it off a picture would be inventing it.

use serde::Serialize;
use workahead_study::results::Results;
use workahead_study::verdict::{self, Word};

use crate::ledger::Entry;
use crate::paper::Paper;

/// A study of a paper: its result, or why there is none.
#[derive(Debug)]
pub struct StudyRun {
    /// Id of the study.
    pub study: String,
    /// Its result, or why there is none.
    pub outcome: Result<Results, String>,
    /// Rows of the ledger that it answers.
    pub ledger: Vec<String>,
    /// Whether it is of a modelled machine.
    pub modelled: bool,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its name in the ledger.
    pub row: String,
    /// What the paper found, in our words.
    pub words: String,
    /// One of three words, by what was measured.
    pub word: Word,
    /// Why.
    pub reason: String,
    /// Evidence tier of what was measured, if anything was.
    pub tier: Option<String>,
    /// The same by modelled machines, where a study of the row has one.
    pub modelled: Option<Judgement>,
    /// Every claim that the row was judged by.
    pub claims: Vec<ClaimVerdict>,
}

/// One of three words, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// The word.
    pub word: Word,
    /// Why.
    pub reason: String,
}

/// One claim of a study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimVerdict {
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
    /// Why ours may disagree, where it does and the study says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hypothesis: Option<String>,
}

/// All rows of a paper.
pub fn rows(paper: Paper, ran: &[StudyRun]) -> Vec<Row> {
    paper.rows().map(|entry| row(entry, ran)).collect()
}

fn row(entry: &Entry, ran: &[StudyRun]) -> Row {
    let (modelled, measured): (Vec<&StudyRun>, Vec<&StudyRun>) =
        ran.iter().partition(|ran| ran.modelled);
    let (word, reason, mut claims) = match said(entry, &measured) {
        (Some(Judgement { word, reason }), claims) => (word, reason, claims),
        (None, claims) => (Word::CannotBeSaidHere, unanswered(entry, &modelled), claims),
    };
    let tier = claims.first().map(|claim| claim.tier.clone());
    let (modelled, more) = said(entry, &modelled);
    claims.extend(more);
    let (row, words) = (entry.row.clone(), entry.words.clone());
    Row { row, words, word, reason, tier, modelled, claims }
}

/// What studies say of a row together; nothing if none of them is about it.
fn said(entry: &Entry, ran: &[&StudyRun]) -> (Option<Judgement>, Vec<ClaimVerdict>) {
    let claims: Vec<ClaimVerdict> = ran.iter().flat_map(|study| judged(entry, study)).collect();
    if claims.is_empty() {
        let reason = silent(entry, ran);
        return (reason.map(|reason| Judgement { word: Word::CannotBeSaidHere, reason }), claims);
    }
    let words: Vec<(Word, String)> =
        claims.iter().map(|claim| (claim.word, claim.reason.clone())).collect();
    let (word, reason) = verdict::together_as(&words, "claims");
    (Some(Judgement { word, reason }), claims)
}

/// Why nothing measured answers a row.
fn unanswered(entry: &Entry, modelled: &[&StudyRun]) -> String {
    match modelled.iter().any(|ran| ran.ledger.contains(&entry.row)) {
        true => "no study measures it".to_owned(),
        false => entry.unanswered(),
    }
}

fn judged(entry: &Entry, ran: &StudyRun) -> Vec<ClaimVerdict> {
    let Ok(results) = &ran.outcome else { return Vec::new() };
    let verdicts = match entry.is_curve_only() {
        true => results.verdicts_of_direction(),
        false => results.verdicts(),
    };
    let of_row = verdicts.into_iter().filter_map(|verdict| {
        let claim = &results.spec.paper[verdict.claim];
        (claim.row == entry.row).then(|| ClaimVerdict {
            study: ran.study.clone(),
            figure: claim.figure.clone(),
            says: claim.says.clone(),
            paper_ratio: claim.ratio.filter(|_| !entry.is_curve_only()),
            tier: verdict.tier,
            hypothesis: claim.hypothesis.clone().filter(|_| verdict.word == Word::Disagrees),
            word: verdict.word,
            reason: verdict.reason,
        })
    });
    of_row.collect()
}

/// Why nothing can be said of a row that these studies are about without a claim.
fn silent(entry: &Entry, ran: &[&StudyRun]) -> Option<String> {
    let StudyRun { study, outcome, .. } = ran.iter().find(|ran| ran.ledger.contains(&entry.row))?;
    Some(match outcome {
        Err(why) => format!("{study}: {why}"),
        Ok(_) => format!("{study} shows it, and the paper gives nothing to judge it by"),
    })
}

#[cfg(test)]
mod tests {
    use workahead_study::testing::{self, Mock};

    use super::*;

    const STUDY: &str = "title = 't'\nquestion = 'q'\nengine = 'mock'\n\
        ledger = ['E0.4', 'E0.14', 'E0.18']\nworkload = { rows = 1000 }\n\
        [[cases]]\nname = 'off'\n[[cases]]\nname = 'on'\nspeed = 1.2\n\
        [method]\nrepetitions = 4\nbaseline = { case = 'off' }\n\
        [[paper]]\nrow = 'E0.4'\nfigure = 'Fig. 3a'\nwhere = { case = 'on' }\n\
        ratio = 1.16\nsays = 'faster'\nhypothesis = 'unused'\n\
        [[paper]]\nrow = 'E0.14'\nfigure = 'Fig. 8'\nwhere = { case = 'on' }\n\
        ratio = 0.9\nsays = 'slower'\nhypothesis = 'a larger cache'\n\
        [[paper]]\nrow = 'E0.18'\nfigure = 'Fig. 12'\nwhere = { case = 'on' }\n\
        ratio = 9.0\nsays = 'up'\n";

    fn of(outcome: Result<Results, String>, ledger: Vec<String>) -> StudyRun {
        StudyRun { study: "demo".to_owned(), outcome, ledger, modelled: false }
    }

    /// What is modelled stands beside what is measured, and neither speaks for the other.
    #[test]
    fn models_have_a_word_of_their_own() {
        let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let slower = STUDY.replace("speed = 1.2", "speed = 0.8");
        let results = [STUDY, &slower];
        let [measured, modelled] = [0, 1].map(|at| {
            let results = testing::results(dirs[at].path(), results[at], &mut Mock::new());
            let ledger = results.spec.ledger.clone();
            StudyRun { modelled: at == 1, ..of(Ok(results), ledger) }
        });
        let hassanein = Paper::find("hassanein").unwrap();
        let words = |ran: &[StudyRun]| {
            let rows = rows(hassanein, ran);
            let row = rows.into_iter().find(|row| row.row == "E0.4").unwrap();
            (row.word, row.modelled.map(|said| said.word), row.reason)
        };
        let both = [measured, modelled];
        let (word, beside, _) = words(&both);
        assert_eq!((word, beside), (Word::Agrees, Some(Word::Disagrees)));
        let [_, modelled] = both;
        let (word, beside, reason) = words(&[modelled]);
        assert_eq!((word, beside), (Word::CannotBeSaidHere, Some(Word::Disagrees)));
        assert_eq!(reason, "no study measures it");
    }

    #[test]
    fn every_row_gets_one_of_three_words() {
        let dir = tempfile::tempdir().unwrap();
        let results = testing::results(dir.path(), STUDY, &mut Mock::new());
        let ledger = results.spec.ledger.clone();
        let ran = [of(Ok(results), ledger)];
        let rows = rows(Paper::find("hassanein").unwrap(), &ran);
        assert_eq!(rows.len(), 24);
        let word = |name: &str| rows.iter().find(|row| row.row == name).unwrap();
        assert_eq!(word("E0.4").word, Word::Agrees);
        assert_eq!(word("E0.14").word, Word::Disagrees);
        // A hypothesis is about a disagreement.
        assert_eq!(word("E0.14").claims[0].hypothesis.as_deref(), Some("a larger cache"));
        assert_eq!(word("E0.4").claims[0].hypothesis, None);
        // Drawn only: the side of 1 decides, whatever size a study puts there.
        assert_eq!(word("E0.18").word, Word::Agrees, "{:?}", word("E0.18"));
        assert_eq!(word("E0.18").claims[0].paper_ratio, None);
        assert_eq!(word("E0.6").word, Word::CannotBeSaidHere);
        assert_eq!(word("E0.6").reason, "it takes hardware counters");
    }

    #[test]
    fn a_study_that_could_not_run_says_why_for_its_rows() {
        let why = Err("PostgreSQL is not installed".to_owned());
        let ran = [of(why, vec!["E0.4".to_owned()])];
        let rows = rows(Paper::find("hassanein").unwrap(), &ran);
        let row = rows.iter().find(|row| row.row == "E0.4").unwrap();
        assert_eq!(row.reason, "demo: PostgreSQL is not installed");
        assert_eq!(row.word, Word::CannotBeSaidHere);
    }
}
