//! The configuration of a figure: whose cycles, on how many processors, with which cache.

use serde::{Deserialize, Serialize};

use workahead_counters::event::Privilege;

/// The configuration of a figure. The paper does not vary or does not give an absent field there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Configuration {
    /// Whose cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privilege: Option<Privilege>,
    /// Processors in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<u8>,
    /// Size of the second-level cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub l2_kib: Option<u32>,
    /// Bus transactions that a processor may have outstanding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u8>,
    /// Which accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// Which state the line was in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// The work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
}

impl Configuration {
    /// This configuration, with the values of the outer one where it leaves some open.
    pub(super) fn or(self, outer: &Configuration) -> Configuration {
        Configuration {
            privilege: self.privilege.or(outer.privilege),
            processors: self.processors.or(outer.processors),
            l2_kib: self.l2_kib.or(outer.l2_kib),
            outstanding: self.outstanding.or(outer.outstanding),
            access: self.access.or(outer.access),
            state: self.state.or(outer.state),
            workload: self.workload.or_else(|| outer.workload.clone()),
        }
    }
}

/// Accesses to a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Of instructions.
    Fetch,
    /// Of data, to read.
    Load,
    /// Of data, to write.
    Store,
}

/// States of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The only copy, and dirty.
    Modified,
    /// The only copy, and clean.
    Exclusive,
    /// Others may have it too.
    Shared,
    /// A miss.
    Invalid,
}
