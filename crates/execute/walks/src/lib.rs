//! Walks over memory: joins and index lookups that work ahead of their cache misses.
//!
//! A relational operator over memory is, per row, a *walk*: touch a place, decide, touch the
//! next. A [`Walk`] returns the place it will touch next and does nothing else about it; every
//! technique in the literature is then a choice of who reacts to that place, and when:
//!
//! ```text
//!  rows ──start──► Cursor ──step──► Some(places) ──► Memory::fetch(places) … resume later
//!                     │  ▲               │             Direct: nothing     Prefetching: a hint
//!                     ▼  └───────────────┘             Traced: recorded    work-ahead set: posted
//!                   Sink  ◄── at most one hit a step   None ──► row finished, lane refilled
//! ```
//!
//! Slices only: this crate knows no Arrow, no file and no clock. Without the feature `std` it has
//! walks, schedules and memories, and uses nothing but `alloc`; the tables, trees, threads and the
//! helper need pages and pinning, and with them `workahead-machine`.

#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

/// The example of the README is tried.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "std")]
pub mod bloom;
#[cfg(feature = "std")]
pub mod bucket;
#[cfg(feature = "std")]
pub mod chained;
#[cfg(feature = "std")]
pub mod columnar;
#[cfg(feature = "std")]
pub mod conformance;
#[cfg(feature = "std")]
mod executor;
pub mod hash;
pub mod isa;
#[cfg(feature = "std")]
pub mod join_index;
#[cfg(feature = "std")]
pub mod materialise;
pub mod memory;
#[cfg(feature = "std")]
pub mod perfect_hash;
pub mod place;
pub mod random;
#[cfg(feature = "std")]
pub mod record;
pub mod schedule;
#[cfg(feature = "std")]
pub mod selection;
#[cfg(feature = "std")]
pub mod split_references;
#[cfg(feature = "std")]
pub mod technique;
#[cfg(feature = "std")]
pub mod threads;
#[cfg(feature = "std")]
pub mod traced;
#[cfg(feature = "std")]
pub mod tree;
pub mod walk;
#[cfg(feature = "std")]
pub mod work_ahead;

#[cfg(feature = "std")]
pub use executor::Executor;
pub use memory::{Direct, Hint, Memory, Prefetching};
pub use place::{Intent, Place, References, Several};
pub use schedule::{Pause, Schedule};
#[cfg(feature = "std")]
pub use technique::Technique;
pub use walk::{Row, Rows, Sink, Walk};
