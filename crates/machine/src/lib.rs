//! This computer: topology, siblings, caches, pages, pinning; and its measured limits.
//!
//! Deliberately absent: this crate prints nothing, knows no operator, and reads no table of what a
//! named CPU model ought to do.

pub mod allocator;
pub mod atomic_file;
pub mod caches;
mod cgroup;
pub mod clock;
pub mod control;
pub mod cpus;
mod error;
pub mod evidence_tier;
pub mod guarded;
pub mod limits;
pub mod links;
pub mod machine;
pub mod memory;
pub mod nesting;
pub mod pages;
pub mod pin;
pub mod pipe;
pub mod private_directory;
pub mod process;
pub mod regular_file;
pub mod scheduling;
pub mod search_path;
mod sysroot;
pub mod tlb;
pub mod topology;
pub mod tuning;
pub mod virtualisation;

pub use cpus::CpuSet;
pub use error::Error;
pub use evidence_tier::EvidenceTier;
pub use machine::Machine;
pub use sysroot::Sysroot;
