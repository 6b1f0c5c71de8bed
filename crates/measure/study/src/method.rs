//! How often, in which order, against what: the `[method]` of a study.

use serde::{Deserialize, Serialize};
use workahead_counters::profile::ProfileEvent;

use crate::collection::CollectionOptions;
pub(crate) use crate::instrument::CACHES;
use crate::instrument::Instrumentation;
use crate::protocol::{Before, Start};
use crate::setting::Settings;
use crate::statistics::Mean;

mod checks;

pub(crate) use checks::{check_caches, repeated};

/// The method of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Method {
    /// Samples per cell.
    pub repetitions: u32,
    /// Rounds over a block before the first sample, thrown away.
    pub warmup: u32,
    /// The order of the cells inside a block.
    pub order: Order,
    /// What caches and buffers hold when a sample starts. An axis `protocol` goes before it.
    pub protocol: Start,
    /// When a server is started anew.
    pub restart: Before,
    /// When data is brought back to what it was after loading.
    pub restore: Before,
    /// Groups of metrics to count in every sample, such as `cpi` and `l2`; `all` is every one.
    pub counters: Vec<String>,
    /// How long each group of events is counted before the next has its turn.
    pub slot_s: f64,
    /// Samples a second of each CPU's time, for a profile of functions; none where 0.
    pub profile_hz: u32,
    /// What shares of functions are of: `time`, `l2_misses`, `l3_misses`, `dtlb_misses`. Of several
    /// each sample of a cell has the next. Time where empty.
    pub profile_by: Vec<ProfileEvent>,
    /// What every cell is run below, to count by a model; nothing when not given.
    pub instrumented: Option<Instrumentation>,
    /// The axes that change the data, outermost first. All of them when not given; `case` never
    /// unless named.
    pub blocks: Option<Vec<String>>,
    /// Ratios are against the cell that equals this one but for these axes. None when empty.
    pub baseline: Settings,
    /// How the samples of a cell become one figure.
    pub mean: Mean,
    /// What a throughput counts, for labels: `probes`, `rows`.
    pub tuples: String,
    /// What the report draws; what suits the axes and measures when empty.
    pub charts: Vec<Chart>,
}

impl Default for Method {
    fn default() -> Method {
        Method {
            repetitions: 5,
            warmup: 1,
            order: Order::Abba,
            protocol: Start::Warm,
            restart: Before::WhenNeeded,
            restore: Before::WhenNeeded,
            counters: Vec::new(),
            slot_s: 1.0,
            profile_hz: 0,
            profile_by: Vec::new(),
            instrumented: None,
            blocks: None,
            baseline: Settings::new(),
            mean: Mean::Median,
            tuples: "tuples".to_owned(),
            charts: Vec::new(),
        }
    }
}

impl Method {
    /// What engines collect.
    pub fn collection(&self) -> CollectionOptions {
        let options = CollectionOptions {
            counters: self.counters.clone(),
            slot_s: self.slot_s,
            profile_hz: self.profile_hz,
            profile_by: self.profile_by.clone(),
        };
        if options.is_nothing() { CollectionOptions::default() } else { options }
    }
}

/// In which order the cells of a block are visited; every repetition visits all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Forward, then backward, in turn: a machine that slows down steadily favours nobody.
    #[default]
    Abba,
    /// Shuffled anew in every repetition, from the study's seed: nor does one that does so in
    /// waves, and no cell always follows the same other one.
    Random,
}

impl Order {
    /// Whether it is the usual one, which fingerprints leave out.
    pub fn is_abba(&self) -> bool {
        *self == Order::Abba
    }
}

/// A chart of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// How it is drawn.
    pub kind: ChartKind,
    /// What stands over it; made from the rest when not given.
    pub title: Option<String>,
    /// The axis of the bars (bars, ratios), or down (heat); `case` when not given.
    pub by: Option<String>,
    /// The axis along x (curves, heat), or of the degrees (steps).
    pub x: Option<String>,
    /// The axis that tells curves, or groups of bars, apart.
    pub series: Option<String>,
    /// The measure along y; `latency` is the median, 95th and 99th percentile together.
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
    /// A coloured table: `by` down, `x` along, the measure (usually `ratio`) in each cell.
    Heat,
    /// The ratios to the baseline around 1, each with its interval: a row per value of `by`.
    Ratios,
    /// From each degree of parallelism along `x` to the next: elapsed time and CPU time.
    Steps,
}

fn throughput() -> String {
    "mtuples_per_s".to_owned()
}
