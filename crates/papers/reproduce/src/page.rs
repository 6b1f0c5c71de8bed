//! A paper's experiments on one page: the list of its figures, and each row and each of its claims
//! with the paper's figure, ours, and two words.

use serde::Serialize;
use workahead_report::{ReportError, document, tier_in_words};
use workahead_study::verdict::{Judgement, Size, Word};

use crate::list_of_figures::{Line, PageContents, lines};
use crate::paper::Paper;
use crate::tables::{FilledTable, PaperTable};
use crate::verdicts::{MODELLED, Row};

const TEMPLATE: &str = include_str!("../templates/page.html");

/// The page, and the same for programs.
#[derive(Debug, Clone, Serialize)]
pub struct Reproduction {
    /// Name of the paper.
    pub paper: &'static str,
    /// Authors and year.
    pub authors: &'static str,
    /// The machine.
    pub machine: String,
    /// Evidence tier of everything that was run, in words.
    pub tier: String,
    /// The requested scale.
    pub scale: Option<String>,
    /// Whether measured results are shown.
    pub measured: bool,
    /// Whether modelled results are shown.
    pub modelled: bool,
    /// The answer in a sentence.
    pub sentence: String,
    /// Every figure and table of the document, with its two words or what it describes.
    pub figures: Vec<Line>,
    /// Every row.
    pub rows: Vec<Row>,
    /// The paper's tables with our figures in them, where they are kept.
    pub tables: Vec<TableSection>,
    /// Every study of the paper.
    pub studies: Vec<Study>,
}

/// A table of the paper.
#[derive(Debug, Clone, Serialize)]
pub struct TableSection {
    /// The table.
    #[serde(flatten)]
    pub table: PaperTable,
    /// Evidence tier of ours.
    pub tier: String,
    /// Whether ours are modelled.
    pub modelled: bool,
    /// Both words for its cells with a figure of ours, and how many are near; none without any.
    pub cells: Option<Judgement>,
    /// Both words for the claims of each of its rows in the ledger, as `E2.2: agrees, within 2×`.
    pub verdicts: Vec<String>,
    /// Why cells are empty, and which figure ours is where it is not quite the paper's.
    pub notes: Vec<String>,
}

/// One study.
#[derive(Debug, Clone, Serialize)]
pub struct Study {
    /// Its id.
    pub id: String,
    /// The directory of its result, below that of the page; the report is in it.
    pub dir: Option<String>,
    /// Whether there is a result.
    pub state: State,
    /// Why there is none.
    pub why: String,
}

/// Whether a study has a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It was run just now.
    Run,
    /// It was there already.
    Taken,
    /// It needs what this machine or version does not have.
    Skipped,
    /// It could not be run.
    Failed,
}

/// The parts of a reproduction.
#[derive(Debug)]
pub struct Parts {
    /// The paper.
    pub paper: Paper,
    /// The machine.
    pub machine: String,
    /// Evidence tier of what is measured; none for a reproduction on modelled machines alone.
    pub tier: Option<String>,
    /// The requested scale.
    pub scale: Option<String>,
    /// Every row of the paper.
    pub rows: Vec<Row>,
    /// Its tables with our figures.
    pub tables: Vec<FilledTable>,
    /// Its studies.
    pub studies: Vec<Study>,
}

impl Reproduction {
    /// Of its parts, with the answer in a sentence.
    #[must_use]
    pub fn new(parts: Parts) -> Reproduction {
        let Parts { paper, machine, tier, scale, rows, tables, studies } = parts;
        let tier = tier.as_deref();
        let found = PageContents { rows: &rows, tables: &tables, measured: tier.is_some() };
        let figures = lines(paper, found);
        let tables = tables.into_iter().map(|table| section(table, &rows, tier)).collect();
        let modelled = rows.iter().any(|row| row.modelled.is_some());
        Reproduction {
            paper: paper.name,
            authors: paper.authors,
            machine,
            tier: tier_in_words(tier.unwrap_or(MODELLED)),
            scale,
            measured: tier.is_some(),
            modelled,
            sentence: sentence(&rows, tier.is_some(), modelled),
            figures,
            rows,
            tables,
            studies,
        }
    }

    /// The page.
    ///
    /// # Errors
    /// Only if the template is broken.
    pub fn html(&self) -> Result<String, ReportError> {
        document(TEMPLATE, self)
    }
}

fn section(
    FilledTable { table, modelled }: FilledTable,
    rows: &[Row],
    tier: Option<&str>,
) -> TableSection {
    let of_table = rows.iter().filter(|row| table.ledger.contains(&row.row));
    let words = |row: &Row| match modelled {
        false => Some(row.measured.words()),
        true => Some(row.modelled.as_ref()?.words()),
    };
    let verdicts = of_table.filter_map(|row| Some(format!("{}: {}", row.row, words(row)?)));
    let verdicts = verdicts.collect();
    let notes = table.notes();
    let tier = tier.filter(|_| !modelled).unwrap_or(MODELLED).to_owned();
    TableSection { cells: table.verdict(), table, tier, modelled, verdicts, notes }
}

fn sentence(rows: &[Row], measured: bool, modelled: bool) -> String {
    let of = |of_row: &dyn Fn(&Row) -> Option<Judgement>, found: &str| {
        let said: Vec<Judgement> = rows.iter().filter_map(of_row).collect();
        let count = |wanted: Word| said.iter().filter(|one| one.direction == wanted).count();
        let (agree, disagree) = (count(Word::Agrees), count(Word::Disagrees));
        let near = |one: &&Judgement| one.direction == Word::Agrees && one.size <= Size::Within25;
        let near = said.iter().filter(near).count();
        let rest = rows.len() - agree - disagree;
        format!(
            "{agree} agree in direction with what {found}, {near} of them within 25 % of every \
             printed figure; {disagree} disagree, and {rest} cannot be said"
        )
    };
    let mut said = Vec::new();
    if measured {
        said.push(of(&|row| Some(row.measured.clone()), "was found here") + " here");
    }
    if modelled || !measured {
        let of_model = |row: &Row| row.modelled.clone();
        said.push(of(&of_model, "modelled machines say") + " by them");
    }
    format!("Of {}, {}.", experiments(rows.len()), said.join("; "))
}

fn experiments(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} experiment{plural}")
}
