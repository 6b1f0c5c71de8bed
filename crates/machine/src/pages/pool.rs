//! Touched memory, kept for the next user, within a bound.
//!
//! A join's partitions, a study's repetitions: the same sizes are needed again and again, and the
//! first touch of fresh pages costs 4 to 10 times the stores that follow, and in a virtual machine
//! whose host took them back a hundred times. A pool lends mappings and takes them back when their
//! buffers are dropped. One bound covers all of it, lent and idle, another what is idle: it is
//! given back to the system when the room is needed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;

use super::mapping::Mapping;
use super::{AllocationError, PageBuffer, Pages, bytes_of};

/// An idle mapping serves a request of at least a half of its size: a smaller one would waste more
/// than it saves.
const WASTE_MAX: usize = 2;

/// A bounded stock of memory; clones share it.
///
/// ```
/// use workahead_machine::pages::{Pages, Pool};
/// let pool = Pool::new(64 << 20);
/// let first = pool.take_zeroed::<u64>(1 << 20, Pages::Huge).unwrap();
/// drop(first);
/// // The same memory, already touched.
/// let again = pool.take::<u32>(2 << 20, Pages::Huge).unwrap();
/// assert_eq!(pool.idle_bytes(), 0);
/// # drop(again);
/// ```
#[derive(Clone)]
pub struct Pool {
    shelf: Arc<PoolState>,
}

pub(super) struct PoolState {
    /// Lent and idle.
    limit_bytes: usize,
    /// Idle.
    keep_bytes: usize,
    stock: Mutex<Stock>,
}

#[derive(Default)]
struct Stock {
    /// Oldest first.
    idle: Vec<Mapping>,
    idle_bytes: usize,
    lent_bytes: usize,
}

impl Pool {
    /// A pool that never holds more than a given number of bytes, lent and idle together.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self::of(limit_bytes, limit_bytes)
    }

    /// A pool that lends whatever is requested, and keeps no more than a given number of bytes when
    /// they come back.
    #[must_use]
    pub fn keeping(keep_bytes: usize) -> Self {
        Self::of(usize::MAX, keep_bytes)
    }

    fn of(limit_bytes: usize, keep_bytes: usize) -> Self {
        Self { shelf: Arc::new(PoolState { limit_bytes, keep_bytes, stock: Mutex::default() }) }
    }

    /// A buffer that holds whatever its last user left there (zeros, if it is new).
    ///
    /// # Errors
    /// When the pool's bound or the system does not allow it.
    pub fn take<T: Pod>(&self, len: usize, pages: Pages) -> Result<PageBuffer<T>, AllocationError> {
        let mapping = self.shelf.take(bytes_of::<T>(len)?, pages)?;
        // SAFETY: the mapping holds at least `len` values, and any bytes are valid values of `T`.
        let mut buffer = unsafe { PageBuffer::over(mapping, len) };
        buffer.home = Some(Arc::clone(&self.shelf));
        Ok(buffer)
    }

    /// A buffer of zeros.
    ///
    /// # Errors
    /// As [`Pool::take`].
    pub fn take_zeroed<T: Pod>(
        &self,
        len: usize,
        pages: Pages,
    ) -> Result<PageBuffer<T>, AllocationError> {
        let mut buffer = self.take(len, pages)?;
        buffer.fill(T::zeroed());
        Ok(buffer)
    }

    /// Bytes kept for the next user.
    #[must_use]
    pub fn idle_bytes(&self) -> usize {
        self.shelf.stock().idle_bytes
    }

    /// Bytes in use.
    #[must_use]
    pub fn lent_bytes(&self) -> usize {
        self.shelf.stock().lent_bytes
    }

    /// Gives everything idle back to the system.
    pub fn clear(&self) {
        let mut stock = self.shelf.stock();
        stock.idle.clear();
        stock.idle_bytes = 0;
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("idle_bytes", &self.idle_bytes())
            .field("lent_bytes", &self.lent_bytes())
            .finish_non_exhaustive()
    }
}

impl PoolState {
    fn stock(&self) -> MutexGuard<'_, Stock> {
        // Every change below leaves the stock whole, also if its thread panics afterwards.
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, bytes: usize, pages: Pages) -> Result<Mapping, AllocationError> {
        let needed = Mapping::rounded(bytes).ok_or(AllocationError::Refused { bytes })?;
        let mut stock = self.stock();
        let fits = |mapping: &Mapping| {
            mapping.pages() == pages
                && mapping.bytes() >= needed
                && mapping.bytes() / WASTE_MAX <= needed
        };
        let fitting = stock.idle.iter().enumerate().filter(|(_, mapping)| fits(mapping));
        let best = fitting.min_by_key(|(_, mapping)| mapping.bytes()).map(|(i, _)| i);
        if let Some(best) = best {
            let mapping = stock.idle.remove(best);
            stock.idle_bytes -= mapping.bytes();
            stock.lent_bytes += mapping.bytes();
            return Ok(mapping);
        }
        let room = self.limit_bytes.saturating_sub(stock.lent_bytes);
        if needed > room {
            let (limit_bytes, lent_bytes) = (self.limit_bytes, stock.lent_bytes);
            return Err(AllocationError::PoolFull { bytes: needed, limit_bytes, lent_bytes });
        }
        drop(stock.shrink_to(room - needed));
        let mapping = Mapping::new(bytes, pages)?;
        stock.lent_bytes += mapping.bytes();
        Ok(mapping)
    }

    pub(super) fn put_back(&self, mapping: Mapping) {
        let mut stock = self.stock();
        stock.lent_bytes -= mapping.bytes();
        if mapping.bytes() > self.keep_bytes {
            // Unmapping takes its time: not while others wait.
            drop(stock);
            return;
        }
        stock.idle_bytes += mapping.bytes();
        stock.idle.push(mapping);
        let gone = stock.shrink_to(self.keep_bytes);
        drop(stock);
        drop(gone);
    }
}

impl Stock {
    /// The oldest mappings, of which no more than a given number of bytes are to be left.
    fn shrink_to(&mut self, idle_bytes: usize) -> Vec<Mapping> {
        let mut gone = 0;
        while self.idle_bytes > idle_bytes {
            self.idle_bytes -= self.idle[gone].bytes();
            gone += 1;
        }
        self.idle.drain(..gone).collect()
    }
}
