//! A paper's tables: rows, columns, and what each stands for.

use serde::{Deserialize, Serialize};

use super::claim::Claim;
use super::configuration::Configuration;
use super::printed_figure::PrintedFigure;

/// A paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    paper: Head,
    #[serde(rename = "table")]
    tables: Vec<Table>,
    #[serde(rename = "claim")]
    pub(super) claims: Vec<Claim>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    authors: String,
    year: u16,
    title: String,
    source: String,
}

impl Paper {
    /// Authors and year: `Hassanein, Rashid, Hammad 2008`.
    pub fn name(&self) -> String {
        format!("{} {}", self.paper.authors, self.paper.year)
    }

    /// Its title.
    pub fn title(&self) -> &str {
        &self.paper.title
    }

    /// Where it was published.
    pub fn source(&self) -> &str {
        &self.paper.source
    }

    /// Tables, and figures whose values the text gives, in the paper's order.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The table of an id: `Table 10`.
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.id == id)
    }

    /// The claim of an id.
    pub fn claim(&self, id: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.id == id)
    }
}

/// One table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// `Table 10`.
    pub id: String,
    /// Its caption, short.
    pub title: String,
    /// The ledger's rows.
    pub ledger: Vec<String>,
    /// The configuration of all of it.
    #[serde(default)]
    pub at: Configuration,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

impl Table {
    /// The row of a name.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// One cell.
    pub fn cell(&self, row: &str, column: &str) -> Option<&Cell> {
        let column = self.columns.iter().position(|known| known.name == column)?;
        self.row(row)?.values.get(column)
    }

    /// One cell's figure; none if it holds none.
    pub fn figure(&self, row: &str, column: &str) -> Option<PrintedFigure> {
        match self.cell(row, column)? {
            Cell::Figure(printed) => Some(*printed),
            _ => None,
        }
    }

    /// The configuration of a cell: the row's goes before the column's, that before the table's.
    pub fn configuration(&self, row: &Row, column: &Column) -> Configuration {
        row.at.clone().or(&column.at).or(&self.at)
    }
}

/// One column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// As printed.
    pub name: String,
    /// Its configuration.
    #[serde(default)]
    pub at: Configuration,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// As printed, made unique where cells of the paper hold two figures.
    pub name: String,
    /// The unit of its figures.
    pub unit: String,
    /// Our metric for it.
    pub metric: Metric,
    /// Its configuration.
    #[serde(default)]
    pub at: Configuration,
    /// One cell per column.
    pub values: Vec<Cell>,
}

/// Our metric for a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Metric {
    /// The metric of this name.
    Named(String),
    /// Nothing.
    None {
        /// Why.
        none: String,
        /// The measure of a modelled machine for it, where no counter has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        modelled: Option<String>,
    },
}

impl Metric {
    /// The metric's name, if there is one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Metric::Named(name) => Some(name),
            Metric::None { .. } => None,
        }
    }
}

/// The content of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Cell {
    /// A figure.
    Figure(PrintedFigure),
    /// The paper's "n/a".
    NotApplicable,
    /// Nothing.
    Blank,
    /// Words.
    Words(String),
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        match text.as_str() {
            "" => Cell::Blank,
            "n/a" => Cell::NotApplicable,
            _ => PrintedFigure::try_from(text.clone()).map_or(Cell::Words(text), Cell::Figure),
        }
    }
}

impl From<Cell> for String {
    fn from(cell: Cell) -> String {
        match cell {
            Cell::Figure(printed) => printed.into(),
            Cell::NotApplicable => "n/a".to_owned(),
            Cell::Blank => String::new(),
            Cell::Words(words) => words,
        }
    }
}
