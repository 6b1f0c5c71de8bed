//! A paper's experiments against what was found here: two words a row, and two a claim.
//!
//! ```text
//! row of the ledger ──► claims of its studies with that row ──► a verdict each ──► the row's
//!                  └──► no study: why, and *cannot be said here*
//! ```
//!
//! A row's direction is that of its worst claim and its size that of the worst printed figure; its
//! reason names the claims that fail. Measured and modelled results have their own words.
//!
//! A row that the paper only draws gets a verdict on the direction alone (D12): its size was never
//! printed, and reading it off a picture would be inventing it.

use serde::{Deserialize, Serialize};
use workahead_study::claim::{Claim, Direction, Extent};
use workahead_study::results::Results;
use workahead_study::setting;
use workahead_study::verdict::{Judgement, Size, Word};

use crate::ledger::Entry;
use crate::list_of_figures;
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
    /// The paper's finding, in our words.
    pub words: String,
    /// The figures and tables of the paper that it holds; none of what stands in the text alone.
    pub figures: Vec<String>,
    /// Both words by what was measured, and why.
    pub measured: Judgement,
    /// Evidence tier of what was measured, if anything was.
    pub tier: Option<String>,
    /// The same by modelled machines, where a study of the row has one.
    pub modelled: Option<Judgement>,
    /// Every claim that the row was judged by.
    pub claims: Vec<ClaimVerdict>,
}

/// One claim of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimVerdict {
    /// Id of the study.
    pub study: String,
    /// Figure or table of the paper.
    pub figure: String,
    /// The paper, short.
    pub says: String,
    /// The paper's figure as it is judged: `×1.49 at most`, `1.81`, `less`.
    pub paper: String,
    /// The cells that it is about: `case=backward, set_size=128`.
    pub cells: String,
    /// Evidence tier of ours.
    pub tier: String,
    /// Both words, and ours with the reason for them.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// Why ours may differ, where it does in direction or by more than a quarter, if the study says
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypothesis: Option<String>,
}

/// The evidence tier of modelled machines.
pub(crate) const MODELLED: &str = "E";

impl ClaimVerdict {
    /// Whether ours is modelled.
    #[must_use]
    pub fn is_modelled(&self) -> bool {
        self.tier == MODELLED
    }
}

/// All rows of a paper.
pub fn rows(paper: Paper, ran: &[StudyRun]) -> Vec<Row> {
    paper.rows().map(|entry| row(paper, entry, ran)).collect()
}

fn row(paper: Paper, entry: &Entry, ran: &[StudyRun]) -> Row {
    let (modelled, measured): (Vec<&StudyRun>, Vec<&StudyRun>) =
        ran.iter().partition(|ran| ran.modelled);
    let (of_measured, mut claims) = said(entry, &measured);
    let of_measured =
        of_measured.unwrap_or_else(|| Judgement::unsaid(unanswered(entry, &modelled)));
    let tier = claims.first().map(|claim| claim.tier.clone());
    let (modelled, more) = said(entry, &modelled);
    claims.extend(more);
    let (row, words) = (entry.row.clone(), entry.words.clone());
    let figures = list_of_figures::of(paper.name).iter().filter(|figure| figure.is_of(&row));
    let figures = figures.map(|figure| figure.id.clone()).collect();
    Row { row, words, figures, measured: of_measured, tier, modelled, claims }
}

/// The judgement of all studies of a row together; nothing if none of them is about it.
fn said(entry: &Entry, ran: &[&StudyRun]) -> (Option<Judgement>, Vec<ClaimVerdict>) {
    let claims: Vec<ClaimVerdict> = ran.iter().flat_map(|study| judged(entry, study)).collect();
    let judgement = match claims.is_empty() {
        true => silent(entry, ran).map(Judgement::unsaid),
        false => Some(together(&claims)),
    };
    (judgement, claims)
}

/// A row's claims in two words; those that fail are named with their figures.
pub(crate) fn together(claims: &[ClaimVerdict]) -> Judgement {
    let [only] = claims else {
        let judged = |word: Word| -> Vec<&ClaimVerdict> {
            claims.iter().filter(|claim| claim.judgement.direction == word).collect()
        };
        let all = claims.len();
        let mut parts = vec![format!("{} of {all} claims agree", judged(Word::Agrees).len())];
        for word in [Word::Disagrees, Word::CannotBeSaidHere] {
            let named = named(&judged(word));
            if !named.is_empty() {
                parts.push(format!("{}: {named}", word.text()));
            }
        }
        let words = claims.iter().map(|claim| claim.judgement.direction);
        return Judgement {
            direction: words.max().unwrap_or(Word::CannotBeSaidHere),
            size: Size::worst(claims.iter().map(|claim| claim.judgement.size)),
            reason: parts.join("; "),
        };
    };
    only.judgement.clone()
}

/// More claims than this are counted, not named: the page has each of them.
const NAMED_MAX: usize = 3;

/// `“up to 33 %” (×1.07, …)`, each; the same reason of several once.
fn named(claims: &[&ClaimVerdict]) -> String {
    let mut found: Vec<(&str, Vec<String>)> = Vec::new();
    for claim in claims {
        let name = format!("“{}”", claim.says);
        let reason = claim.judgement.reason.as_str();
        match found.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => found.push((reason, vec![name])),
        }
    }
    let each = found.iter().map(|(reason, names)| format!("{} ({reason})", names.join(", ")));
    let shown = each.take(NAMED_MAX).collect::<Vec<_>>().join(", ");
    match found.len().saturating_sub(NAMED_MAX) {
        0 => shown,
        more => format!("{shown}, and {more} more"),
    }
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
        let claim = &results.spec.claims[verdict.claim];
        let differs = differs(&verdict.judgement);
        (claim.row == entry.row).then(|| ClaimVerdict {
            study: ran.study.clone(),
            figure: claim.figure.clone(),
            says: claim.says.clone(),
            paper: printed(claim, entry.is_curve_only()),
            cells: setting::one_line(&claim.cells),
            tier: verdict.tier,
            judgement: verdict.judgement,
            hypothesis: claim.hypothesis.clone().filter(|_| differs),
        })
    });
    of_row.collect()
}

/// Whether ours is on another side, or more than a quarter from what is printed: what a hypothesis
/// is about.
fn differs(judgement: &Judgement) -> bool {
    judgement.direction == Word::Disagrees
        || matches!(judgement.size, Size::Within2x | Size::Beyond)
}

/// The paper's figure, or its direction where it only draws one.
fn printed(claim: &Claim, is_drawn: bool) -> String {
    let times = claim.measure.is_none();
    let direction = claim.direction.map(|direction| match direction {
        Direction::Faster if times => "faster",
        Direction::Faster => "more",
        Direction::Slower if times => "slower",
        Direction::Slower => "less",
        Direction::Same => "the same",
        Direction::NotFaster if times => "not faster",
        Direction::NotFaster => "not more",
    });
    let side = |ratio: f64| if ratio < 1.0 { "less" } else { "more" };
    let figure = match (claim.value, claim.ratio) {
        (Some(value), _) => format!("{value}"),
        (None, Some(ratio)) if is_drawn => return direction.unwrap_or(side(ratio)).to_owned(),
        (None, Some(ratio)) => format!("×{ratio}"),
        (None, None) => return direction.unwrap_or("no figure").to_owned(),
    };
    let than = if claim.than.is_empty() { "" } else { ", of another ratio" };
    let extent = match claim.at {
        Extent::Every => "",
        Extent::Most => " at most",
        Extent::Least => " at least",
    };
    format!("{figure}{extent}{than}")
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

    /// Modelled results stand beside measured ones, and neither speak for the other.
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
            (row.measured.direction, row.modelled.map(|said| said.direction), row.measured.reason)
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
    fn every_row_gets_two_words() {
        let dir = tempfile::tempdir().unwrap();
        let results = testing::results(dir.path(), STUDY, &mut Mock::new());
        let ledger = results.spec.ledger.clone();
        let ran = [of(Ok(results), ledger)];
        let rows = rows(Paper::find("hassanein").unwrap(), &ran);
        assert_eq!(rows.len(), 24);
        let word = |name: &str| rows.iter().find(|row| row.row == name).unwrap();
        assert_eq!(word("E0.4").measured.direction, Word::Agrees);
        assert_eq!(word("E0.14").measured.direction, Word::Disagrees);
        // A hypothesis is about a difference.
        assert_eq!(word("E0.14").claims[0].hypothesis.as_deref(), Some("a larger cache"));
        assert_eq!(word("E0.4").claims[0].hypothesis, None);
        // Drawn only: the side of 1 decides, whatever size a study puts there.
        assert_eq!(word("E0.18").measured.direction, Word::Agrees, "{:?}", word("E0.18"));
        assert_eq!(word("E0.18").claims[0].paper, "more");
        assert_eq!(word("E0.18").measured.size, Size::NoFigure);
        assert_eq!(word("E0.4").measured.size, Size::Within10);
        assert_eq!(word("E0.4").claims[0].paper, "×1.16");
        assert_eq!(word("E0.6").measured.direction, Word::CannotBeSaidHere);
        assert_eq!(word("E0.6").measured.reason, "it takes hardware counters");
    }

    /// The paper's side of 1, and half of its gain: that wants a reason too.
    #[test]
    fn a_claim_that_agrees_holds_a_hypothesis_of_its_size() {
        let dir = tempfile::tempdir().unwrap();
        let study = STUDY.replace("ratio = 1.16", "ratio = 1.9");
        let results = testing::results(dir.path(), &study, &mut Mock::new());
        let ledger = results.spec.ledger.clone();
        let rows = rows(Paper::find("hassanein").unwrap(), &[of(Ok(results), ledger)]);
        let row = rows.iter().find(|row| row.row == "E0.4").unwrap();
        assert_eq!(row.measured.words(), "agrees, within 2×");
        assert_eq!(row.claims[0].hypothesis.as_deref(), Some("unused"));
    }

    #[test]
    fn a_study_that_could_not_run_says_why_for_its_rows() {
        let why = Err("PostgreSQL is not installed".to_owned());
        let ran = [of(why, vec!["E0.4".to_owned()])];
        let rows = rows(Paper::find("hassanein").unwrap(), &ran);
        let row = rows.iter().find(|row| row.row == "E0.4").unwrap();
        assert_eq!(row.measured, Judgement::unsaid("demo: PostgreSQL is not installed"));
    }

    /// A row disagrees by one claim, and says which.
    #[test]
    fn a_row_names_the_claims_that_fail() {
        let dir = tempfile::tempdir().unwrap();
        let study = STUDY.replace("row = 'E0.14'", "row = 'E0.4'");
        let results = testing::results(dir.path(), &study, &mut Mock::new());
        let ledger = results.spec.ledger.clone();
        let rows = rows(Paper::find("hassanein").unwrap(), &[of(Ok(results), ledger)]);
        let row = rows.iter().find(|row| row.row == "E0.4").unwrap();
        assert_eq!(row.measured.direction, Word::Disagrees);
        assert_eq!(row.measured.size, Size::Within2x);
        let reason = &row.measured.reason;
        assert!(reason.starts_with("1 of 2 claims agree; disagrees: “slower” (×1.2"), "{reason}");
        assert_eq!(row.measured.words(), "disagrees, within 2×");
    }
}
