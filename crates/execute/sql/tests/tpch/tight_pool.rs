//! A memory pool that limits our joins and nothing else, so that they and no others spill.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::resources_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};

/// A pool that limits the bytes of each join.
#[derive(Debug)]
pub(crate) struct TightPool {
    pub(crate) limit: usize,
    reserved: AtomicUsize,
}

impl TightPool {
    pub(crate) fn of(limit: usize) -> Self {
        Self { limit, reserved: AtomicUsize::new(0) }
    }
}

impl fmt::Display for TightPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tight for joins, {} bytes", self.limit)
    }
}

impl MemoryPool for TightPool {
    fn name(&self) -> &str {
        "tight"
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        self.reserved.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.reserved.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let ours = reservation.consumer().name().starts_with("WorkaheadJoin");
        if ours && reservation.size() + additional > self.limit {
            return Err(resources_datafusion_err!("a join may have {} bytes", self.limit));
        }
        self.grow(reservation, additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        // A join subtracts it from the limit: the memory of others does not count.
        0
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}
