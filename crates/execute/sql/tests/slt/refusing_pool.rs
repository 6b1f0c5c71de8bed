//! A memory pool that refuses two requests of each of our joins: one when its table is built of all
//! rows, and one when it is built of partitions, one of which is then spilled. The test files'
//! tables are too small for a limit that would do the same.

use std::collections::HashMap;
use std::fmt;

use datafusion::common::resources_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use parking_lot::Mutex;

/// Refused requests per join.
const REFUSALS: usize = 2;
/// More than a batch of the files' tables, less than a table with the room for an output batch.
const LARGE_BYTES: usize = 64 << 10;
/// The limit that it reports, so that the buffers of spill files are small; it enforces none.
const REPORTED_BYTES: usize = 128 << 10;

/// Refusals so far, by consumer.
#[derive(Debug, Default)]
pub(crate) struct RefusingPool {
    refused: Mutex<HashMap<usize, usize>>,
}

impl fmt::Display for RefusingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refuses joins twice")
    }
}

impl MemoryPool for RefusingPool {
    fn name(&self) -> &str {
        "refusing"
    }

    fn grow(&self, _: &MemoryReservation, _: usize) {}

    fn shrink(&self, _: &MemoryReservation, _: usize) {}

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let consumer = reservation.consumer();
        // Without a row there is nothing to spill.
        let has_rows = reservation.size() > 0;
        if has_rows && additional > LARGE_BYTES && consumer.name().starts_with("WorkaheadJoin") {
            let mut refused = self.refused.lock();
            let times = refused.entry(consumer.id()).or_default();
            if consumer.can_spill() && *times < REFUSALS {
                *times += 1;
                return Err(resources_datafusion_err!("refused for the {times}. time"));
            }
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        0
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(REPORTED_BYTES)
    }
}
