//! Our figures in the shape of a paper's tables: the same rows and columns, the printed figure and
//! ours side by side.
//!
//! ```text
//! published::Paper ──► table, row, column ──► metric, configuration ──Source──► figure, or why not
//!                                                    stream:  one stream of counts
//!                                                    results: the counted cells of a study
//!                                                    modelled: the cells of a modelled machine
//! ```
//!
//! Cells with both figures are judged (`judged`). A cell without a figure of ours says why. What
//! the paper varied and this machine can't, such as the size of its L2, is never filled with what
//! was counted under other conditions.

mod derived;
mod judgement;
mod modelled;
mod of_paper;
mod results;
mod stream;

#[cfg(test)]
mod tests;

use serde::Serialize;
use workahead_study::verdict::Size;

pub use derived::{DERIVED, DerivedFigure, derived};
pub(crate) use judgement::{unjudged, verdict};
pub use of_paper::{FilledTable, of_paper};
pub use stream::StreamFigures;

use crate::published::{self, Configuration, Paper, Table};

/// A source of figures of ours.
pub trait Source {
    /// A metric of the catalogue or of [`DERIVED`], in its own unit: shares are of 1.
    ///
    /// # Errors
    /// Why there is none, in one line.
    fn figure(&self, metric: &str, at: &Configuration) -> Result<Figure, String>;

    /// Whether they are of a modelled machine, which has some that no counter gives.
    fn is_modelled(&self) -> bool {
        false
    }
}

/// One figure of ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Its value, in the metric's unit.
    pub value: f64,
    /// Whether something that it is made of scatters by more than a tenth of its mean (S2.5).
    pub noisy: bool,
    /// Its meaning here, where its name means something else elsewhere.
    pub instead: Option<String>,
}

/// A paper's table with our figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PaperTable {
    /// `Table 10`.
    pub id: String,
    /// Its caption, short.
    pub title: String,
    /// The ledger's rows.
    pub ledger: Vec<String>,
    /// Its columns.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// As printed.
    pub name: String,
    /// The unit of both figures.
    pub unit: String,
    /// Our metric for it.
    pub metric: Option<String>,
    /// One per column.
    pub cells: Vec<Cell>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// As printed; none of an empty cell.
    pub paper: Option<String>,
    /// Ours, in the row's unit.
    pub ours: Option<f64>,
    /// Why there is none of ours.
    pub why: Option<String>,
    /// Whether ours is noisy.
    pub noisy: bool,
    /// The meaning of ours, where its name means something else elsewhere.
    pub instead: Option<String>,
    /// How far ours is from the printed figure, where a study answers the table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
}

/// All of a share, in the per cent that papers print.
const WHOLE: f64 = 100.0;

impl PaperTable {
    /// Why cells are empty, and which figure ours is where it is not quite the paper's: each once,
    /// with the rows that it is about unless those are all.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut said: Vec<(String, Vec<&str>)> = Vec::new();
        for row in &self.rows {
            for cell in &row.cells {
                let empty = cell.why.iter().map(|why| format!("–: {why}"));
                let other = cell.instead.iter().map(|instead| format!("ours: {instead}"));
                for note in empty.chain(other) {
                    match said.iter_mut().find(|(known, _)| *known == note) {
                        Some((_, rows)) if rows.contains(&row.name.as_str()) => {}
                        Some((_, rows)) => rows.push(&row.name),
                        None => said.push((note, vec![&row.name])),
                    }
                }
            }
        }
        let of = |(note, rows): (String, Vec<&str>)| match rows.len() == self.rows.len() {
            true => note,
            false => format!("{note} ({})", rows.join("; ")),
        };
        said.into_iter().map(of).collect()
    }

    /// Whether any cell has a figure of ours.
    #[must_use]
    pub fn has_ours(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.ours.is_some())
    }
}

/// Every table of a paper, in its order.
#[must_use]
pub fn fill(paper: &Paper, ours: &dyn Source) -> Vec<PaperTable> {
    paper.tables().iter().map(|table| table_of(table, ours)).collect()
}

fn table_of(table: &Table, ours: &dyn Source) -> PaperTable {
    let row = |row: &published::Row| Row {
        name: row.name.clone(),
        unit: row.unit.clone(),
        metric: row.metric.name().map(str::to_owned),
        cells: cells(table, row, ours),
    };
    PaperTable {
        id: table.id.clone(),
        title: table.title.clone(),
        ledger: table.ledger.clone(),
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        rows: table.rows.iter().map(row).collect(),
    }
}

fn cells(table: &Table, row: &published::Row, ours: &dyn Source) -> Vec<Cell> {
    let scale = if row.unit.starts_with('%') { WHOLE } else { 1.0 };
    let of = |(column, printed): (&published::Column, &published::Cell)| {
        let paper = match printed {
            published::Cell::Blank => None,
            other => Some(String::from(other.clone())),
        };
        let figure = match &row.metric {
            published::Metric::Named(metric) => {
                ours.figure(metric, &table.configuration(row, column))
            }
            published::Metric::None { modelled: Some(metric), .. } if ours.is_modelled() => {
                ours.figure(metric, &table.configuration(row, column))
            }
            published::Metric::None { none, .. } => Err(none.clone()),
        };
        match figure {
            Ok(Figure { value, noisy, instead }) => {
                Cell { paper, ours: Some(value * scale), why: None, noisy, instead, size: None }
            }
            Err(why) => {
                let (ours, why) = (None, Some(why));
                Cell { paper, ours, why, noisy: false, instead: None, size: None }
            }
        }
    };
    table.columns.iter().zip(&row.values).map(of).collect()
}
