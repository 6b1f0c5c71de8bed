//! What is collected of a cell beside its time: counters, and a function profile.

use serde::{Deserialize, Serialize};
use workahead_counters::instrumented::Functions;
use workahead_counters::profile::{Profile, ProfileEvent};
use workahead_counters::stream::Stream;

/// What an engine collects in every sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CollectionOptions {
    /// Groups of metrics whose events are counted.
    #[serde(default)]
    pub counters: Vec<String>,
    /// How long each group of events is counted before the next has its turn.
    #[serde(default)]
    pub slot_s: f64,
    /// Samples of a function profile, a second of each CPU's time; none where 0.
    #[serde(default)]
    pub profile_hz: u32,
    /// What profiles are by, one sample of a cell after the other; by time where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profile_by: Vec<ProfileEvent>,
}

impl CollectionOptions {
    /// Whether nothing is collected.
    pub fn is_nothing(&self) -> bool {
        self.counters.is_empty() && self.profile_hz == 0
    }
}

/// What was collected in one sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Collection {
    /// What was counted, slot by slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Stream>,
    /// Where the time went. Its stacks are kept with the first sample of a cell that has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Which functions the instructions are of, where they were counted by a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<Functions>,
    /// Why something requested is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
}
