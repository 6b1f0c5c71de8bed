//! The settings that a study may give a private server.
//!
//! Some of the others run programs (`archive_command`), load libraries, write files anywhere, or
//! open ports to everybody; a study may come from somebody else.

use std::collections::BTreeMap;

use workahead_study::engine::EngineError;

use crate::attach::tunes;

/// PostgreSQL's beyond those of a session: buffers, log of changes, processes, upkeep; in order.
#[rustfmt::skip]
const POSTGRES: [&str; 57] = [
    "autovacuum", "autovacuum_max_workers", "autovacuum_naptime", "autovacuum_vacuum_cost_delay",
    "autovacuum_vacuum_cost_limit", "autovacuum_vacuum_scale_factor", "bgwriter_delay",
    "bgwriter_flush_after", "bgwriter_lru_maxpages", "bgwriter_lru_multiplier",
    "checkpoint_completion_target", "checkpoint_flush_after", "checkpoint_timeout", "commit_delay",
    "commit_siblings", "deadlock_timeout", "debug_parallel_query", "default_toast_compression",
    "default_transaction_isolation", "dynamic_shared_memory_type", "force_parallel_mode", "fsync",
    "full_page_writes", "huge_page_size", "huge_pages", "io_combine_limit", "io_max_concurrency",
    "io_method", "io_workers", "max_connections", "max_files_per_process",
    "max_locks_per_transaction", "max_pred_locks_per_transaction", "max_wal_size",
    "max_worker_processes", "min_dynamic_shared_memory", "min_wal_size", "shared_buffers",
    "shared_memory_type", "synchronous_commit", "temp_file_limit", "track_activities",
    "track_counts", "track_io_timing", "track_wal_io_timing", "update_process_title",
    "vacuum_cost_delay", "vacuum_cost_limit", "wal_buffers", "wal_compression", "wal_init_zero",
    "wal_level", "wal_recycle", "wal_skip_threshold", "wal_sync_method", "wal_writer_delay",
    "wal_writer_flush_after",
];

/// MariaDB's; in order.
#[rustfmt::skip]
const MARIADB: [&str; 57] = [
    "aria_pagecache_buffer_size", "back_log", "histogram_size", "histogram_type",
    "innodb_adaptive_flushing", "innodb_adaptive_hash_index", "innodb_autoinc_lock_mode",
    "innodb_buffer_pool_chunk_size", "innodb_buffer_pool_instances", "innodb_buffer_pool_size",
    "innodb_change_buffer_max_size", "innodb_change_buffering", "innodb_checksum_algorithm",
    "innodb_deadlock_detect", "innodb_doublewrite", "innodb_flush_log_at_trx_commit",
    "innodb_flush_method", "innodb_flush_neighbors", "innodb_io_capacity", "innodb_io_capacity_max",
    "innodb_log_buffer_size", "innodb_log_file_size", "innodb_log_write_ahead_size",
    "innodb_lru_scan_depth", "innodb_max_dirty_pages_pct", "innodb_max_dirty_pages_pct_lwm",
    "innodb_old_blocks_pct", "innodb_old_blocks_time", "innodb_page_cleaners",
    "innodb_purge_threads", "innodb_random_read_ahead", "innodb_read_ahead_threshold",
    "innodb_read_io_threads", "innodb_spin_wait_delay", "innodb_stats_auto_recalc",
    "innodb_stats_persistent", "innodb_stats_persistent_sample_pages", "innodb_sync_spin_loops",
    "innodb_thread_concurrency", "innodb_use_native_aio", "innodb_write_io_threads",
    "key_buffer_size", "large_pages", "max_connections", "performance_schema", "query_cache_size",
    "query_cache_type", "table_definition_cache", "table_open_cache", "table_open_cache_instances",
    "thread_cache_size", "thread_handling", "thread_pool_size", "transaction_isolation",
    "tx_isolation", "use_stat_tables", "userstat",
];

/// DuckDB's; in order.
#[rustfmt::skip]
const DUCKDB: [&str; 28] = [
    "allocator_background_threads", "allocator_bulk_deallocation_flush_threshold",
    "allocator_flush_threshold", "checkpoint_threshold", "default_null_order", "default_order",
    "disabled_compression_methods", "disabled_optimizers", "dynamic_or_filter_threshold",
    "external_threads", "force_compression", "immediate_transaction_mode", "index_scan_max_count",
    "index_scan_percentage", "late_materialization_max_rows", "max_memory", "memory_limit",
    "merge_join_threshold", "nested_loop_join_threshold", "ordered_aggregate_threshold",
    "perfect_ht_threshold", "pin_threads", "prefer_range_joins", "preserve_insertion_order",
    "scheduler_process_partial", "threads", "wal_autocheckpoint", "worker_threads",
];

/// Threads that a study may give a database in this process: starting many more ends it.
const THREADS_MAX: u32 = 1024;

/// Refuses settings that a study may not give.
pub(super) fn check(product: &str, settings: &BTreeMap<String, String>) -> Result<(), EngineError> {
    match settings.keys().find(|name| !allowed(product, name)) {
        Some(name) => Err(EngineError::failed(format!(
            "`server.{}` is not a setting that a study may give {product}: it may set memory, \
             logging of changes, parallelism and planning",
            name.escape_debug(),
        ))),
        None => Ok(()),
    }
}

/// Settings that are numbers of threads or tasks.
const COUNTS: [&str; 4] =
    ["threads", "worker_threads", "external_threads", "datafusion.execution.target_partitions"];

/// Refuses more threads, of a database in this process, than there is a use for.
pub(super) fn check_threads(settings: &BTreeMap<String, String>) -> Result<(), EngineError> {
    let is_few = |text: &str| text.trim().parse::<u32>().is_ok_and(|count| count <= THREADS_MAX);
    let is_count = |name: &str| COUNTS.contains(&name.to_ascii_lowercase().as_str());
    match settings.iter().find(|(name, value)| is_count(name) && !is_few(value)) {
        Some((name, value)) => Err(EngineError::failed(format!(
            "`server.{}` = {value:?}: give a number up to {THREADS_MAX}",
            name.escape_debug()
        ))),
        None => Ok(()),
    }
}

/// Whether a study may set it.
fn allowed(product: &str, name: &str) -> bool {
    match product {
        "duckdb" => DUCKDB.contains(&name.to_ascii_lowercase().as_str()),
        "postgres" => tunes(name) || POSTGRES.contains(&name.to_ascii_lowercase().as_str()),
        _ => {
            let name = name.replace('-', "_").to_ascii_lowercase();
            // To MariaDB `enable_x` is any option `x`, switched on.
            tunes(&name) && !name.starts_with("enable_") || MARIADB.contains(&name.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_run_programs_or_write_files_are_not_allowed() {
        assert!(POSTGRES.is_sorted() && MARIADB.is_sorted() && DUCKDB.is_sorted());
        for name in ["shared_buffers", "work_mem", "enable_hashjoin", "max_wal_size", "Jit"] {
            assert!(allowed("postgres", name), "{name}");
        }
        for name in ["innodb-buffer-pool-size", "sort_buffer_size", "userstat", "large_pages"] {
            assert!(allowed("mariadb", name), "{name}");
        }
        for name in [
            "archive_command",
            "archive_cleanup_command",
            "restore_command",
            "ssl_passphrase_command",
            "shared_preload_libraries",
            "local_preload_libraries",
            "session_preload_libraries",
            "jit_provider",
            "archive_library",
            "dynamic_library_path",
            "log_directory",
            "data_directory",
            "hba_file",
            "external_pid_file",
            "unix_socket_directories",
            "listen_addresses",
            "port",
            "config_file",
            "include",
            "log_destination",
            "ssl_key_file",
            "temp_tablespaces",
            "stats_temp_directory",
            "krb_server_keyfile",
            "search_path",
        ] {
            assert!(!allowed("postgres", name), "{name}");
        }
        for name in [
            "plugin_load",
            "plugin-load-add",
            "plugin_dir",
            "init_file",
            "general_log_file",
            "slow_query_log_file",
            "log_error",
            "datadir",
            "tmpdir",
            "secure_file_priv",
            "secure-file-priv",
            "skip_networking",
            "bind_address",
            "port",
            "socket",
            "log_bin",
            "innodb_data_home_dir",
            "innodb_log_group_home_dir",
            "innodb_undo_directory",
            "enable_general_log",
            "enable_log_bin",
            "loose_plugin_load",
            "init_connect",
            "basedir",
            "character_sets_dir",
            "user",
            "chroot",
            "skip_grant_tables",
            "wsrep_notify_cmd",
        ] {
            assert!(!allowed("mariadb", name), "{name}");
        }
    }

    #[test]
    fn many_threads_are_refused() {
        let accepted = |name: &str, value: &str| {
            let settings = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            check_threads(&settings).is_ok()
        };
        assert!(accepted("threads", "1024") && accepted("memory_limit", "3000000"));
        for (name, value) in [("threads", "1025"), ("External_Threads", "3e6"), ("threads", "0x9")]
        {
            assert!(!accepted(name, value), "{name} = {value}");
        }
        assert!(!allowed("duckdb", "allowed_paths") && allowed("duckdb", "Threads"));
    }
}
