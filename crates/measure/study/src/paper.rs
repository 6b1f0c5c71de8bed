//! Claims of a paper, to compare with our findings.

use serde::{Deserialize, Serialize};

use crate::setting::Settings;

/// One figure of the paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The ledger's row, e.g. `E4.6`.
    pub row: String,
    /// Where in the paper, e.g. `Fig. 6b`.
    pub figure: String,
    /// The cells it is about.
    #[serde(default, rename = "where")]
    pub cells: Settings,
    /// Its ratio of throughputs, this cell over the baseline, or of `measure`. Without one only the
    /// `direction` is compared.
    pub ratio: Option<f64>,
    /// Which side of 1, where the paper gives a curve or words only.
    pub direction: Option<Direction>,
    /// The baseline of the ratio, if it differs from the method's.
    #[serde(default)]
    pub against: Settings,
    /// The measure of the ratio, if not throughput: `cpu_s`. A `direction` is then spelt `more`,
    /// `less`, `same`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<String>,
    /// The other measure of the same cell, where the ratio is of two of them and not of two cells:
    /// `cpi_kernel` over `cpi_user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// The paper's words, short.
    pub says: String,
    /// Why ours may differ, in a sentence: shown where ours disagrees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypothesis: Option<String>,
    /// Requirements for its verdict, beyond those of the study.
    #[serde(default)]
    pub needs: Vec<Requirement>,
}

impl Claim {
    /// Whether it gives a ratio that charts of throughput can show.
    pub fn is_of_throughput(&self) -> bool {
        self.ratio.is_some() && self.measure.is_none()
    }
}

/// Which side of 1 a ratio lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Above the baseline.
    #[serde(alias = "more")]
    Faster,
    /// Below it.
    #[serde(alias = "less")]
    Slower,
    /// Neither.
    Same,
    /// Below it or the same: no improvement.
    #[serde(rename = "not-faster", alias = "not-more")]
    NotFaster,
}

/// A requirement beyond timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Requirement {
    /// Hardware performance counters.
    Counters,
    /// A modelled machine.
    Model,
    /// Visible siblings.
    Siblings,
}

impl Requirement {
    /// As the TOML spells it.
    pub fn name(self) -> &'static str {
        match self {
            Requirement::Counters => "counters",
            Requirement::Model => "model",
            Requirement::Siblings => "siblings",
        }
    }
}
