//! The papers' operators as an engine of studies: every technique and number of threads, on data
//! generated from a seed, with every answer compared with an oracle's.
//!
//! ```text
//! Cell ─► Shape (which data) ─► Operator (data in place, oracle's answer) ─┐
//!      └► Execution (technique, threads) ──────────────────────────────────┴─► Platform ─► result
//! ```
//!
//! A platform is the machine that an operator runs on. The engine `native` uses this machine, with
//! pinned threads; the crate `modelled` implements a platform on modelled machines.
//!
//! # Settings
//! | key | values |
//! |---|---|
//! | `operator` | `hash_join`, `csb_tree`, `join_index`, `columnar`, `bucket`, `heterogeneous`, `interference` |
//! | `rows`, or `size` | rows of the table; or `in-cache`, `knee`, `out-of-cache` of this machine |
//! | `probe_rows` | probing rows; default: as many as the table has, and a million at least |
//! | `probes` | `unclustered` (random row ids), `announced` (the same, each row in a stage of its own), `clustered` (memory order) |
//! | `pages` | `huge`, `small` |
//! | `technique` | a [`Technique`](workahead_walks::technique::Technique) |
//! | `threads` | `1`, `independent:N`, `bi:N` (even and odd rows), `bi:N,split=morsels` |
//! | `placement` | a [`Placement`](workahead_machine::control::placement::Placement): `cores-first`, `siblings-first` (cores first on a machine without, and the result says so) |
//! | `set_size`, or `l2_share` | references of a work-ahead set; or the share of the second-level cache that all sets together preload |
//! | `node_bytes`, `search`, `upper_levels` | of `csb_tree`: 128 or 64, `scalar` or `simd`, `stepwise` or `at-once` |
//! | `tree` | of `csb_tree`: `bulk-loaded`, the paper's, or `growing`: the ordered index of `workahead-lookup` |
//! | `skew` | of `hash_join` and `bucket`: exponent of Zipf's law for the probe keys |
//! | `results` | of `hash_join`: `batches`, or `whole` to be merged and ordered |
//! | `record_bytes` | of `hash_join` and `join_index`: 64, or 32, 128, 256 |
//! | `join`, `null_percent` | of `join_index`: `inner` or `left-outer`, and its nulls |
//! | `references` | of `join_index`: `together`, or `apart` in stages of one each |
//! | `hit_rate`, `load_percent` | of `bucket` |
//! | `caches` | of a model, where the method is `instrumented`: a preset's name, or three shapes |
//! | `tree_rows` | of `heterogeneous` |

#![forbid(unsafe_code)]

mod bucket;
mod by_role;
mod ceiling;
mod columnar;
pub mod engine;
pub mod execution;
mod hash_join;
mod heterogeneous;
mod instrumented;
mod interference;
mod join_index;
mod merge;
pub mod operator;
pub mod oracle;
pub mod prepared;
mod record_bytes;
pub mod run;
pub mod shape;
pub mod size;
mod speed_model;
mod tree;
mod worker_group;

#[cfg(test)]
mod tests;

use engine::{NAME, Native};
use workahead_engines::scheduler::WithScheduler;
use workahead_study::engine::{EngineEntry, EngineRegistry};

/// Registers the engine.
pub fn register(registry: &mut EngineRegistry) {
    registry.register(EngineEntry {
        name: NAME,
        description: "walks over real memory, in this process",
        open: |context| Ok(Box::new(WithScheduler(Box::new(Native::open(context)?)))),
        open_worker: Some(|context| Ok(Box::new(Native::open(context)?))),
    });
}
