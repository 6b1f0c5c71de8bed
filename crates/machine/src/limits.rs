//! The limits of this machine, measured.
//!
//! ```text
//! touch memory ─► latency over sizes ─► cache sizes: L2, the last level that is really ours
//!              ─► random lines/s over sizes × threads × pages × methods
//!              ─► sequential bandwidth
//! two CPUs     ─► do they share a core?          pause ─► what one costs
//! ```
//!
//! The figures are the best of several passes: a limit is what the machine can do when nobody
//! disturbs it. They are kept per machine ([`Store`]), looked up by size ([`lookup`]) and never
//! read from a table of CPU models.

pub mod bandwidth;
mod budget;
pub mod cache_sizes;
mod curve;
mod deadline;
pub mod field;
pub mod latency;
mod limitations;
pub mod lines;
pub mod lookup;
mod measure;
mod pause;
mod rounded;
#[cfg(test)]
mod sample;
pub mod siblings;
mod store;
mod team;

use serde::{Deserialize, Serialize};

use crate::pages::Pages;

pub use bandwidth::BandwidthPoint;
pub use budget::{Budget, Progress};
pub use cache_sizes::CacheSizes;
pub use latency::LatencyPoint;
pub use lines::LinesPoint;
pub use siblings::Siblings;
pub use store::{Origin, SourcedLimits, Store};

/// Words of a huge page.
const HUGE_PAGE_WORDS: usize = crate::pages::HUGE_PAGE_BYTES / size_of::<u64>();

/// The form of [`Limits`] as saved; files of another version are measured again.
pub const VERSION: u32 = 3;

/// The measured limits of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// [`VERSION`] of the program that measured.
    pub version: u32,
    /// [`Machine::fingerprint`](crate::Machine::fingerprint) of the machine measured.
    pub machine: String,
    /// The processor's name.
    pub processor: Option<String>,
    /// When it was measured: seconds since 1970.
    pub taken_unix_s: u64,
    /// How long it took.
    pub seconds: f64,
    /// Whether it was a quick look: fewer sizes, less memory, fewer passes.
    pub quick: bool,
    /// Nanoseconds of a load that waits for the one before it, by pages, then size.
    pub latency: Vec<LatencyPoint>,
    /// Independent random lines per second, by pages, threads, then size.
    pub lines: Vec<LinesPoint>,
    /// Sequential bytes per second, by threads.
    pub bandwidth: Vec<BandwidthPoint>,
    /// The instruction sets tried for bandwidth.
    pub instruction_sets: Vec<String>,
    /// Nanoseconds of the processor's pause instruction.
    pub pause_ns: f64,
    /// Which CPUs share a core, as the system says and as they behave.
    pub siblings: Siblings,
    /// Sizes of the caches, out of the latency curve.
    pub cache_sizes: CacheSizes,
    /// Whether buffers that ask for huge pages lie on them: the share of bytes that did.
    pub huge_share: Option<f64>,
    /// The share of the time for which the measuring threads had their CPUs: well below 1, the
    /// machine had other work, and figures are lower than they need be.
    pub presence: f64,
    /// Limits that could not be measured, in words.
    pub limitations: Vec<String>,
}
