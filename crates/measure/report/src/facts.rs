//! Facts to judge or repeat a figure: the machine, its limits, the method, versions.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use workahead_machine::Machine;
use workahead_machine::limits::Limits;
use workahead_study::comparison;
use workahead_study::instrument::Model;
use workahead_study::method::Order;
use workahead_study::protocol::Start;
use workahead_study::statistics::Mean;

use crate::view::View;
use crate::{date, number, words};

mod json;
mod limits;
mod machine;

/// A name and its value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Fact {
    fn new(name: &str, value: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: value.into() }
    }
}

/// The machine as its crate describes it, when the record holds that description.
pub(crate) fn machine_of(view: &View<'_>) -> Option<Machine> {
    Machine::deserialize(&view.results.record.host.description).ok()
}

/// The machine; generic facts for descriptions of other versions.
pub(crate) fn machine(view: &View<'_>) -> Vec<Fact> {
    let host = &view.results.record.host;
    let mut facts = match machine_of(view) {
        Some(machine) => machine::facts(&machine),
        None => {
            let mut facts = vec![Fact::new("machine", host.name.clone())];
            facts.extend(json::facts(&host.description));
            facts
        }
    };
    let reason = if host.tier_reason.is_empty() { "" } else { " – " };
    facts.push(Fact::new("evidence", format!("{}{reason}{}", view.tier(), host.tier_reason)));
    facts
}

/// The machine's measured limits; generic facts for those of other versions, and for what can't be
/// reckoned with.
pub(crate) fn limits(view: &View<'_>) -> Vec<Fact> {
    let Some(kept) = &view.results.record.limits else { return Vec::new() };
    match Limits::read(kept.clone()) {
        Some(limits) => limits::facts(&limits),
        None => json::facts(kept),
    }
}

/// How it was run.
pub(crate) fn method(view: &View<'_>) -> Vec<Fact> {
    let results = view.results;
    let method = &results.spec.method;
    let run_plan = &results.run_plan;
    let mean = match method.mean {
        Mean::Plain => "arithmetic mean",
        Mean::Trimmed => "mean without the smallest and the largest sample",
        Mean::Median => "median",
        Mean::Cleaned => "mean without outliers",
    };
    let warmup = match run_plan.warmup {
        0 => "none".to_owned(),
        rounds => format!("{}, thrown away", words::counted(rounds as usize, "round")),
    };
    let blocks = results.spec.block_names();
    let blocks = match blocks.is_empty() {
        true => String::new(),
        false => format!(
            " (one per value of {})",
            blocks.iter().map(|name| words::axis(name)).collect::<Vec<_>>().join(" × ")
        ),
    };
    let mut facts = vec![
        Fact::new(
            "cells",
            format!(
                "{} in {}{blocks}",
                number::count(run_plan.cells.len() as u64),
                words::counted(run_plan.blocks, "block")
            ),
        ),
        Fact::new("repetitions", format!("{} per cell", run_plan.repetitions)),
        Fact::new("order", order(method.order)),
        Fact::new("protocol", protocol(method.protocol)),
        Fact::new("warm-up", warmup),
        Fact::new("figure of a cell", format!("{mean} of its samples")),
        Fact::new("baseline", view.baseline().unwrap_or_else(|| "none".to_owned())),
        Fact::new(
            "ratios",
            "geometric mean of the ratios of samples of the same repetition, with Student's 95 % interval of their \
             logarithms; an interval that includes 1 is written “no difference shown”",
        ),
        Fact::new(
            "many ratios",
            "p values are adjusted for all ratios of the study together (Holm 1979)",
        ),
        Fact::new(
            "mean ± deviation",
            "Hassanein's rule (2008) makes no claim where these overlap; it stands beside the ratio's \
             interval, which decides",
        ),
        Fact::new(
            if results.is_timed() { "a throughput counts" } else { "figures are for each of" },
            method.tuples.clone(),
        ),
        Fact::new("seed", results.record.seed.to_string()),
        Fact::new(
            "scale",
            results.spec.scale.clone().unwrap_or_else(|| "the study's own".to_owned()),
        ),
    ];
    if !results.is_timed() {
        let of_throughput = ["baseline", "ratios", "many ratios", "mean ± deviation"];
        facts.retain(|fact| !of_throughput.contains(&fact.name.as_str()));
    }
    facts.extend(results.record.models.iter().map(model));
    facts
}

/// The caches of a model, and where their numbers are from.
fn model(model: &Model) -> Fact {
    let origins = model.origins.join("; ");
    Fact::new(&format!("caches {}", model.caches), format!("{}. {origins}", model.geometry))
}

fn order(order: Order) -> &'static str {
    match order {
        Order::Abba => {
            "complete blocks, ABBA: forward in even repetitions, backward in odd ones, so that a drift \
             favours no cell"
        }
        Order::Random => "complete blocks, shuffled anew in every repetition, from the seed",
    }
}

fn protocol(start: Start) -> &'static str {
    match start {
        Start::Warm => "warm: the work has run before it is measured",
        Start::Cold => "cold: buffers and cached plans are emptied before every sample",
    }
}

/// Settings common to all cells.
pub(crate) fn settings(view: &View<'_>) -> Vec<Fact> {
    let shared = comparison::shared_settings(view.results);
    shared.into_iter().map(|(name, value)| Fact { name, value: value.to_string() }).collect()
}

/// Versions and dates.
pub(crate) fn versions(view: &View<'_>) -> Vec<Fact> {
    let record = &view.results.record;
    let mut facts = vec![
        Fact::new("study", record.study.clone()),
        Fact::new("run plan fingerprint", record.run_plan_fingerprint.clone()),
        Fact::new("engine", format!("{} {}", record.engine, record.engine_version)),
        Fact::new("workahead", record.command_version.clone()),
        Fact::new("started", date::utc(record.started_unix_ms)),
    ];
    if let Some(last) = view.results.observations.iter().map(|seen| seen.unix_ms).max() {
        facts.push(Fact::new("last sample", date::utc(last)));
    }
    if !view.results.spec.ledger.is_empty() {
        facts.push(Fact::new("ledger rows", view.results.spec.ledger.join(", ")));
    }
    facts
}

/// Whether a value is worth showing.
fn is_telling(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}
