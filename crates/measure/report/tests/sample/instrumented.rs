//! A result that was counted under valgrind: instructions and misses, and times that are nobody's.

use workahead_counters::instrumented::{Counts, Function, Functions, Tool};
use workahead_study::collection::Collection;
use workahead_study::observation::Outcome;
use workahead_study::results::Results;

const STUDY: &str = r#"
title = "What a query asks of a cache"
question = "How many instructions, and how many misses?"
engine = "duckdb"
ledger = ["E0.2"]
workload = { workload = "dbmbench" }
[axes]
query = ["uss", "unj"]
[method]
instrumented = { tool = "callgrind", caches = "pentium-pro-1m" }
repetitions = 2
tuples = "queries"
baseline = { query = "uss" }
[[paper]]
row = "E0.2"
figure = "Tab. 1"
where = { query = "unj" }
measure = "instructions_per_tuple"
ratio = 1.5
says = "more"
"#;

/// µNJ takes twice the instructions of µSS.
pub(crate) fn instrumented() -> Results {
    let mut results = super::results("demo/instrumented", STUDY, &|_| 1.0);
    results.record.host.tier = "D".to_owned();
    let cells = results.run_plan.cells.clone();
    for seen in &mut results.observations {
        let factor = if cells[seen.cell].text("query") == Some("unj") { 2 } else { 1 };
        let Outcome::Sample(sample) = &mut seen.outcome else { continue };
        let total = |per: i64| (factor * per) as f64;
        let measures = [
            ("instructions_per_tuple", total(31_800_000)),
            ("data_references_per_tuple", total(14_000_000)),
            ("l1d_misses_per_tuple", total(400_000)),
            ("last_level_misses_per_tuple", total(9_000)),
        ];
        sample.measures = measures.map(|(name, value)| (name.to_owned(), value)).into();
        let functions = Some(functions(factor));
        sample.collection = Some(Box::new(Collection { functions, ..Collection::default() }));
    }
    results
}

fn functions(factor: i64) -> Functions {
    let counts = |instructions, last_level_misses| Counts {
        instructions: factor * instructions,
        l1i_misses: 10,
        l1d_misses: 40 * factor,
        last_level_misses,
    };
    let function = |name: &str, own: Counts| Function {
        name: name.to_owned(),
        module: Some("libduckdb.so".to_owned()),
        own,
        instructions_with_callees: Some(own.instructions + 5),
    };
    Functions {
        tool: Tool::Callgrind,
        totals: counts(1000, 100),
        rows: vec![
            function("duckdb::Probe<long>", counts(600, 90)),
            function("duckdb::Scan", counts(300, -2)),
        ],
    }
}
