//! Engines without a server.

/// Whether an engine's statements run in the process that opened it, which they may end.
#[must_use]
pub fn works_in_this_process(engine: &str) -> bool {
    matches!(engine, "duckdb" | "datafusion")
}
