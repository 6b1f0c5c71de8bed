//! Bytes per second of reading and storing one line after the other.

use serde::{Deserialize, Serialize};

/// Sequential bytes per second of all threads together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BandwidthPoint {
    /// The footprint, divided among the threads.
    pub bytes: usize,
    /// Threads, each on its own CPU.
    pub threads: usize,
    /// Read.
    pub read_bytes_per_s: f64,
    /// Stored in the ordinary way, through the caches.
    pub store_bytes_per_s: f64,
    /// Stored past the caches; `None` where the processor has no such store that we know.
    pub non_temporal_store_bytes_per_s: Option<f64>,
}
