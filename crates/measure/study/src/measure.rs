//! Names of the measures that every engine has, as charts, claims and results spell them.

/// Throughput: the measure that ratios are of.
pub const THROUGHPUT: &str = "mtuples_per_s";

/// The measure in place of throughput where a model counts instructions.
pub const INSTRUCTIONS: &str = "instructions_per_tuple";

/// Measures of time. For cells that run below an instrumenting tool they are the tool's own times.
pub(crate) const TIMES: [&str; 5] =
    ["wall_s", "cpu_s", "ns_per_tuple", "cpu_ns_per_tuple", THROUGHPUT];
