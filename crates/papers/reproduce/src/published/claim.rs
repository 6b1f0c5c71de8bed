//! Claims of a paper in words, with or without a figure.

use serde::{Deserialize, Serialize};

use super::configuration::Configuration;
use super::paper::Metric;
use super::printed_figure::{PrintedFigure, Quantity};

/// One statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name in the paper's file.
    pub id: String,
    /// The ledger's row.
    pub ledger: String,
    /// Where in the paper.
    pub place: String,
    /// In its words, short.
    pub says: String,
    /// The unit of the figure; empty without one.
    #[serde(default)]
    pub unit: String,
    /// Exactly this.
    #[serde(default)]
    value: Option<PrintedFigure>,
    /// At least this.
    #[serde(default)]
    from: Option<PrintedFigure>,
    /// At most this.
    #[serde(default)]
    to: Option<PrintedFigure>,
    /// Which way something changes, where the paper draws a curve.
    #[serde(default)]
    pub direction: Option<Direction>,
    /// Our metric for it, if it is of a result at all.
    #[serde(default)]
    pub metric: Option<Metric>,
    /// The configuration that it holds for.
    #[serde(default)]
    pub at: Configuration,
    /// The source that the paper quotes; none for its own findings.
    #[serde(default)]
    pub source: Option<String>,
}

impl Claim {
    /// Its statement; none if it gives a direction only.
    pub fn quantity(&self) -> Option<Quantity> {
        match (self.value, self.from, self.to) {
            (Some(value), _, _) => Some(Quantity::Exactly(value)),
            (None, Some(from), Some(to)) => Some(Quantity::Between(from, to)),
            (None, Some(from), None) => Some(Quantity::AtLeast(from)),
            (None, None, Some(to)) => Some(Quantity::AtMost(to)),
            (None, None, None) => None,
        }
    }

    /// Whether it is somebody else's finding: a line to compare with, no claim of the paper.
    pub fn is_quoted(&self) -> bool {
        self.source.is_some()
    }
}

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// More of it.
    Up,
    /// Less of it.
    Down,
    /// Now more, now less.
    Either,
}
