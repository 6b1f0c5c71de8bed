//! Studies: spec → run plan → run → observations → statistics.
//!
//! ```text
//!   TOML ──Spec──► Plan ──run──► observations.jsonl ──Results──► findings, verdicts
//!                   ▲             │ fsynced per sample            (report, cli)
//!                 Engine ◄────────┘ check, prepare, run, finish
//! ```
//!
//! A *study* is data: a TOML file that names an engine, a workload, axes, cases and a method. This
//! crate turns it into cells, runs them in complete blocks in ABBA order on anything that is an
//! [`engine::Engine`], keeps every sample at once, and computes the findings. Deliberately absent:
//! it never prints, never reads the command line, and measures nothing itself (engines do).

#![forbid(unsafe_code)]

pub mod capture;
pub mod catalogue;
pub mod cell;
mod cell_index;
pub mod claim;
pub mod classes;
pub mod collection;
pub mod comparison;
pub mod contrast;
pub mod directory;
pub mod engine;
pub mod error;
pub mod estimate;
pub mod file;
pub mod findings;
pub mod fingerprint;
mod hash;
pub mod host;
pub mod instrument;
pub mod label;
pub mod log;
pub mod measure;
pub mod method;
pub mod needs;
pub mod observation;
pub mod plans;
pub mod protocol;
pub mod record;
pub mod results;
pub mod run_plan;
pub mod runner;
pub mod session;
pub mod setting;
pub mod spec;
pub mod statistics;
pub mod table;
pub mod testing;
pub mod throughput;
pub mod verdict;
pub mod worker_process;

pub use workahead_counters::nearest;
