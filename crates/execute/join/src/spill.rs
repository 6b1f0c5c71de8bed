//! Spilling: partitions of both sides in files, each pair of them joined later.
//!
//! ```text
//! build ─► Partitioner ─┬─ in-memory partitions ─► one table                   probed at once
//!                       └─ spilled partitions ───► a file each ─┐
//! probe ─► Partitioner ─┬─ in-memory partitions ─► that table   ├─► PartitionPair, joined
//!                       └─ spilled partitions ───► a file each ─┘   one level deeper, or by
//!                                                                   block nested loops (a hot key)
//! ```
//!
//! The hybrid hash join (Shapiro, *Join Processing in Database Systems with Large Main Memories*,
//! TODS 1986), the largest partition spilled first (Nakayama, Kitsuregawa, Takagi, VLDB 1988), its
//! last resort as Jahangiri, Carey, Freytag recommend (*Design Trade-offs for a Robust Dynamic
//! Hybrid Hash Join*, VLDB 2022). Each level has bits of the hash of its own.

mod block_nested_loop;
mod blocks;
mod compression;
mod counts;
#[cfg(test)]
mod faulty_file;
mod file;
mod level;
mod merge;
mod partition_buffer;
mod partition_join;
mod partitioner;
mod partitions;
mod probe_files;
mod runs;
mod sizes;

pub(crate) use counts::SpillCounters;
pub use counts::SpillMetrics;
#[cfg(test)]
pub(crate) use faulty_file::{FileFault, FileFaults};
pub(crate) use file::SpillFile;
pub use file::{SpillDirectory, SpillError};
pub(crate) use level::Level;
pub(crate) use partition_join::{PartitionJoin, PartitionPair};
pub(crate) use partitioner::Partitioner;
pub(crate) use partitions::{Partitions, SpilledPartition};
pub(crate) use probe_files::{ProbeFiles, ProbeSpill};
pub(crate) use runs::Runs;
pub(crate) use sizes::Sizes;
