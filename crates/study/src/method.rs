//! How often, in which order, against what: the `[method]` of a study.

use serde::{Deserialize, Serialize};

use crate::setting::Settings;

/// The method of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Method {
    /// Samples per cell.
    pub repetitions: u32,
    /// Rounds over a block before the first sample, thrown away.
    pub warmup: u32,
    /// The axes that change the data, outermost first. All of them when not given; `case` never
    /// unless named.
    pub blocks: Option<Vec<String>>,
    /// Ratios are against the cell that equals this one but for these axes. None when empty.
    pub baseline: Settings,
    /// How the samples of a cell become one figure.
    pub mean: Mean,
    /// What a throughput counts, for labels: `probes`, `rows`.
    pub tuples: String,
    /// What the report draws; a bar chart by case when empty.
    pub charts: Vec<Chart>,
}

impl Default for Method {
    fn default() -> Method {
        Method {
            repetitions: 5,
            warmup: 1,
            blocks: None,
            baseline: Settings::new(),
            mean: Mean::Median,
            tuples: "tuples".to_owned(),
            charts: Vec::new(),
        }
    }
}

/// How several samples become one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mean {
    /// The arithmetic mean.
    Plain,
    /// The mean without the smallest and the largest sample (Keeton et al. 1998, section 3.4).
    Trimmed,
    /// The middle sample.
    Median,
}

/// A chart of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// Bars or curves.
    pub kind: ChartKind,
    /// What stands over it; made from the rest when not given.
    pub title: Option<String>,
    /// The axis of the bars (bars); `case` when not given.
    pub by: Option<String>,
    /// The axis along x (curves).
    pub x: Option<String>,
    /// The axis that tells curves, or groups of bars, apart.
    pub series: Option<String>,
    /// The measure along y.
    #[serde(default = "throughput")]
    pub measure: String,
    /// Only cells with these settings.
    #[serde(default, rename = "where")]
    pub only: Settings,
}

/// Kinds of charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChartKind {
    /// A bar per value of an axis; one panel per combination of the axes that are not named.
    Bars,
    /// A curve per value of `series`; panels as for bars.
    Curves,
}

fn throughput() -> String {
    "mtuples_per_s".to_owned()
}
