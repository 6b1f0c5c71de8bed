//! Memory, charged before it is taken.
//!
//! ```text
//! Pool (a limit) ◄── try_grow ── Reservation ── one for each thing that holds memory;
//!                ◄── shrink ────               what it holds is given back when it is dropped
//! ```
//!
//! Another engine's pool serves as well: it implements [`MemoryPool`]. A batch is charged with the
//! bytes of its buffers ([`ChargedBuffers`]), each once, however many arrays and batches share it:
//! ten slices of one batch are not ten batches.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_array::{Array, ArrayRef, RecordBatch, downcast_primitive_array};
use arrow_data::ArrayData;

/// The memory limit would be exceeded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{wanted} bytes more do not fit into the memory limit of {limit} bytes, {used} of which are in \
     use: raise the limit, or allow spilling"
)]
pub struct MemoryError {
    /// Bytes requested.
    pub wanted: usize,
    /// Bytes in use.
    pub used: usize,
    /// The limit.
    pub limit: usize,
}

/// Accounts for memory.
pub trait MemoryPool: Debug + Send + Sync {
    /// Charges bytes.
    ///
    /// # Errors
    /// If they exceed the limit; then nothing is charged.
    fn try_grow(&self, bytes: usize) -> Result<(), MemoryError>;

    /// Returns charged bytes.
    fn shrink(&self, bytes: usize);

    /// Bytes in use.
    fn used(&self) -> usize;

    /// The limit, if there is one. It may change while others use the same memory.
    fn limit(&self) -> Option<usize>;

    /// The limit that errors name: of all that use the same memory.
    fn total(&self) -> Option<usize> {
        self.limit()
    }

    /// The part of the limit that batches and buffers are sized by; it hardly changes.
    fn share(&self) -> Option<usize> {
        self.limit()
    }
}

/// A memory pool with a limit.
#[derive(Debug)]
pub struct Pool {
    parent: Option<Arc<dyn MemoryPool>>,
    limit: usize,
    used: AtomicUsize,
    peak: AtomicUsize,
}

impl Pool {
    /// A pool without a limit.
    #[must_use]
    pub fn unlimited() -> Arc<Self> {
        Self::of(usize::MAX)
    }

    /// A pool of a number of bytes.
    #[must_use]
    pub fn of(limit: usize) -> Arc<Self> {
        Self::new(None, limit)
    }

    /// A part of another pool: charges count in both.
    #[must_use]
    pub fn within(parent: Arc<dyn MemoryPool>, limit: usize) -> Arc<Self> {
        Self::new(Some(parent), limit)
    }

    fn new(parent: Option<Arc<dyn MemoryPool>>, limit: usize) -> Arc<Self> {
        Arc::new(Self { parent, limit, used: AtomicUsize::new(0), peak: AtomicUsize::new(0) })
    }

    /// Its own limit or the parent's, if there is any.
    fn least(&self, parent: Option<usize>) -> Option<usize> {
        let own = (self.limit < usize::MAX).then_some(self.limit);
        [own, parent].into_iter().flatten().min()
    }

    /// Peak of the bytes in use.
    #[must_use]
    pub fn peak_bytes(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }
}

impl MemoryPool for Pool {
    fn try_grow(&self, bytes: usize) -> Result<(), MemoryError> {
        let grown = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown) {
            Ok(before) => {
                if let Some(parent) = &self.parent
                    && let Err(error) = parent.try_grow(bytes)
                {
                    self.used.fetch_sub(bytes, Ordering::Relaxed);
                    return Err(error);
                }
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(used) => Err(MemoryError { wanted: bytes, used, limit: self.limit }),
        }
    }

    fn shrink(&self, bytes: usize) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "{bytes} bytes given back of {before}");
        if let Some(parent) = &self.parent {
            parent.shrink(bytes);
        }
    }

    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn limit(&self) -> Option<usize> {
        self.least(self.parent.as_ref().and_then(|parent| parent.limit()))
    }

    fn total(&self) -> Option<usize> {
        self.least(self.parent.as_ref().and_then(|parent| parent.total()))
    }

    fn share(&self) -> Option<usize> {
        self.least(self.parent.as_ref().and_then(|parent| parent.share()))
    }
}

/// Memory charged to a pool, returned when dropped.
#[derive(Debug)]
pub struct Reservation {
    pool: Arc<dyn MemoryPool>,
    bytes: usize,
}

impl Reservation {
    /// An empty reservation.
    #[must_use]
    pub fn new(pool: Arc<dyn MemoryPool>) -> Self {
        Self { pool, bytes: 0 }
    }

    /// Bytes charged.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The pool.
    #[must_use]
    pub fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.pool
    }

    /// Charges more.
    ///
    /// # Errors
    /// If the limit would be exceeded; then nothing has changed.
    pub fn grow(&mut self, bytes: usize) -> Result<(), MemoryError> {
        if bytes == 0 {
            // A limit may have fallen below what is in use.
            return Ok(());
        }
        self.pool.try_grow(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Returns some bytes.
    ///
    /// # Panics
    /// If it is more than is charged.
    pub fn shrink(&mut self, bytes: usize) {
        assert!(bytes <= self.bytes, "{bytes} bytes given back of {}", self.bytes);
        self.pool.shrink(bytes);
        self.bytes -= bytes;
    }

    /// Sets the number of charged bytes.
    ///
    /// # Errors
    /// As [`grow`](Self::grow).
    pub fn resize(&mut self, bytes: usize) -> Result<(), MemoryError> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.shrink(self.bytes - bytes);
                Ok(())
            }
        }
    }

    /// Returns all bytes.
    pub fn free(&mut self) {
        self.shrink(self.bytes);
    }

    /// Takes over another reservation of the same pool.
    pub fn absorb(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Splits some of the bytes off into another reservation.
    ///
    /// # Panics
    /// If it is more than is charged.
    #[must_use]
    pub fn split(&mut self, bytes: usize) -> Self {
        assert!(bytes <= self.bytes, "{bytes} bytes split off {}", self.bytes);
        self.bytes -= bytes;
        Self { pool: self.pool.clone(), bytes }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.pool.shrink(self.bytes);
    }
}

/// Charged buffers, each counted once.
///
/// A buffer is identified by the address of its allocation and counts as long as a batch that
/// references it is kept.
#[derive(Debug, Default)]
pub(crate) struct ChargedBuffers {
    /// By allocation: its bytes and number of references.
    buffers: HashMap<usize, (usize, usize)>,
}

impl ChargedBuffers {
    /// Adds a batch's buffers and returns the bytes that were not counted before.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> usize {
        batch.columns().iter().map(|column| self.add_array(column)).sum()
    }

    /// The same for one array.
    pub(crate) fn add_array(&mut self, array: &ArrayRef) -> usize {
        let mut new = 0;
        each_buffer_of(array, &mut |address, bytes| {
            let (_, references) = self.buffers.entry(address).or_insert((bytes, 0));
            if *references == 0 {
                new += bytes;
            }
            *references += 1;
        });
        new
    }

    /// Removes a batch and returns the bytes that are no longer referenced.
    pub(crate) fn remove(&mut self, batch: &RecordBatch) -> usize {
        let mut freed = 0;
        each_buffer(batch, &mut |address, _| {
            let Some((bytes, references)) = self.buffers.get_mut(&address) else { return };
            *references -= 1;
            if *references == 0 {
                freed += *bytes;
                self.buffers.remove(&address);
            }
        });
        freed
    }
}

/// Batches in memory, and their charge.
#[derive(Debug)]
pub(crate) struct ChargedBatches {
    pub(crate) memory: Reservation,
    pub(crate) buffers: ChargedBuffers,
}

impl ChargedBatches {
    pub(crate) fn new(memory: Reservation) -> Self {
        Self { memory, buffers: ChargedBuffers::default() }
    }

    /// Returns the bytes that only this batch references. Copies of some rows may be larger than
    /// the reservation made for them.
    pub(crate) fn release(&mut self, batch: &RecordBatch) {
        let bytes = self.buffers.remove(batch);
        self.memory.shrink(bytes.min(self.memory.bytes()));
    }
}

fn each_buffer(batch: &RecordBatch, visit: &mut impl FnMut(usize, usize)) {
    for column in batch.columns() {
        each_buffer_of(column, visit);
    }
}

/// Plain numbers without `ArrayData`, which allocates: pieces of partitions have few rows.
fn each_buffer_of(array: &dyn Array, visit: &mut impl FnMut(usize, usize)) {
    downcast_primitive_array!(
        array => {
            let nulls = array.nulls().map(|nulls| nulls.buffer());
            for buffer in [array.values().inner()].into_iter().chain(nulls) {
                visit(buffer.data_ptr().as_ptr().addr(), buffer.capacity());
            }
        }
        _ => each_buffer_of_data(&array.to_data(), visit),
    );
}

fn each_buffer_of_data(data: &ArrayData, visit: &mut impl FnMut(usize, usize)) {
    let nulls = data.nulls().map(|nulls| nulls.buffer());
    for buffer in data.buffers().iter().chain(nulls) {
        visit(buffer.data_ptr().as_ptr().addr(), buffer.capacity());
    }
    data.child_data().iter().for_each(|child| each_buffer_of_data(child, visit));
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn batch(rows: i64) -> RecordBatch {
        let numbers: ArrayRef = Arc::new((0..rows).map(Some).collect::<Int64Array>());
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["text"; rows as usize]));
        let columns = [("a", numbers.clone()), ("b", texts), ("c", numbers)];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn the_limit_is_enforced_and_named() {
        let pool = Pool::of(100);
        let mut first = Reservation::new(pool.clone());
        first.grow(60).unwrap();
        let mut second = Reservation::new(pool.clone());
        let error = second.grow(41).unwrap_err();
        assert_eq!(error, MemoryError { wanted: 41, used: 60, limit: 100 });
        assert!(error.to_string().contains("raise the limit"), "{error}");
        assert!(second.grow(usize::MAX).is_err(), "no overflow");
        second.grow(40).unwrap();
        first.resize(10).unwrap();
        assert_eq!((pool.used(), pool.peak_bytes()), (50, 100));
        let part = first.split(4);
        drop(first);
        assert_eq!(pool.used(), 44);
        second.absorb(part);
        second.free();
        drop(second);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn many_threads_never_exceed_the_limit() {
        let pool = Pool::of(1000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for bytes in 0..2000 {
                        let mut reservation = Reservation::new(pool.clone());
                        let _ = reservation.grow(bytes % 700);
                        assert!(pool.used() <= 1000);
                    }
                });
            }
        });
        assert_eq!(pool.used(), 0);
        assert!(pool.peak_bytes() <= 1000);
    }

    #[test]
    fn shared_buffers_count_once_while_they_are_referenced() {
        let whole = batch(1000);
        let mut charged = ChargedBuffers::default();
        let bytes = charged.add(&whole);
        // Two columns are one array; strings have offsets and bytes.
        assert!((8000 + 4000 + 4000..20_000).contains(&bytes), "{bytes}");
        let (left, right) = (whole.slice(0, 10), whole.slice(500, 500));
        assert_eq!(charged.add(&left) + charged.add(&right), 0);
        assert_eq!(charged.remove(&whole) + charged.remove(&left), 0);
        assert_eq!(charged.remove(&right), bytes);
        let mut again = ChargedBuffers::default();
        assert_eq!(again.add(&left), bytes, "a slice holds the whole buffer");
    }
}
