//! The samples of a cell as a capture: each is a window, its clients (or threads) are the sessions.

use std::collections::BTreeMap;

use workahead_study::capture::{Capture, Figures, WORKING, Window};
use workahead_study::engine::Sample;
use workahead_study::results::Results;

use super::differences::short;

/// Facts of the machine's description, by their place in it.
const FACTS: [(&str, &str); 6] = [
    ("kernel", "/kernel"),
    ("processor", "/processor"),
    ("transparent huge pages", "/huge_pages/transparent"),
    ("SMT", "/smt"),
    ("CPUs online", "/cpus/online"),
    ("CPUs allowed", "/cpus/allowed"),
];

/// A cell of a result.
pub(super) fn of_cell(results: &Results, cell: usize) -> Capture {
    let record = &results.record;
    let samples = results.of_cell(cell).filter_map(|seen| seen.sample());
    let description = |(name, place): &(&str, &str)| {
        Some(((*name).to_owned(), record.host.description.pointer(place)?.to_string()))
    };
    let mut facts: BTreeMap<String, String> = FACTS.iter().filter_map(description).collect();
    facts.insert("server".to_owned(), format!("{} {}", record.engine, record.engine_version));
    facts.insert("workahead".to_owned(), record.command_version.clone());
    let settings = &results.run_plan.cells[cell].settings;
    let plan = results.plan_of(cell).cloned();
    Capture {
        software: record.engine.clone(),
        counted: short(&results.spec.method.tuples),
        facts,
        settings: settings.iter().map(|(name, value)| (name.clone(), value.to_string())).collect(),
        windows: samples.map(window).collect(),
        plans: plan.into_iter().map(|plan| ("its query".to_owned(), plan)).collect(),
        ..Capture::default()
    }
}

fn window(sample: &Sample) -> Window {
    let measure = |name: &str| sample.measures.get(name).copied();
    let sessions = measure("clients").or_else(|| measure("threads")).unwrap_or(1.0).max(1.0);
    let mut counts: Figures = sample.measures.clone();
    if let Some(cpu_s) = measure("server_cpu_s").or(sample.cpu_s) {
        counts.insert("server_cpu_s".to_owned(), cpu_s);
        // Without it what was waited for is not known, and all of it is left over.
        counts.entry("run_delay_s".to_owned()).or_insert(0.0);
    }
    Window {
        seconds: sample.wall_s,
        ended: sample.tuples as f64,
        sessions: Figures::from([(WORKING.to_owned(), sessions)]),
        counts,
    }
}
