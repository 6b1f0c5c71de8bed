//! DataFusion's memory pool and temporary directories, in the form that the join takes them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use datafusion_common::error::Result;
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool as EnginePool, MemoryReservation,
};
use workahead_join::{JoinError, MemoryError, MemoryPool, PagePool, SpillDirectory};

use crate::error::from_join;

/// The memory of one table and its probers.
#[derive(Debug)]
pub(crate) struct Memory {
    reservation: MemoryReservation,
    pool: Arc<dyn EnginePool>,
}

impl Memory {
    /// A consumer of the session's pool.
    pub(crate) fn of(context: &TaskContext, name: String, may_spill: bool) -> Arc<Self> {
        let pool = Arc::clone(context.memory_pool());
        let consumer = MemoryConsumer::new(name).with_can_spill(may_spill);
        Arc::new(Self { reservation: consumer.register(&pool), pool })
    }
}

impl MemoryPool for Memory {
    fn try_grow(&self, bytes: usize) -> Result<(), MemoryError> {
        self.reservation.try_grow(bytes).map_err(|_| MemoryError {
            wanted: bytes,
            used: self.pool.reserved(),
            limit: self.limit().unwrap_or(usize::MAX),
        })
    }

    fn shrink(&self, bytes: usize) {
        self.reservation.shrink(bytes);
    }

    fn used(&self) -> usize {
        self.pool.reserved()
    }

    fn limit(&self) -> Option<usize> {
        match self.pool.memory_limit() {
            MemoryLimit::Finite(bytes) => Some(bytes),
            MemoryLimit::Infinite | MemoryLimit::Unknown => None,
        }
    }
}

/// The number of tables of one join, each with an equal share of the memory.
///
/// Partitions are joined independently and at the same time: the first to start would take all
/// memory, and none can make room for another. In a task of a cluster there is one partition only.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables(Arc<AtomicUsize>);

impl Tables {
    /// The share of one more table.
    pub(crate) fn share(&self, memory: Arc<Memory>) -> Arc<dyn MemoryPool> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Arc::new(Share { memory, tables: self.clone(), used: AtomicUsize::new(0) })
    }
}

/// This fraction of a limit (a quarter) is left to the exchanges that feed the join: they buffer
/// batches, and DataFusion's block each other when two run short (apache/datafusion#24883).
const EXCHANGE_SHARE: usize = 4;

/// One table's share: the limit divided by the current number of tables.
#[derive(Debug)]
struct Share {
    memory: Arc<Memory>,
    tables: Tables,
    used: AtomicUsize,
}

impl MemoryPool for Share {
    fn try_grow(&self, bytes: usize) -> Result<(), MemoryError> {
        let limit = self.limit().unwrap_or(usize::MAX);
        let grown = |used: usize| used.checked_add(bytes).filter(|used| *used <= limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown) {
            Ok(_) => self.memory.try_grow(bytes).inspect_err(|_| {
                self.used.fetch_sub(bytes, Ordering::Relaxed);
            }),
            Err(used) => Err(MemoryError { wanted: bytes, used, limit }),
        }
    }

    fn shrink(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.memory.shrink(bytes);
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn limit(&self) -> Option<usize> {
        let tables = self.tables.0.load(Ordering::Relaxed).max(1);
        self.memory.limit().map(|bytes| (bytes - bytes / EXCHANGE_SHARE) / tables)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.tables.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Most bytes of pages that are kept for later joins.
const KEEP_BYTES: usize = 512 << 20;

/// The pages of tables and columns. A query has many joins, and the first touch of fresh memory can
/// cost more than any of them.
static PAGES: LazyLock<PagePool> = LazyLock::new(|| PagePool::keeping(KEEP_BYTES));

/// Pages of earlier joins, unless memory has a limit: idle pages are not charged to any consumer.
pub(crate) fn page_pool(context: &TaskContext) -> Option<PagePool> {
    let limit = context.memory_pool().memory_limit();
    (!matches!(limit, MemoryLimit::Finite(_))).then(|| PAGES.clone())
}

/// The session's spill directory, with the space it has left; none where memory has no limit or the
/// session allows no files.
pub(crate) fn spill_directory(context: &TaskContext) -> Result<Option<Arc<SpillDirectory>>> {
    let (runtime, disk) = (context.runtime_env(), &context.runtime_env().disk_manager);
    if matches!(runtime.memory_pool.memory_limit(), MemoryLimit::Infinite)
        || !disk.tmp_files_enabled()
    {
        return Ok(None);
    }
    if disk.temp_dir_paths().is_empty() {
        // The directory is created with its first file.
        disk.create_tmp_file("spilling a join")?;
    }
    let Some(path) = disk.temp_dir_paths().into_iter().next() else { return Ok(None) };
    let left = disk.max_temp_directory_size().saturating_sub(disk.used_disk_space());
    // A session may be dropped before the rows of its last plan are read.
    let directory = SpillDirectory::with_owner(path, Some(left), Arc::clone(disk) as _);
    directory.map(Some).map_err(|error| from_join(JoinError::Spill(error)))
}
