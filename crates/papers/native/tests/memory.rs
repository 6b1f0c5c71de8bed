//! Compares a cell's memory estimate with the growth of the process.

#[path = "../../../execute/walks/tests/resident/mod.rs"]
mod resident;

use resident::weighed;
use workahead_native::engine::Native;
use workahead_study::engine::{Engine, Stop};
use workahead_study::run_plan::RunPlan;
use workahead_study::spec::Spec;

/// Allowance of the estimate for stacks, output batches and the like; half of it has to suffice
/// here, so that it does not hide omissions.
const OVERHEAD_BYTES: usize = 64 << 20;

/// One cell of each kind; cells with different data replace each other in memory, as in a study.
const CELLS: [(&str, &str); 7] = [
    ("hash join", r#"operator = "hash_join", rows = 500_000"#),
    ("long records", r#"operator = "hash_join", rows = 300_000, record_bytes = 256"#),
    // Many probes, which also have to be counted.
    ("hash join, many probes", r#"operator = "hash_join", rows = 10_000, probe_rows = 8_000_000"#),
    ("tree", r#"operator = "csb_tree", rows = 1_000_000"#),
    (
        "tree, clustered",
        r#"operator = "csb_tree", rows = 2_000_000, node_bytes = 64, probes = "clustered""#,
    ),
    ("growing tree", r#"operator = "csb_tree", rows = 2_000_000, tree = "growing""#),
    ("bucket", r#"operator = "bucket", rows = 500_000, load_percent = 10"#),
];

/// A single test, so that one cell runs at a time.
#[test]
fn cells_need_what_they_say() {
    for (name, workload) in CELLS {
        let text = format!(
            "title = \"Memory\"\nquestion = \"How much?\"\nengine = \"native\"\n\
             workload = {{ {workload} }}\n[[cases]]\nname = \"sequential\"\n\
             technique = \"sequential\"\n"
        );
        let run_plan = RunPlan::new(&Spec::parse("memory", &text).unwrap());
        let (cell, stop) = (&run_plan.cells[0], Stop::new());
        let mut engine = Native::default();
        let needed = engine.check(cell).unwrap().memory_bytes as usize;
        let (_, growth) = weighed(|| {
            engine.prepare(cell, &stop).unwrap();
            engine.run(cell, &stop).unwrap()
        });
        let grown = growth.peak_bytes.unwrap_or(growth.stays_bytes);
        let report = format!("{name}: {} MiB estimated, {} MiB grown", needed >> 20, grown >> 20);
        println!("{report}, {growth:?}");
        assert!(grown <= needed - OVERHEAD_BYTES / 2, "{report}: too little");
        // An excessive estimate would exclude machines that could run the study.
        assert!(needed - OVERHEAD_BYTES <= grown / 2 * 3, "{report}: too much");
    }
}
