//! Published shares of functions beside those of a result. The caller knows the publication and
//! fills the data; the report lays it out.

use serde::Serialize;
use workahead_counters::profile::Clock;
use workahead_study::results::Results;

use super::{of_what, place};
use crate::number;
use crate::view::View;

/// Functions that a publication names, with their shares in the cells of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedFunctions {
    /// The heading.
    pub title: String,
    /// The heading of the functions' names: program and version.
    pub program: String,
    /// The event of the profiles.
    pub clock: Clock,
    /// Indices of the cells, a column each.
    pub cells: Vec<usize>,
    /// The functions.
    pub rows: Vec<PublishedFunction>,
    /// Share of all of them in each cell, 0 to 1; `None` if none was seen.
    pub together: Vec<Option<f64>>,
    /// The printed figures of all of them.
    pub printed: Vec<String>,
}

/// One function.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedFunction {
    /// Its name then.
    pub name: String,
    /// Its role.
    pub role: String,
    /// Today's functions in its place.
    pub today: Vec<String>,
    /// Notes.
    pub notes: Vec<String>,
    /// Its printed shares.
    pub printed: Vec<String>,
    /// Its share in each cell, 0 to 1; `None` if it was not seen.
    pub shares: Vec<Option<f64>>,
}

/// The table as it is laid out.
#[derive(Debug, Serialize)]
pub(crate) struct Table {
    title: String,
    program: String,
    /// The cells, a column each.
    heads: Vec<String>,
    rows: Vec<Row>,
    together: Vec<String>,
    printed: Vec<String>,
    /// The event of the shares.
    of: String,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    role: String,
    today: String,
    note: String,
    printed: Vec<String>,
    shares: Vec<String>,
}

pub(super) fn tables(view: &View<'_>, published: &[PublishedFunctions]) -> Vec<Table> {
    published.iter().map(|functions| table(view, functions)).collect()
}

fn table(view: &View<'_>, of: &PublishedFunctions) -> Table {
    let Results { run_plan, .. } = view.results;
    Table {
        title: of.title.clone(),
        program: of.program.clone(),
        heads: of.cells.iter().map(|cell| place(view, &run_plan.cells[*cell])).collect(),
        rows: of.rows.iter().map(row).collect(),
        together: of.together.iter().map(|one| share(*one)).collect(),
        printed: of.printed.clone(),
        of: of_what(&of.clock),
    }
}

fn row(function: &PublishedFunction) -> Row {
    Row {
        name: function.name.clone(),
        role: function.role.clone(),
        today: match function.today.is_empty() {
            true => "not seen".to_owned(),
            false => function.today.join(", "),
        },
        note: function.notes.join("; "),
        printed: function.printed.clone(),
        shares: function.shares.iter().map(|one| share(*one)).collect(),
    }
}

fn share(share: Option<f64>) -> String {
    share.map_or_else(|| number::NONE.to_owned(), number::percent)
}
