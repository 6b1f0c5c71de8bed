//! Facts of a join, under the names that `workahead join --json` gives them.

use serde_json::json;
use workahead_join::{JoinTable, ProbeMetrics};

/// Facts of a join so far, as JSON.
pub(crate) fn join_facts(table: &JoinTable, metrics: ProbeMetrics) -> String {
    let (choice, spilled) = (table.layout_choice(), table.spill_metrics());
    let seconds = |time: std::time::Duration| time.as_secs_f64();
    let facts = json!({
        "type": table.spec().join_type().name(),
        "rows": metrics.output_rows,
        "layout": choice.layout.name(),
        "layout_why": choice.why,
        "build_side": table.build_side().name(),
        "build_rows": table.input_rows(),
        "build_keys": table.keys(),
        "build_seconds": seconds(table.build_time()),
        "table_bytes": table.table_bytes(),
        "payload_bytes": table.payload_bytes(),
        "probe_rows": metrics.probe_rows,
        "matched_rows": metrics.matched_rows,
        "probe_cpu_seconds": seconds(metrics.lookup_time),
        "gather_cpu_seconds": seconds(metrics.gather_time),
        "spill_cpu_seconds": seconds(metrics.spill_time),
        "peak_memory_bytes": table.peak_memory_bytes(),
        "spilled_bytes": spilled.bytes,
        "spilled_files": spilled.files,
        "spilled_partitions": spilled.partitions,
        "spill_levels": spilled.levels,
    });
    facts.to_string()
}
