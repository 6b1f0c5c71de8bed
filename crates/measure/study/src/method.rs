//! The `[method]` of a study: repetitions, order, baseline, charts.

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
    /// Contents of caches and buffers when a sample starts. An axis `protocol` overrides it.
    pub protocol: Start,
    /// When a server is restarted.
    pub restart: Before,
    /// When data is restored to its state after loading.
    pub restore: Before,
    /// Groups of metrics to count in every sample, such as `cpi` and `l2`; `all` is every one.
    pub counters: Vec<String>,
    /// How long each group of events is counted before the next has its turn.
    pub slot_s: f64,
    /// Samples a second of each CPU's time, for a profile of functions; none where 0.
    pub profile_hz: u32,
    /// The events of function profiles: `time`, `l2_misses`, `l3_misses`, `dtlb_misses`. Samples of
    /// a cell take them in turn. Time if empty.
    pub profile_by: Vec<ProfileEvent>,
    /// The tool that every cell is run under, to count by a model; none if missing.
    pub instrumented: Option<Instrumentation>,
    /// The axes that change the data, outermost first. All of them when not given; `case` never
    /// unless named.
    pub blocks: Option<Vec<String>>,
    /// Ratios are against the cell that equals this one but for these axes. None when empty.
    pub baseline: Settings,
    /// How the samples of a cell become one figure.
    pub mean: Mean,
    /// The unit of throughputs, for labels: `probes`, `rows`.
    pub tuples: String,
    /// The charts of the report; chosen by axes and measures if empty.
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
    /// The collection of engines.
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
    /// Forward, then backward, in turn: a machine that slows down steadily favours no cell.
    #[default]
    Abba,
    /// Shuffled in every repetition, by the study's seed: against periodic slow-downs, and so that
    /// no cell always follows the same other one.
    Random,
}

impl Order {
    /// Whether it is the default, which fingerprints leave out.
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
    /// The heading; derived from the other keys if missing.
    pub title: Option<String>,
    /// The axis of the bars (bars, ratios), or down (heat); `case` when not given.
    pub by: Option<String>,
    /// The axis along x (curves, heat), or of the degrees (steps).
    pub x: Option<String>,
    /// The axis of the curves, or of the groups of bars.
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
