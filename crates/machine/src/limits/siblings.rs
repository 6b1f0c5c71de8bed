//! Whether two CPUs share a core, told by what they do to each other.

use serde::{Deserialize, Serialize};

/// What is known about pairs of CPUs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Siblings {
    /// The pairs probed.
    pub pairs: Vec<Pair>,
}

/// Two CPUs that were probed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The CPUs.
    pub cpus: (usize, usize),
    /// Work done by both at once, divided by the work each does alone, added up: 2 for two cores,
    /// about 1 for siblings.
    pub together: f64,
}
