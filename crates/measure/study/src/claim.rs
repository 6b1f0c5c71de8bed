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
    /// Cells among these that it leaves out: "all but query 15".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Settings>,
    /// Its ratio of throughputs, this cell over the baseline, or of `measure`. Without one only the
    /// `direction` is compared.
    pub ratio: Option<f64>,
    /// Its value of `measure`, in that measure's unit, where it prints one that is not a ratio:
    /// 1.81 cycles an instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The cells that decide. "Up to" and "from … to" are of one cell among all of them.
    #[serde(default, skip_serializing_if = "Extent::is_every")]
    pub at: Extent,
    /// Which side of 1, where the paper gives a curve or words only.
    pub direction: Option<Direction>,
    /// The baseline of the ratio, if it differs from the method's.
    #[serde(default)]
    pub against: Settings,
    /// Where the paper compares two effects: its ratio over that of the cell that differs by these
    /// settings.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub than: Settings,
    /// The measure of the ratio, if not throughput: `cpu_s`. A `direction` is then spelt `more`,
    /// `less`, `same`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<String>,
    /// The other measure, where the ratio is of two of them: `cpi_kernel` over `cpi_user` of the
    /// same cell, or of that of `against` if the claim names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// The paper's words, short.
    pub says: String,
    /// Why ours may differ, in a sentence: shown where ours disagrees, or agrees by another size.
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

/// The cells of a claim that decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// Each of them.
    #[default]
    Every,
    /// The one with the largest ratio or value: "up to 1.16".
    Most,
    /// The one with the smallest: "down by up to 66 %".
    Least,
}

impl Extent {
    /// Whether each cell decides.
    pub(crate) fn is_every(&self) -> bool {
        *self == Extent::Every
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
