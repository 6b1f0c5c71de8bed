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
//! | `workload` | the workload; without it `operator` selects a walk |
//! | `machine` | a modelled machine, with variants: `p4-ht-2m`, `ppro-quad/4p-512k` |
//! | `model.PATH` | overrides a figure of the machine: `"model.cache.L2.bytes" = 1048576` |
//! | `siblings` | `on`; `off` for one thread per core, which has all of its resources |
//! | `placement` | `compact` fills a core's threads first, `scatter` the cores |
//!
//! The other keys are those of the workload or the walk. Every figure is modelled: tier E.

#![forbid(unsafe_code)]

mod cycles_lost;
mod draws;
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

pub use engine::{ModelledEngine, description};
pub use workload::Description;

/// Registers the engine.
pub fn register(registry: &mut EngineRegistry) {
    registry.register(EngineEntry {
        name: NAME,
        description: "walks and whole workloads on modelled machines",
        open: |context| Ok(Box::new(ModelledEngine::open(context)?)),
        open_worker: None,
    });
}
