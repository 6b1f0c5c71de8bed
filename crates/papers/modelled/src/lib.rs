//! Modelled machines as an engine of studies: the operators of `workahead-native` walking on them,
//! and whole workloads whose code is a footprint.
//!
//! ```text
//!   workload = "…" ──► a driver of `workahead-simulator` ──► counts ──► figures by counters' names
//!   operator = "…" ──► the walks themselves, recorded step by step
//! ```
//!
//! | key | values |
//! |---|---|
//! | `workload` | what is run; without it `operator` says which walk |
//! | `machine` | a modelled machine, with variants: `p4-ht-2m`, `ppro-quad/4p-512k` |
//! | `model.PATH` | a figure of it that is changed: `"model.cache.L2.bytes" = 1048576` |
//! | `siblings` | `on`; `off` for one thread a core, which has all of it |
//! | `placement` | `compact` fills a core's threads first, `scatter` the cores |
//!
//! The other keys are those of the workload, or of the walk. Every figure is modelled: tier E.

#![forbid(unsafe_code)]

mod cycles_lost;
mod engine;
mod figures;
mod machine;
mod micro;
mod orders;
mod queues;
mod sysbench;
mod walks;
mod workload;

use engine::NAME;
use workahead_study::engine::{EngineEntry, EngineRegistry};

pub use engine::{Modelled, description};
pub use workload::Description;

/// Adds the engine to those of a program.
pub fn register(registry: &mut EngineRegistry) {
    registry.register(EngineEntry {
        name: NAME,
        description: "walks and whole workloads on modelled machines",
        open: |context| Ok(Box::new(Modelled::open(context)?)),
        open_worker: None,
    });
}
