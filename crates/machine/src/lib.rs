//! What this computer is: topology, siblings, caches, pages, pinning; and its measured limits.
//!
//! Deliberately absent: this crate prints nothing, knows no operator, and reads no table of what a
//! named CPU model ought to do.

pub mod clock;
pub mod cpus;
mod error;
pub mod pages;
pub mod pin;

pub use cpus::CpuSet;
pub use error::Error;
