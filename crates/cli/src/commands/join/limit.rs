//! How near the lookups came to what the machine's memory can do.

use serde::Serialize;

/// The machine's limit beside what was reached.
#[derive(Debug, Serialize)]
pub(crate) struct Limit {
    /// Independent random cache lines per second, on as many threads.
    random_lines_per_second: f64,
    /// Lookups per second as a share of it: each is one line, if all is well.
    pub(crate) fraction: f64,
}

/// What is said when the limits are not known.
pub(crate) const NOT_MEASURED: &str = "not measured: run workahead limits";

impl Limit {
    /// The saved limit of this machine for a table of so many bytes probed by so many threads.
    pub(crate) fn saved(_table_bytes: usize, _threads: usize, _reached: f64) -> Option<Self> {
        None
    }
}
