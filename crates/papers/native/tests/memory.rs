//! What a cell says it needs, before anything is made, against what the process then grows by.

#[path = "../../../execute/walks/tests/resident/mod.rs"]
mod resident;

use resident::weighed;
use workahead_native::engine::Native;
use workahead_study::engine::{Engine, Stop};
use workahead_study::plan::Plan;
use workahead_study::spec::Spec;

/// What the estimate adds for stacks, output batches and the like; half of it has to do here, so
/// that it does not hide what was forgotten.
const BESIDE_BYTES: usize = 64 << 20;

/// One cell of each; a study's cells with different data are alone in memory in the same way.
const CELLS: [(&str, &str); 6] = [
    ("hash join", r#"operator = "hash_join", rows = 500_000"#),
    ("long records", r#"operator = "hash_join", rows = 300_000, record_bytes = 256"#),
    // Probes are what is many here, and they have to be counted too.
    ("hash join, many probes", r#"operator = "hash_join", rows = 10_000, probe_rows = 8_000_000"#),
    ("tree", r#"operator = "csb_tree", rows = 1_000_000"#),
    (
        "tree, clustered",
        r#"operator = "csb_tree", rows = 2_000_000, node_bytes = 64, probes = "clustered""#,
    ),
    ("bucket", r#"operator = "bucket", rows = 500_000, load_percent = 10"#),
];

/// One test: in a process of its own, one cell after the other.
#[test]
fn cells_need_what_they_say() {
    for (name, workload) in CELLS {
        let text = format!(
            "title = \"Memory\"\nquestion = \"How much?\"\nengine = \"native\"\n\
             workload = {{ {workload} }}\n[[cases]]\nname = \"sequential\"\n\
             technique = \"sequential\"\n"
        );
        let plan = Plan::new(&Spec::parse("memory", &text).unwrap());
        let (cell, stop) = (&plan.cells[0], Stop::new());
        let mut engine = Native::default();
        let needed = engine.check(cell).unwrap().memory_bytes as usize;
        let (_, growth) = weighed(|| {
            engine.prepare(cell, &stop).unwrap();
            engine.run(cell, &stop).unwrap()
        });
        let grown = growth.peak_bytes.unwrap_or(growth.stays_bytes);
        let told = format!("{name}: {} MiB said, {} MiB grown", needed >> 20, grown >> 20);
        println!("{told}, {growth:?}");
        assert!(grown <= needed - BESIDE_BYTES / 2, "{told}: too little");
        // Memory that is asked for and not used keeps a study from machines that could run it.
        assert!(needed - BESIDE_BYTES <= grown / 2 * 3, "{told}: too much");
    }
}
