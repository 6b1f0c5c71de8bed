//! Data collected in the samples of a cell beside its time: counters and function profiles.

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
    /// Samples of a function profile, a second of each CPU's time; none if 0.
    #[serde(default)]
    pub profile_hz: u32,
    /// The events that profiles are by, one for each sample of a cell in turn; time if empty.
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
    /// The counts, slot by slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Stream>,
    /// The function profile. Stacks are kept with the first sample of a cell that has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Functions by instructions, where a model counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub functions: Option<Functions>,
    /// Why something requested is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<String>,
}
