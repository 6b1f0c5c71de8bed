//! A paper's tables: rows, columns, and what each stands for.

use serde::{Deserialize, Serialize};

use super::claim::Claim;
use super::printed::Printed;
use crate::event::Privilege;

/// A paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    paper: Head,
    #[serde(rename = "table")]
    tables: Vec<Table>,
    #[serde(rename = "claim")]
    claims: Vec<Claim>,
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
    /// Who wrote it and when: `Hassanein, Rashid, Hammad 2008`.
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

    /// What its text says, quoted lines included.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// The claim of an id.
    pub fn claim(&self, id: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.id == id)
    }

    /// What it quotes from others.
    pub fn reference_lines(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(|claim| claim.is_quoted())
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
    /// What all of it stands for.
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
    pub fn figure(&self, row: &str, column: &str) -> Option<Printed> {
        match self.cell(row, column)? {
            Cell::Figure(printed) => Some(*printed),
            _ => None,
        }
    }

    /// What a cell stands for: what the row says goes before the column, that before the table.
    pub fn configuration(&self, row: &Row, column: &Column) -> Configuration {
        row.at.clone().or(&column.at).or(&self.at)
    }

    /// Every figure with its row and column.
    pub fn figures(&self) -> impl Iterator<Item = (&Row, &Column, Printed)> {
        let cells = |row: &'_ Row| row.values.clone();
        self.rows.iter().flat_map(move |row| {
            let of_row = self.columns.iter().zip(cells(row));
            of_row.filter_map(move |(column, cell)| match cell {
                Cell::Figure(printed) => Some((row, column, printed)),
                _ => None,
            })
        })
    }
}

/// One column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// As printed.
    pub name: String,
    /// What it stands for.
    #[serde(default)]
    pub at: Configuration,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// As printed, made unique where cells of the paper hold two figures.
    pub name: String,
    /// What its figures are in.
    pub unit: String,
    /// What corresponds to it among ours.
    pub metric: Metric,
    /// What it stands for.
    #[serde(default)]
    pub at: Configuration,
    /// One cell per column.
    pub values: Vec<Cell>,
}

/// What corresponds to a figure among our metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Metric {
    /// The metric of this name.
    Named(String),
    /// Nothing.
    None {
        /// Why.
        none: String,
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

/// What stands in a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Cell {
    /// A figure.
    Figure(Printed),
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
            _ => Printed::try_from(text.clone()).map_or(Cell::Words(text), Cell::Figure),
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

/// What a figure stands for. What is absent, the paper does not vary there or does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Configuration {
    /// Whose cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privilege: Option<Privilege>,
    /// Processors in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<u8>,
    /// Size of the second-level cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2_kib: Option<u32>,
    /// Bus transactions that a processor may have outstanding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u8>,
    /// Which accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Which state the line was in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Where in the pipeline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// How many in a cycle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u8>,
    /// The work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// How many clients at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<u8>,
    /// Whether SMT is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt: Option<bool>,
    /// Which function of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
}

impl Configuration {
    fn or(self, outer: &Configuration) -> Configuration {
        Configuration {
            privilege: self.privilege.or(outer.privilege),
            processors: self.processors.or(outer.processors),
            l2_kib: self.l2_kib.or(outer.l2_kib),
            outstanding: self.outstanding.or(outer.outstanding),
            access: self.access.or(outer.access),
            state: self.state.or(outer.state),
            stage: self.stage.or(outer.stage),
            width: self.width.or(outer.width),
            workload: self.workload.or_else(|| outer.workload.clone()),
            clients: self.clients.or(outer.clients),
            smt: self.smt.or(outer.smt),
            function: self.function.or_else(|| outer.function.clone()),
        }
    }
}

/// Accesses to a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Of instructions.
    Fetch,
    /// Of data, to read.
    Load,
    /// Of data, to write.
    Store,
}

/// States of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The only copy, and dirty.
    Modified,
    /// The only copy, and clean.
    Exclusive,
    /// Others may have it too.
    Shared,
    /// A miss.
    Invalid,
}

/// Where in the pipeline a width is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Instructions decoded.
    Decode,
    /// Instructions retired.
    Retire,
    /// µops retired.
    UopRetire,
}
