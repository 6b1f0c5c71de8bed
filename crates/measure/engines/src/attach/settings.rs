//! The settings that a run which only reads may make: its own sessions' memory, planning and time.
//!
//! All others are refused, because among them are some that write files, take locks, decide how
//! texts are read, or undo what keeps the session from writing.

/// PostgreSQL's and MariaDB's; in order.
#[rustfmt::skip]
const NAMES: [&str; 66] = [
    "backend_flush_after", "bulk_insert_buffer_size", "constraint_exclusion", "cpu_index_tuple_cost",
    "cpu_operator_cost", "cpu_tuple_cost", "cursor_tuple_fraction", "default_statistics_target",
    "effective_cache_size", "effective_io_concurrency", "eq_range_index_dive_limit",
    "from_collapse_limit", "geqo", "geqo_effort", "geqo_generations", "geqo_pool_size",
    "geqo_seed", "geqo_selection_bias", "geqo_threshold", "group_concat_max_len",
    "hash_mem_multiplier", "idle_in_transaction_session_timeout", "in_predicate_conversion_threshold",
    "innodb_lock_wait_timeout", "jit", "jit_above_cost", "jit_expressions",
    "jit_inline_above_cost", "jit_optimize_above_cost", "jit_tuple_deforming",
    "join_buffer_size", "join_buffer_space_limit", "join_cache_level", "join_collapse_limit",
    "lock_timeout", "lock_wait_timeout", "maintenance_io_concurrency", "maintenance_work_mem",
    "max_execution_time", "max_heap_table_size", "max_length_for_sort_data",
    "max_parallel_maintenance_workers", "max_parallel_workers", "max_parallel_workers_per_gather",
    "max_seeks_for_key", "max_sort_length", "max_statement_time", "min_parallel_index_scan_size",
    "min_parallel_table_scan_size", "mrr_buffer_size", "parallel_leader_participation",
    "parallel_setup_cost", "parallel_tuple_cost", "plan_cache_mode", "random_page_cost",
    "read_buffer_size", "read_rnd_buffer_size", "recursive_worktable_factor", "rowid_merge_buff_size",
    "seq_page_cost", "sort_buffer_size", "statement_timeout", "temp_buffers", "tmp_memory_table_size",
    "tmp_table_size", "work_mem",
];
/// Further ones begin so, each with ways to plan.
const BEGINNINGS: [&str; 3] = ["enable_", "optimizer_search_", "optimizer_switch"];

/// Whether a setting is one of these.
pub(crate) fn tunes(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.contains(&name.as_str()) || BEGINNINGS.iter().any(|begins| name.starts_with(begins))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tuning_settings_are_allowed() {
        for name in ["work_mem", "Work_Mem", "enable_hashjoin", "optimizer_switch", "jit"] {
            assert!(tunes(name), "{name}");
        }
        for name in [
            "standard_conforming_strings",
            "tx_isolation",
            "transaction_isolation",
            "default_transaction_read_only",
            "role",
            "search_path",
            "sql_mode",
            "debug_dbug",
            "jit_dump_bitcode",
            "optimizer_trace",
            "work_mem'",
            "",
        ] {
            assert!(!tunes(name), "{name}");
        }
        assert!(NAMES.is_sorted());
    }
}
