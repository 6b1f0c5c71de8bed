//! One observation: a sample of a cell, or the reason why there is none; one line of the log.

use serde::{Deserialize, Serialize};

use crate::engine::Sample;
use crate::setting::Settings;

/// A line of `observations.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Id of the study.
    pub study: String,
    /// Fingerprint of the run plan it belongs to.
    #[serde(alias = "plan")]
    pub run_plan_fingerprint: String,
    /// Index of the cell in the run plan.
    pub cell: usize,
    /// The cell's settings.
    pub settings: Settings,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Position in the order of its repetition, from 0.
    pub slot: usize,
    /// When it was kept, milliseconds since 1970.
    pub unix_ms: u64,
    /// The sample, or the failure.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The sample, or the failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Outcome {
    /// A sample.
    Sample(Sample),
    /// No sample; the cell is not tried again.
    Failed {
        /// Why.
        failure: String,
    },
}

impl Observation {
    /// The sample, unless the cell failed.
    pub fn sample(&self) -> Option<&Sample> {
        match &self.outcome {
            Outcome::Sample(sample) => Some(sample),
            Outcome::Failed { .. } => None,
        }
    }

    /// A measure by name: `wall_s`, `cpu_s`, `mtuples_per_s`, `ns_per_tuple`,
    /// `cpu_ns_per_tuple` or one of the engine's.
    pub fn measure(&self, name: &str) -> Option<f64> {
        self.sample().and_then(|sample| sample.measure(name))
    }
}

impl Sample {
    /// Millions of tuples per second.
    pub fn mtuples_per_s(&self) -> f64 {
        self.tuples as f64 / self.wall_s / 1e6
    }

    /// A measure by name: `wall_s`, `cpu_s`, `mtuples_per_s`, `ns_per_tuple`,
    /// `cpu_ns_per_tuple` or one of the engine's.
    pub fn measure(&self, name: &str) -> Option<f64> {
        match name {
            "wall_s" => Some(self.wall_s),
            "cpu_s" => self.cpu_s,
            "mtuples_per_s" => Some(self.mtuples_per_s()),
            "ns_per_tuple" => Some(self.wall_s * 1e9 / self.tuples as f64),
            "cpu_ns_per_tuple" => self.cpu_s.map(|cpu_s| cpu_s * 1e9 / self.tuples as f64),
            _ => self.measures.get(name).copied(),
        }
    }
}
