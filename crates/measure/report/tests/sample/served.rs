//! A result of a served database, as a two-core machine without siblings gives it.

use std::collections::BTreeMap;

use workahead_study::cell::Cell;
use workahead_study::engine::{Answer, Sample};
use workahead_study::observation::{Observation, Outcome};
use workahead_study::plans::{PlanText, Planner};
use workahead_study::results::Results;

use super::{results, unit};

const STUDY: &str = include_str!("served.toml");

/// A finished run whose cells without siblings are unavailable; one query's plan changes, the
/// other's is cheaper in parallel, and was run with a clock in its operators.
pub(crate) fn served() -> Results {
    let mut results = results("demo/served", STUDY, &|_| 1.0);
    results.record.engine_version = "PostgreSQL 15.18".to_owned();
    results.record.limits = None;
    let cells = results.run_plan.cells.clone();
    for (need, cell) in results.record.needs.iter_mut().zip(&cells) {
        if cell.case() == "siblings out" {
            let why = "SMT can't be switched here: the processor has no siblings";
            need.impossible = Some(why.into());
        }
    }
    results.run_plan = results.run_plan.clone().skipping(&results.record.needs);
    let skipped = results.run_plan.skipped.clone();
    results.observations.retain(|seen| !skipped.contains(&seen.cell));
    for seen in &mut results.observations {
        seen.outcome = Outcome::Sample(sample(&cells[seen.cell], seen));
    }
    results
}

fn sample(cell: &Cell, seen: &Observation) -> Sample {
    let clients = cell.integer("clients").unwrap() as f64;
    let cpus = if cell.case() == "one CPU" { 1.0 } else { 2.0 };
    let parallel = cell.integer("parallel").unwrap() as f64;
    let alone = if cell.text("query") == Some("uss") { 40.0 } else { 12.0 };
    let wobble = 1.0 + 0.03 * unit(seen.cell as u64 * 31 + u64::from(seen.repetition));
    let busy = (clients * parallel).min(cpus);
    let per_s = alone * busy.powf(0.8) * wobble;
    let latency_ms = 1e3 * clients / per_s;
    let measures = [
        ("latency_p50_ms", latency_ms * 0.9),
        ("latency_p95_ms", latency_ms * 1.6),
        ("latency_p99_ms", latency_ms * 2.4),
        ("client_cpu_share", 0.06),
        ("run_delay_s", 0.02),
    ];
    Sample {
        wall_s: 1.0,
        cpu_s: Some(busy * if is_cheaper(cell) { 0.6 } else { 0.97 }),
        tuples: per_s.round() as u64,
        answer: Answer::default(),
        measures: BTreeMap::from(measures.map(|(name, value)| (name.to_owned(), value))),
        plan: (seen.repetition == 0).then(|| plan(cell)),
        ..Sample::default()
    }
}

/// µSS by two workers.
fn is_cheaper(cell: &Cell) -> bool {
    cell.text("query") == Some("uss") && cell.integer("parallel") == Some(2)
}

/// µNJ on all CPUs takes another join altogether; of µSS it is known what its operators took.
fn plan(cell: &Cell) -> PlanText {
    let (top, below) = if is_cheaper(cell) { (14.0, 9.0) } else { (61.0, 52.0) };
    let timed = |ms: f64, rows: f64| {
        format!(r#", "Actual Total Time": {ms}, "Actual Rows": {rows}, "Actual Loops": 1"#)
    };
    let run = tree(cell, &timed(top, 3.0), &timed(below, 4_321.0));
    let run = (cell.text("query") == Some("uss")).then_some(run);
    let mut plan = PlanText::new(Planner::Postgres, tree(cell, "", ""));
    plan.run = run;
    plan
}

fn tree(cell: &Cell, top: &str, below: &str) -> String {
    let scan = format!(
        r#"{{"Node Type": "Seq Scan", "Relation Name": "t1", "Filter": "(a2 > 9999)"{below}}}"#
    );
    let join = match (cell.text("query"), cell.case()) {
        (Some("unj"), "all CPUs") => "Hash Join",
        (Some("unj"), _) => "Nested Loop",
        _ => "Sort",
    };
    let index = r#"{"Node Type": "Index Scan", "Relation Name": "t2", "Index Name": "t2_a1"}"#;
    format!(r#"[{{"Plan": {{"Node Type": "{join}"{top}, "Plans": [{scan}, {index}]}}}}]"#)
}
