//! Documented effects of a setting, a version or the machine's tuning, and the figures by
//! which it shows that it does (PostgreSQL manual, chapter 20, "Server Configuration"; MariaDB's
//! "Server System Variables"; the kernel's documentation).
//!
//! A name that is not here acts on nothing that is known: its change is listed, without a share.

use super::parts::Part;

/// A sign that a change has an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// A count for each transaction, of these: one of them moves.
    Counts(&'static [&'static str]),
    /// One of these, or plans.
    CountsOrPlans(&'static [&'static str]),
    /// Plans or ways into tables change.
    Plans,
    /// Expressions are compiled, or no longer.
    Jit,
    /// The same work takes another time: counts of work stay.
    SameWork,
    /// The part itself: nothing else acts on it as directly.
    Itself,
    /// Nothing that a capture has.
    Nothing,
}

/// The parts that something acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) parts: &'static [Part],
    pub(super) sign: Sign,
}

use Part::{
    Client, Cpu, Disk, Latches, Load, Locks, Log, Neighbours, Processes, Quota, Rest, Working,
};

/// Work of any kind.
const WORK: &[Part] = &[Cpu, Working, Rest, Disk, Latches, Processes];
const CPU: &[Part] = &[Cpu, Working, Rest];
const LOG: &[Part] = &[Log, Rest, Working, Disk, Locks];
const EVERYTHING: &[Part] =
    &[Cpu, Working, Rest, Disk, Latches, Processes, Log, Locks, Client, Load];

const TEMPORARY: Sign = Sign::CountsOrPlans(&[
    "temp_bytes",
    "created_tmp_disk_tables",
    "created_tmp_files",
    "sort_merge_passes",
]);
const READS: Sign = Sign::Counts(&["blks_read", "innodb_buffer_pool_reads"]);

/// Beginnings of names, of which the longest counts; of both products, whose names do not collide
/// in what they mean.
const SETTINGS: [(&str, &[Part], Sign); 68] = [
    ("autovacuum", WORK, Sign::Nothing),
    ("backend_flush_after", &[Disk, Log], Sign::Nothing),
    ("bgwriter_", &[Disk, Latches], Sign::Nothing),
    ("binlog_", LOG, Sign::Itself),
    ("checkpoint_", LOG, Sign::Nothing),
    ("commit_", LOG, Sign::Itself),
    ("constraint_exclusion", WORK, Sign::Plans),
    ("cpu_", WORK, Sign::Plans),
    ("data_checksums", WORK, Sign::Nothing),
    ("deadlock_timeout", &[Locks], Sign::Itself),
    ("debug_", CPU, Sign::Nothing),
    ("default_statistics_target", WORK, Sign::Plans),
    ("default_transaction_isolation", &[Locks, Cpu], Sign::Nothing),
    ("effective_cache_size", WORK, Sign::Plans),
    ("effective_io_concurrency", &[Disk], Sign::Itself),
    ("enable_", WORK, Sign::Plans),
    ("eq_range_index_dive_limit", WORK, Sign::Plans),
    ("from_collapse_limit", WORK, Sign::Plans),
    ("fsync", LOG, Sign::Itself),
    ("full_page_writes", LOG, Sign::Counts(&["wal_bytes", "wal_fpi"])),
    ("general_log", CPU, Sign::Nothing),
    ("geqo", WORK, Sign::Plans),
    ("hash_mem_multiplier", WORK, TEMPORARY),
    ("histogram_", WORK, Sign::Plans),
    ("huge_page", CPU, Sign::SameWork),
    ("innodb_adaptive_hash_index", CPU, Sign::SameWork),
    ("innodb_buffer_pool_size", WORK, READS),
    ("innodb_doublewrite", LOG, Sign::Nothing),
    ("innodb_flush", LOG, Sign::Itself),
    ("innodb_io_", &[Disk, Rest, Log], Sign::Nothing),
    ("innodb_lock", &[Locks], Sign::Itself),
    ("innodb_log", LOG, Sign::Itself),
    ("innodb_spin", &[Latches, Cpu, Rest], Sign::SameWork),
    ("innodb_thread_concurrency", &[Load, Rest], Sign::Nothing),
    ("io_", &[Disk, Cpu], Sign::Nothing),
    ("jit", CPU, Sign::Jit),
    ("join_buffer", WORK, Sign::Counts(&["handler_read_rnd_next", "rows_read"])),
    ("join_cache_level", WORK, Sign::Plans),
    ("join_collapse_limit", WORK, Sign::Plans),
    ("large_pages", CPU, Sign::SameWork),
    ("log_bin", LOG, Sign::Itself),
    ("log_", CPU, Sign::Nothing),
    ("max_heap_table_size", WORK, TEMPORARY),
    ("max_parallel_", WORK, Sign::Plans),
    ("max_wal_size", LOG, Sign::Nothing),
    ("min_parallel_", WORK, Sign::Plans),
    ("optimizer_", WORK, Sign::Plans),
    ("parallel_", WORK, Sign::Plans),
    ("performance_schema", CPU, Sign::SameWork),
    ("plan_cache_mode", WORK, Sign::Plans),
    ("query_cache", &[Cpu, Rest, Latches], Sign::Nothing),
    ("random_page_cost", WORK, Sign::Plans),
    ("seq_page_cost", WORK, Sign::Plans),
    ("session_preload_libraries", CPU, Sign::Nothing),
    ("shared_buffers", WORK, READS),
    ("shared_memory_type", CPU, Sign::SameWork),
    ("shared_preload_libraries", CPU, Sign::Nothing),
    ("sort_buffer_size", WORK, TEMPORARY),
    ("sync_binlog", LOG, Sign::Itself),
    ("synchronous_", LOG, Sign::Itself),
    ("table_open_cache", CPU, Sign::Counts(&["opened_tables"])),
    ("thread_", &[Load, Cpu, Rest], Sign::Nothing),
    ("tmp_", WORK, TEMPORARY),
    ("track_", CPU, Sign::SameWork),
    ("transaction_isolation", &[Locks, Cpu], Sign::Nothing),
    ("use_stat_tables", WORK, Sign::Plans),
    ("wal_", LOG, Sign::Itself),
    ("work_mem", WORK, TEMPORARY),
];

/// Beginnings of facts.
const FACTS: [(&str, &[Part], Sign); 25] = [
    ("CPUs online", &[Load, Cpu, Working], Sign::Nothing),
    ("I/O scheduler", &[Disk, Log, Rest], Sign::Nothing),
    ("NUMA balancing", CPU, Sign::SameWork),
    ("SMT", &[Cpu, Load, Working], Sign::SameWork),
    ("automatic groups", &[Neighbours, Load], Sign::Nothing),
    ("clock source", CPU, Sign::SameWork),
    ("dirty", &[Disk, Log, Rest], Sign::Nothing),
    ("extension", CPU, Sign::Nothing),
    ("frequency", CPU, Sign::SameWork),
    ("kernel", EVERYTHING, Sign::SameWork),
    ("maximum frequency", CPU, Sign::SameWork),
    ("memory", &[Disk, Cpu, Working, Rest], Sign::Nothing),
    ("microcode", CPU, Sign::SameWork),
    ("mitigation", CPU, Sign::SameWork),
    ("processor", CPU, Sign::SameWork),
    ("reserved huge pages", CPU, Sign::SameWork),
    ("server's CPU quota", &[Quota], Sign::Itself),
    ("server's CPUs", &[Load, Neighbours, Cpu, Working], Sign::Nothing),
    ("server's nice value", &[Neighbours], Sign::Itself),
    ("server's reserved huge pages", CPU, Sign::SameWork),
    ("server may have transparent", CPU, Sign::SameWork),
    ("server", EVERYTHING, Sign::Nothing),
    ("swappiness", &[Disk, Rest], Sign::Nothing),
    ("transparent huge pages", CPU, Sign::SameWork),
    ("zone reclaim", CPU, Sign::SameWork),
];

/// Of a setting; `of role ada: work_mem` acts as `work_mem` does.
pub(super) fn setting(name: &str) -> Option<Effect> {
    let name = name.rsplit(": ").next().unwrap_or(name);
    longest(&SETTINGS, name)
}

/// Of a fact.
pub(super) fn fact(name: &str) -> Option<Effect> {
    longest(&FACTS, name)
}

fn longest(table: &[(&str, &'static [Part], Sign)], name: &str) -> Option<Effect> {
    let begins = table.iter().filter(|(beginning, _, _)| name.starts_with(beginning));
    let (_, parts, sign) = begins.max_by_key(|(beginning, _, _)| beginning.len())?;
    Some(Effect { parts, sign: *sign })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_counts() {
        assert_eq!(setting("log_bin").map(|effect| effect.parts), Some(LOG));
        assert_eq!(setting("log_min_duration_statement").map(|effect| effect.parts), Some(CPU));
        assert_eq!(setting("of role ada in shop: work_mem"), setting("work_mem"));
        assert_eq!(setting("port"), None);
        assert_eq!(fact("server's CPU quota").map(|effect| effect.parts), Some(&[Quota][..]));
        assert_eq!(fact("server").map(|effect| effect.parts), Some(EVERYTHING));
    }
}
