//! A paper's experiments on one page: each row with the paper's figure, ours, and one word of
//! three.

use serde::Serialize;
use workahead_counters::shaped::Shaped;
use workahead_study::ledger::Seed;
use workahead_study::reproduction::Row;
use workahead_study::verdict::Word;

use crate::words;

/// The page, and the same for programs.
#[derive(Debug, Clone, Serialize)]
pub struct Reproduced {
    /// Name of the seed.
    pub seed: &'static str,
    /// Authors and year.
    pub paper: &'static str,
    /// The machine.
    pub machine: String,
    /// Evidence tier of everything that was run, in words.
    pub tier: String,
    /// The scale asked for.
    pub scale: Option<String>,
    /// The answer in a sentence.
    pub sentence: String,
    /// Every row.
    pub rows: Vec<Row>,
    /// The paper's tables with our figures in them, where they are kept.
    pub tables: Vec<Tabled>,
    /// Every study of the seed.
    pub studies: Vec<Study>,
}

/// A table of the paper.
#[derive(Debug, Clone, Serialize)]
pub struct Tabled {
    /// The table.
    #[serde(flatten)]
    pub table: Shaped,
    /// Evidence tier of ours.
    pub tier: String,
    /// The word for each of its rows in the ledger, as `E2.2: cannot be said here`.
    pub verdicts: Vec<String>,
    /// Why cells are empty, and what ours are where they are not quite the paper's.
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

impl Reproduced {
    /// With its sentence.
    pub fn new(
        seed: Seed,
        (machine, tier): (String, &str),
        scale: Option<String>,
        (rows, studies): (Vec<Row>, Vec<Study>),
        tables: Vec<Shaped>,
    ) -> Reproduced {
        let tables = tables.into_iter().map(|table| tabled(table, &rows, tier)).collect();
        Reproduced {
            seed: seed.name,
            paper: seed.paper,
            machine,
            tier: words::capital(&words::tier(tier)),
            scale,
            sentence: sentence(&rows),
            rows,
            tables,
            studies,
        }
    }
}

fn tabled(table: Shaped, rows: &[Row], tier: &str) -> Tabled {
    let of_table = rows.iter().filter(|row| table.ledger.contains(&row.row));
    let verdicts = of_table.map(|row| format!("{}: {}", row.row, row.word.text())).collect();
    let notes = table.notes();
    Tabled { table, tier: tier.to_owned(), verdicts, notes }
}

fn sentence(rows: &[Row]) -> String {
    let count = |word: Word| rows.iter().filter(|row| row.word == word).count();
    format!(
        "Of {}, {} agree with what was found here, {} disagree, and {} cannot be said here.",
        words::counted(rows.len(), "experiment"),
        count(Word::Agrees),
        count(Word::Disagrees),
        count(Word::CannotBeSaidHere)
    )
}
