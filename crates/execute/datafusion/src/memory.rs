//! DataFusion's memory pool and temporary directories, in the form that the join takes them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock, Weak};

use datafusion_common::error::Result;
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool as EnginePool, MemoryReservation,
};
use parking_lot::Mutex;
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
        limit_of(&self.pool)
    }
}

fn limit_of(pool: &Arc<dyn EnginePool>) -> Option<usize> {
    match pool.memory_limit() {
        MemoryLimit::Finite(bytes) => Some(bytes),
        MemoryLimit::Infinite | MemoryLimit::Unknown => None,
    }
}

/// The session's limit.
pub(crate) fn memory_limit(context: &TaskContext) -> Option<usize> {
    limit_of(context.memory_pool())
}

/// This fraction of a limit (a quarter) is left to other operators, above all to exchanges: they
/// buffer batches, and DataFusion's block each other when two run short (apache/datafusion#24883).
const OTHERS: usize = 4;

/// A table whose build has not started is kept this fraction of an equal share (a half): enough to
/// spill.
const KEPT: usize = 2;

/// Of what is left, a build takes this fraction (a half) while others wait: several may run at a
/// time.
const TAKEN: usize = 2;

/// A build may have this fraction of the pool (a 64th) in any case, and as many bytes, if the joins
/// together may: with less it can't even spill.
const LEAST: usize = 64;
const LEAST_BYTES: usize = 1 << 20;

/// One join's tables. Partitions are joined independently and at the same time, and their inputs
/// are of like size: each has an equal part of what the join may have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tables(Arc<()>);

impl Tables {
    /// The share of one more table.
    pub(crate) fn share(&self, memory: Arc<Memory>) -> Arc<Share> {
        let (join, joins) = (self.clone(), Joins::of(&memory.pool));
        let (used, stage) = (AtomicUsize::new(0), Mutex::new(Stage::Waiting));
        let share = Arc::new(Share { memory, join, joins, used, stage, batches: OnceLock::new() });
        share.joins.0.lock().push(Arc::downgrade(&share));
        share
    }
}

/// The tables of all joins in a pool.
///
/// Joins of a pipeline hold theirs at the same time: the first to be built would take all memory,
/// and none can make room for another. All are known when a plan starts, before any is built.
/// The first may have what it needs, but for a part that is kept for each of the others.
#[derive(Debug, Default)]
struct Joins(Mutex<Vec<Weak<Share>>>);

impl Joins {
    /// Those of a pool, which is known by its address while any of them exists.
    fn of(pool: &Arc<dyn EnginePool>) -> Arc<Self> {
        static POOLS: LazyLock<Mutex<HashMap<usize, Weak<Joins>>>> = LazyLock::new(Mutex::default);
        let mut pools = POOLS.lock();
        pools.retain(|_, joins| joins.strong_count() > 0);
        let known = pools.entry(Arc::as_ptr(pool).cast::<()>().addr()).or_default();
        known.upgrade().unwrap_or_else(|| {
            let joins = Arc::default();
            *known = Arc::downgrade(&joins);
            joins
        })
    }
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// No row of the build side was read.
    Waiting,
    /// It is built, or spills: the sizes of its buffers go by this number of bytes, which no other
    /// table is promised.
    Promised(usize),
    /// It is built, and all of it is in memory.
    Built,
}

/// One table's share of the memory.
#[derive(Debug)]
pub(crate) struct Share {
    memory: Arc<Memory>,
    join: Tables,
    joins: Arc<Joins>,
    used: AtomicUsize,
    stage: Mutex<Stage>,
    /// An equal share, when the build started.
    batches: OnceLock<usize>,
}

impl Share {
    /// The build starts.
    pub(crate) fn start(&self) {
        let Some(whole) = self.memory.limit() else { return };
        // Outlive the lock, which the last reference to one takes when it goes.
        let mut shares = Vec::new();
        let joins = self.joins.0.lock();
        shares.extend(joins.iter().filter_map(Weak::upgrade));
        let equal = (whole - whole / OTHERS) / joins.len().max(1);
        self.batches.get_or_init(|| equal);
        let kept = equal / KEPT;
        let (mut tables, mut of_joins, mut of_join, mut of_other_joins) = (0, 0, 0, 0);
        let mut others_wait = false;
        for share in &shares {
            let used = share.used();
            of_joins += used;
            let own = Arc::ptr_eq(&share.join.0, &self.join.0);
            let promised = match *share.stage.lock() {
                Stage::Waiting => {
                    others_wait |= !own;
                    kept
                }
                Stage::Promised(bytes) => bytes,
                Stage::Built => 0,
            };
            let claimed = promised.max(used);
            match own {
                true if std::ptr::eq(&**share, self) => tables += 1,
                true => (tables, of_join) = (tables + 1, of_join + claimed),
                false => of_other_joins += claimed,
            }
        }
        let of_others = self.memory.used().saturating_sub(of_joins).max(whole / OTHERS);
        let left = whole.saturating_sub(of_others).saturating_sub(of_other_joins);
        let taken = if others_wait { left / TAKEN } else { left };
        let promised = (taken / tables.max(1)).min(left.saturating_sub(of_join));
        let promised = promised.max(kept).max(least(whole));
        *self.stage.lock() = Stage::Promised(promised);
    }

    /// The table is built.
    pub(crate) fn end(&self, spills: bool) {
        let (Some(whole), Some(equal)) = (self.memory.limit(), self.share()) else { return };
        *self.stage.lock() = match spills {
            // It may be promised most of the memory, and others come after it.
            true => Stage::Promised(self.used().max(equal).max(least(whole))),
            false => Stage::Built,
        };
    }
}

/// The memory of a pool that a build may have in any case.
fn least(whole: usize) -> usize {
    (whole / LEAST).max(LEAST_BYTES).min(whole - whole / OTHERS)
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
        match *self.stage.lock() {
            Stage::Promised(bytes) => Some(bytes),
            Stage::Waiting | Stage::Built => self.memory.limit(),
        }
    }

    fn total(&self) -> Option<usize> {
        self.memory.limit()
    }

    fn share(&self) -> Option<usize> {
        let equal = |whole: usize| (whole - whole / OTHERS) / self.joins.0.lock().len().max(1);
        self.batches.get().copied().or_else(|| self.memory.limit().map(equal))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.joins.0.lock().retain(|share| share.strong_count() > 0);
    }
}

/// Most bytes of pages that are kept for later joins.
const KEEP_BYTES: usize = 512 << 20;

/// The pages of tables and columns. A query has many joins, and the first touch of fresh memory can
/// cost more than any of them.
static PAGES: LazyLock<PagePool> = LazyLock::new(|| PagePool::keeping(KEEP_BYTES));

/// Pages of earlier joins, unless memory has a limit: idle pages are not charged to any consumer.
pub(crate) fn page_pool(context: &TaskContext) -> Option<PagePool> {
    memory_limit(context).is_none().then(|| PAGES.clone())
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

#[cfg(test)]
mod tests {
    use datafusion_execution::memory_pool::GreedyMemoryPool;
    use datafusion_execution::runtime_env::RuntimeEnvBuilder;

    use super::*;

    const POOL: usize = 64 << 20;

    /// A session's pool, and shares of two joins: one of a single table, one of two.
    fn shares() -> (Arc<dyn EnginePool>, [Arc<Share>; 3]) {
        let pool: Arc<dyn EnginePool> = Arc::new(GreedyMemoryPool::new(POOL));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool));
        let context = TaskContext::default().with_runtime(runtime.build_arc().unwrap());
        let memory = || Memory::of(&context, "join".to_owned(), true);
        let (single, double) = (Tables::default(), Tables::default());
        let shares = [single.share(memory()), double.share(memory()), double.share(memory())];
        (pool, shares)
    }

    const JOINS: usize = POOL - POOL / 4;
    const KEPT_BYTES: usize = JOINS / 3 / 2;

    #[test]
    fn a_join_may_end_while_another_starts() {
        let (_pool, [one, other, _]) = shares();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..50_000).for_each(|_| one.start()));
            for _ in 0..50_000 {
                let _share = Tables::default().share(Arc::clone(&other.memory));
                // Until the other thread looks at it.
                (0..200).for_each(|_| std::hint::spin_loop());
            }
        });
    }

    #[test]
    fn who_comes_first_leaves_a_part_for_each_of_the_others() {
        let (pool, [single, first, second]) = shares();
        single.start();
        let taken = (JOINS - 2 * KEPT_BYTES) / 2;
        assert_eq!(single.limit(), Some(taken));
        single.try_grow(taken).unwrap();
        let error = single.try_grow(1).unwrap_err();
        assert_eq!((error.used, error.limit), (taken, taken));
        for share in [&first, &second] {
            share.start();
            assert_eq!(share.limit(), Some((JOINS - taken) / 2));
        }
        assert_eq!(pool.reserved(), single.used());
    }

    #[test]
    fn partitions_of_a_join_have_equal_parts() {
        let (_pool, [single, first, second]) = shares();
        for share in [&first, &second] {
            share.start();
            assert_eq!(share.limit(), Some((JOINS - KEPT_BYTES) / 2 / 2));
        }
        single.start();
        assert_eq!(single.limit(), Some(JOINS - (JOINS - KEPT_BYTES) / 2 / 2 * 2));
        let shares = [single, first, second].map(|share| (share.share(), share.total()));
        assert_eq!(shares, [(Some(JOINS / 3), Some(POOL)); 3]);
    }

    #[test]
    fn a_built_table_leaves_what_it_does_not_need() {
        let (pool, [single, first, second]) = shares();
        single.start();
        single.try_grow(100).unwrap();
        single.end(false);
        first.start();
        assert_eq!(first.limit(), Some((JOINS - 100) / 2));
        // A join that spills keeps an equal share.
        first.end(true);
        second.start();
        let left = JOINS - 100 - JOINS / 3;
        assert_eq!(second.limit(), Some(left.min((JOINS - 100) / 2)));
        drop((first, second));
        single.shrink(100);
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn what_other_operators_hold_counts_against_their_quarter_first() {
        let (pool, [single, first, second]) = shares();
        drop((first, second));
        let other = MemoryConsumer::new("sort").register(&pool);
        other.try_grow(POOL / 8).unwrap();
        single.start();
        assert_eq!(single.limit(), Some(JOINS));
        other.try_grow(POOL / 4).unwrap();
        single.start();
        assert_eq!(single.limit(), Some(POOL - POOL / 8 - POOL / 4));
    }
}
