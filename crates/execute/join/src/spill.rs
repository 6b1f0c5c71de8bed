//! What does not fit into memory: partitions of both sides in files, each pair joined later.
//!
//! ```text
//! build ─► Router ─┬─ resident partitions ──► one table                 probed at once
//!                  └─ spilled partitions ───► a file each ──┐
//! probe ─► Router ─┬─ rows of the resident ─► that table    ├─► Pair ─► joined like a whole join,
//!                  └─ rows of the spilled ──► a file each ──┘           one level deeper
//!                                                                   └─► or in chunks (one hot key)
//! ```
//!
//! The hybrid hash join (Shapiro, *Join Processing in Database Systems with Large Main Memories*,
//! TODS 1986), the largest partition spilled first (Nakayama, Kitsuregawa, Takagi, VLDB 1988), its
//! last resort as Jahangiri, Carey, Freytag recommend (*Design Trade-offs for a Robust Dynamic
//! Hybrid Hash Join*, VLDB 2022). Each level has bits of the hash of its own.

mod blocks;
mod chunked;
mod counts;
mod file;
mod pair;
mod partitions;
mod pile;
mod probed;
mod router;
mod sizes;

pub(crate) use counts::Counts;
pub use counts::SpillMetrics;
pub(crate) use file::SpillFile;
pub use file::{SpillDirectory, SpillError};
pub(crate) use pair::{Pair, PairJoin};
pub(crate) use partitions::{Partitions, SpilledPartition};
pub(crate) use probed::{AllKept, ProbeFiles};
pub(crate) use router::Router;
pub(crate) use sizes::Sizes;
