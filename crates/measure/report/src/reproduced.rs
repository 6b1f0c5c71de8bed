//! A paper's experiments on one page: each row with the paper's figure, ours, and one word of
//! three.

use serde::Serialize;
use workahead_counters::shaped::Shaped;
use workahead_study::ledger::Seed;
use workahead_study::published::Filled;
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
    /// Whether what was measured is shown.
    pub measured: bool,
    /// Whether what was modelled is shown.
    pub modelled: bool,
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
    /// Whether ours are modelled.
    pub modelled: bool,
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
    /// With its sentence. `tier` is of what is measured; none where only models were asked for.
    pub fn new(
        seed: Seed,
        (machine, tier): (String, Option<&str>),
        scale: Option<String>,
        (rows, studies): (Vec<Row>, Vec<Study>),
        tables: Vec<Filled>,
    ) -> Reproduced {
        let tables = tables.into_iter().map(|table| tabled(table, &rows, tier)).collect();
        let modelled = rows.iter().any(|row| row.modelled.is_some());
        Reproduced {
            seed: seed.name,
            paper: seed.paper,
            machine,
            tier: words::capital(&words::tier(tier.unwrap_or(MODELLED))),
            scale,
            measured: tier.is_some(),
            modelled,
            sentence: sentence(&rows, tier.is_some(), modelled),
            rows,
            tables,
            studies,
        }
    }
}

/// The tier of modelled machines.
const MODELLED: &str = "E";

fn tabled(Filled { table, modelled }: Filled, rows: &[Row], tier: Option<&str>) -> Tabled {
    let of_table = rows.iter().filter(|row| table.ledger.contains(&row.row));
    let word = |row: &Row| match modelled {
        false => Some(row.word),
        true => row.modelled.as_ref().map(|said| said.word),
    };
    let verdicts = of_table.filter_map(|row| Some(format!("{}: {}", row.row, word(row)?.text())));
    let verdicts = verdicts.collect();
    let notes = table.notes();
    let tier = tier.filter(|_| !modelled).unwrap_or(MODELLED).to_owned();
    Tabled { table, tier, modelled, verdicts, notes }
}

fn sentence(rows: &[Row], measured: bool, modelled: bool) -> String {
    let of = |word: &dyn Fn(&Row) -> Option<Word>, found: &str| {
        let count = |wanted: Word| rows.iter().filter(|row| word(row) == Some(wanted)).count();
        let (agree, disagree) = (count(Word::Agrees), count(Word::Disagrees));
        let rest = rows.len() - agree - disagree;
        format!("{agree} agree with what {found}, {disagree} disagree, and {rest} cannot be said")
    };
    let mut said = Vec::new();
    if measured {
        said.push(of(&|row| Some(row.word), "was found here") + " here");
    }
    if modelled || !measured {
        let of_model = |row: &Row| row.modelled.as_ref().map(|said| said.word);
        said.push(of(&of_model, "modelled machines say") + " by them");
    }
    format!("Of {}, {}.", words::counted(rows.len(), "experiment"), said.join("; "))
}
