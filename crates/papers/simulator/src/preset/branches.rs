//! Branch prediction of a machine.

use serde::{Deserialize, Serialize};

use super::{AllowedRange, ENTRIES, ENTRIES_RANGE, Sharing, allowed};

/// Bits of a branch's own history at most: sixteen counters of two bits are a word.
pub(crate) const OWN_HISTORY_MAX: u32 = 4;

/// Whose outcomes a branch is predicted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Histories {
    /// Those of all branches of a thread.
    #[default]
    Global,
    /// The branch's own (Yeh and Patt 1991), at most four bits, in its entry of the target buffer.
    PerBranch,
}

/// Branch prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Branches {
    /// Entries of the branch target buffer.
    pub targets: u32,
    /// Entries per set.
    pub ways: u32,
    /// Bits of history.
    pub history: u32,
    /// Whose outcomes a history is of.
    #[serde(default)]
    pub histories: Histories,
    /// Cycles of a misprediction.
    pub mispredict: f64,
    /// Sharing of the counters that histories select.
    #[serde(default)]
    pub history_sharing: Sharing,
    /// Whether a thread finds only entries that it trained itself; of global histories.
    #[serde(default)]
    pub history_tagged: bool,
    /// Sharing of targets.
    #[serde(default)]
    pub targets_sharing: Sharing,
}

impl Branches {
    /// Figures with their allowed values.
    pub(super) fn figures(&self) -> [(&'static str, f64, AllowedRange); 3] {
        let history = match self.histories {
            Histories::Global => allowed((1.0, 20.0), "1 to 20"),
            Histories::PerBranch => {
                allowed((1.0, f64::from(OWN_HISTORY_MAX)), "1 to 4, of each branch")
            }
        };
        let mispredict = allowed((0.0, 1e5), "0 to 100000");
        [
            ("branches.targets", self.targets.into(), allowed(ENTRIES, ENTRIES_RANGE)),
            ("branches.history", self.history.into(), history),
            ("branches.mispredict", self.mispredict, mispredict),
        ]
    }
}
