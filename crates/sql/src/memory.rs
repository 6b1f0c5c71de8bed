//! DataFusion's memory pool and temporary directories, for the join to use as its own.
//!
//! A join that must keep the probe side's order can't spill, because what was spilled comes last.
//! Where there is no order, or no limit, nothing is lost by it.

use std::sync::{Arc, LazyLock};

use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool as EnginePool, MemoryReservation,
};
use workahead_columns::{JoinError, MemoryError, MemoryPool, PagePool, SpillDirectory};

use crate::error::from_join;

/// The memory of one table and of what probes it.
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

/// Most bytes that joins leave behind for the next ones.
const KEEP_BYTES: usize = 512 << 20;

/// What tables and columns lie on. A query has many joins, and the first touch of fresh memory can
/// cost more than any of them.
static PAGES: LazyLock<PagePool> = LazyLock::new(|| PagePool::keeping(KEEP_BYTES));

/// Pages of joins before, unless memory has a limit: what is idle is not charged to anybody.
pub(crate) fn page_pool(context: &TaskContext) -> Option<PagePool> {
    let limit = context.memory_pool().memory_limit();
    (!matches!(limit, MemoryLimit::Finite(_))).then(|| PAGES.clone())
}

/// Where to spill: the session's directory, up to what it has left; none where memory has no limit
/// or the session allows no files.
pub(crate) fn spill_directory(context: &TaskContext) -> Result<Option<Arc<SpillDirectory>>> {
    let (runtime, disk) = (context.runtime_env(), &context.runtime_env().disk_manager);
    if matches!(runtime.memory_pool.memory_limit(), MemoryLimit::Infinite)
        || !disk.tmp_files_enabled()
    {
        return Ok(None);
    }
    if disk.temp_dir_paths().is_empty() {
        // The directory comes into being with its first file.
        disk.create_tmp_file("spilling a join")?;
    }
    let Some(path) = disk.temp_dir_paths().into_iter().next() else { return Ok(None) };
    let left = disk.max_temp_directory_size().saturating_sub(disk.used_disk_space());
    let directory = SpillDirectory::new(path, Some(left));
    directory.map(Some).map_err(|error| from_join(JoinError::Spill(error)))
}
