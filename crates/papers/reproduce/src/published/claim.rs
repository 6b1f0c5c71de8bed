//! Claims of a paper's text that arithmetic here takes or checks.

use serde::{Deserialize, Serialize};

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
    /// The unit of the figure.
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
}

impl Claim {
    /// Its statement; none if it has no figure.
    pub fn quantity(&self) -> Option<Quantity> {
        match (self.value, self.from, self.to) {
            (Some(value), _, _) => Some(Quantity::Exactly(value)),
            (None, Some(from), Some(to)) => Some(Quantity::Between(from, to)),
            (None, Some(from), None) => Some(Quantity::AtLeast(from)),
            (None, None, Some(to)) => Some(Quantity::AtMost(to)),
            (None, None, None) => None,
        }
    }
}
