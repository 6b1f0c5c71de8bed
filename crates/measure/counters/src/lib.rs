//! Performance counters: events of a running machine, and the cycles they account for.
//!
//! ```text
//!   table (events, formulas) ──► groups ──► rotation over slots ──► stream of readings
//!                                              ▲ Source: live, process accounting, recorded, mock
//!   stream ──reduce──► rates per instruction ──formulas──► metrics ──► CPI, decomposed
//!
//!   sampler ──► stacks ──symbols──► function profile, flame graph        every 10 ms of CPU time
//!   cachegrind, callgrind ──► instructions and misses by function        by a model: tier D
//! ```
//!
//! The method is that of Keeton et al. (1998, section 2.5): few counters, many events, one group of
//! events at a time on all CPUs at once, every value normalised by the instructions of its own
//! slot. A value that was not counted is never a zero: it is unavailable and carries the reason.
//!
//! Deliberately absent: this crate knows no database and no study, and it never prints.

#![forbid(unsafe_code)]

mod core_source;
pub mod counter;
pub mod cycles;
mod encoding;
pub mod event;
pub mod evidence;
pub mod formula;
pub mod group;
pub mod instrumented;
pub mod live;
pub mod metric;
pub mod metrics;
pub mod mock;
pub mod nearest;
pub mod penalties;
pub mod process_accounting;
pub mod profile;
pub mod rates;
pub mod replay;
pub mod rotation;
pub mod siblings;
pub mod source;
pub mod stopped_child;
pub mod stream;
pub mod table;
pub mod target;
mod text;
mod unavailable;
