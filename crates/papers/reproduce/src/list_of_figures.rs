//! The list of figures: every figure and table of the five documents, and what holds each.
//!
//! ```text
//!   published/figures.toml ──► Figure ──┬─ rows: experiments; their claims that cite it
//!                                       │  and the cells of its table ──► Line: two words, why
//!                                       └─ describes: a description, carried by other rows
//! ```
//!
//! A reader comes with a document in hand and looks for figure 7a: pages are in rows of the ledger,
//! so each opens with this list.

mod lines;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

pub use lines::Line;
pub(crate) use lines::{PageContents, lines};

static TEXT: &str = include_str!("../published/figures.toml");

/// One figure or table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// As the document numbers it: `Figure 7a`, `Table 10`.
    pub id: String,
    /// Its caption, short.
    pub title: String,
    /// The experiments that hold it.
    #[serde(default)]
    pub rows: Vec<String>,
    /// The rows that carry what it describes, where it shows no result.
    #[serde(default)]
    pub describes: Vec<String>,
    #[serde(default)]
    cited: Vec<String>,
    #[serde(default)]
    cells: Option<Cells>,
    /// Why no claim of ours is about it.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Where the numbers of a figure are printed that has no table of its own.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cells {
    /// The tables.
    tables: Vec<String>,
    /// How the names of their rows end.
    rows: String,
}

impl Figure {
    /// Whether a row holds it, or is worked out of it.
    #[must_use]
    pub(crate) fn is_of(&self, row: &str) -> bool {
        self.rows.iter().chain(&self.describes).any(|one| one == row)
    }

    /// Whether a claim that cites this (`Fig. 2, Tab. 10`) is about it.
    #[must_use]
    pub(crate) fn is_cited(&self, by: &str) -> bool {
        let parts = || std::iter::once(by).chain(by.split(", "));
        match self.cited.is_empty() {
            true => parts().any(|part| part == self.short()),
            false => parts().any(|part| self.cited.iter().any(|name| name == part)),
        }
    }

    /// Whether a printed table's row has numbers of it.
    fn has_cells(&self, table: &str, row: &str) -> bool {
        match &self.cells {
            None => table == self.id,
            Some(Cells { tables, rows }) => {
                tables.iter().any(|one| one == table) && row.ends_with(rows.as_str())
            }
        }
    }

    /// As claims cite it: `Fig. 7a`, `Tab. 10`.
    #[must_use]
    pub fn short(&self) -> String {
        self.id.replace("Figure ", "Fig. ").replace("Table ", "Tab. ")
    }
}

/// A paper's, in its order.
#[must_use]
pub fn of(paper: &str) -> &'static [Figure] {
    static FIGURES: OnceLock<BTreeMap<String, Vec<Figure>>> = OnceLock::new();
    let read = || toml::from_str(TEXT).expect("the tests read the same text");
    FIGURES.get_or_init(read).get(paper).map_or(&[], Vec::as_slice)
}
