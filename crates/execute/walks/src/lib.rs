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
//! Slices only: this crate knows no Arrow, no file and no clock.

pub mod bloom;
pub mod bucket;
pub mod chained;
pub mod columnar;
pub mod conformance;
pub mod hash;
pub mod isa;
pub mod join_index;
pub mod materialise;
pub mod memory;
pub mod perfect_hash;
pub mod place;
pub mod random;
pub mod record;
pub mod schedule;
pub mod selection;
pub mod speed_model;
pub mod split_references;
pub mod technique;
pub mod threads;
pub mod traced;
pub mod tree;
pub mod walk;
pub mod work_ahead;

pub use memory::{Direct, Hint, Memory, Prefetching};
pub use place::{Intent, Place, References, Several};
pub use schedule::{Pause, Schedule};
pub use technique::Technique;
pub use walk::{Row, Rows, Sink, Walk};
