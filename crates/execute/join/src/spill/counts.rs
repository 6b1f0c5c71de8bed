//! Counters of spilling.

use std::sync::atomic::{AtomicU64, Ordering};

use super::file::SpillFile;

/// The data that a join has spilled so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpillMetrics {
    /// Bytes of files.
    pub bytes: u64,
    /// Files.
    pub files: u64,
    /// Rows in files; rows that are partitioned again count again.
    pub rows: u64,
    /// Partitions of the build side.
    pub partitions: u64,
    /// Levels of recursive partitioning: one if only the inputs were partitioned.
    pub levels: u64,
    /// Tables built of chunks of partitions that can't be split further, mostly because of one hot
    /// key.
    pub chunks: u64,
}

/// Atomic counters, shared by all parts of a join.
#[derive(Debug, Default)]
pub(crate) struct SpillCounters {
    bytes: AtomicU64,
    files: AtomicU64,
    rows: AtomicU64,
    partitions: AtomicU64,
    levels: AtomicU64,
    chunks: AtomicU64,
}

impl SpillCounters {
    pub(crate) fn file(&self, file: &SpillFile) {
        self.files.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(file.bytes(), Ordering::Relaxed);
        self.rows.fetch_add(file.rows() as u64, Ordering::Relaxed);
    }

    pub(crate) fn partition(&self, depth: u32) {
        self.partitions.fetch_add(1, Ordering::Relaxed);
        self.levels.fetch_max(u64::from(depth) + 1, Ordering::Relaxed);
    }

    pub(crate) fn chunk(&self) {
        self.chunks.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn metrics(&self) -> SpillMetrics {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        SpillMetrics {
            bytes: read(&self.bytes),
            files: read(&self.files),
            rows: read(&self.rows),
            partitions: read(&self.partitions),
            levels: read(&self.levels),
            chunks: read(&self.chunks),
        }
    }
}
