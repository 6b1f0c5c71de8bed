//! Data collected in the samples of a cell beside its time: counters and function profiles.

use serde::{Deserialize, Serialize};
use workahead_counters::instrumented::Functions;
use workahead_counters::profile::{Profile, ProfileEvent};
use workahead_counters::stream::Stream;

/// The collection of an engine in every sample.
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

/// Those of all samples of a cell are put together, each compared with each.
const LACKS_MAX: usize = 256;
const GROUPS_MAX: usize = 256;
const LEFT_OUT_MAX: usize = 1024;

/// The collection of one sample.
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

impl Collection {
    /// Whether it fits together, as those believe who sum it up.
    pub(crate) fn check(&self) -> Result<(), String> {
        let too_many = |what: &str, most: usize| Err(format!("it has more than {most} {what}"));
        if self.lacks.len() > LACKS_MAX {
            return too_many("reasons why something is missing", LACKS_MAX);
        }
        if self.counts.iter().any(|counts| counts.header.groups.len() > GROUPS_MAX) {
            return too_many("groups of counters", GROUPS_MAX);
        }
        if self.counts.iter().any(|counts| counts.header.left_out.len() > LEFT_OUT_MAX) {
            return too_many("counters that were left out", LEFT_OUT_MAX);
        }
        self.counts.iter().try_for_each(Stream::check)?;
        self.profile.iter().try_for_each(Profile::check)
    }
}

#[cfg(test)]
mod tests {
    use workahead_counters::profile::{Clock, Stack};
    use workahead_counters::stream::Slot;

    use super::*;

    #[test]
    fn numbers_without_a_group_or_a_frame_are_refused() {
        let slot = Slot { group: 7, begun_s: 0.0, wall_s: 1.0, cpus: Vec::new(), spoilt: None };
        let counts = Stream { slots: vec![slot], ..Stream::default() };
        let counted = Collection { counts: Some(counts), ..Collection::default() };
        assert_eq!(counted.check(), Err("there is no group 7".to_owned()));
        let profiled = |frames: Vec<u32>| {
            let profile = Profile {
                clock: Clock::CpuClock,
                frequency_hz: 99,
                duration_s: 1.0,
                samples: 1,
                events: 1,
                kernel_samples: None,
                lost: 0,
                truncated: 0,
                unsampled_threads: 0,
                functions: Vec::new(),
                frames: Vec::new(),
                stacks: vec![Stack { frames, samples: 1, events: 1 }],
            };
            Collection { profile: Some(profile), ..Collection::default() }.check()
        };
        assert_eq!(profiled(Vec::new()), Ok(()));
        assert_eq!(profiled(vec![5]), Err("there is no frame 5".to_owned()));
        let deep = Err("a stack has more than 1024 frames".to_owned());
        assert_eq!(profiled(vec![0; 100_000]), deep);
    }
}
