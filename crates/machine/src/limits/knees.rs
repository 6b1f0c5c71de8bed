//! The sizes of caches, out of the latency curve.

use serde::{Deserialize, Serialize};

/// Sizes of caches as the latency curve shows them; `None` where it shows no knee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Knees {
    /// The second-level cache.
    pub l2_bytes: Option<usize>,
    /// The last-level cache, as far as it is ours.
    pub useful_llc_bytes: Option<usize>,
}
