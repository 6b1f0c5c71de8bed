//! A short name for the exact contents of a run, so that resuming continues the same one.

use serde::Serialize;

use crate::engine::Engine;
use crate::hash::fnv1a;
use crate::run_plan::RunPlan;

#[derive(Serialize)]
struct Run<'a> {
    engine: &'a str,
    version: String,
    #[serde(rename = "plan")]
    run_plan: &'a RunPlan,
}

/// The fingerprint of a run plan on an engine: cells with all settings, seed, order, repetitions,
/// engine and its version. Titles, charts and the paper's figures may change without one.
pub fn of(run_plan: &RunPlan, engine: &dyn Engine) -> String {
    let run = Run { engine: engine.name(), version: engine.version(), run_plan };
    let text = serde_json::to_string(&run).expect("run plans have only text keys");
    format!("{:016x}", fnv1a(text.as_bytes()))
}
