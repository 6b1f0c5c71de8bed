//! Row locks, held until a transaction ends.
//!
//! A client that finds a row locked lets another run and retries. Transactions lock warehouses
//! before districts before customers before stock, and stock in ascending order, so no deadlock is
//! possible.

use super::footprint::{LOCK, UNLOCK};
use super::latch::{Latch, LatchId, Mode};
use super::session::Session;
use super::space::{Space, follow, write};
use super::tables::TableId;

/// Buckets of the lock table: a default.
const BUCKETS: usize = 4096;

/// Bytes of a bucket: its latch's line, and one of locks.
const BUCKET_BYTES: u64 = 128;

/// A row.
pub(super) type Row = (TableId, u32);

/// Locked rows, and their clients.
#[derive(Debug)]
pub(super) struct Locks {
    buckets: Vec<(Latch, Vec<(Row, u32)>)>,
    base: u64,
}

impl Locks {
    pub(super) fn new(space: &mut Space) -> Self {
        let base = space.reserve(BUCKETS as u64 * BUCKET_BYTES);
        Self { buckets: vec![(Latch::default(), Vec::new()); BUCKETS], base }
    }

    fn bucket((table, row): Row) -> usize {
        let key = (table as u32) << 28 ^ row;
        key.wrapping_mul(0x9E37_79B1) as usize >> 5 & (BUCKETS - 1)
    }

    pub(super) fn latch(&mut self, bucket: usize) -> (&mut Latch, u64) {
        (&mut self.buckets[bucket].0, self.base + bucket as u64 * BUCKET_BYTES)
    }

    fn entries(&self, bucket: usize) -> u64 {
        self.base + bucket as u64 * BUCKET_BYTES + BUCKET_BYTES / 2
    }

    /// Locks a row unless another client holds it.
    fn take(&mut self, row: Row, client: u32) -> bool {
        let rows = &mut self.buckets[Self::bucket(row)].1;
        let is_free = rows.iter().all(|(locked, _)| *locked != row);
        if is_free {
            rows.push((row, client));
        }
        is_free
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.buckets.iter().all(|(latch, rows)| latch.is_free() && rows.is_empty())
    }
}

impl Session {
    /// Locks a row for the rest of the transaction.
    pub(super) async fn lock(&self, locked: &mut Vec<Row>, row: Row) {
        if locked.contains(&row) {
            return;
        }
        let bucket = Locks::bucket(row);
        loop {
            self.latch(LatchId::Lock(bucket), Mode::Exclusive).await;
            let entries = self.engine().locks.entries(bucket);
            self.call(LOCK, &[follow(entries), write(entries)]);
            let is_taken = self.engine().locks.take(row, self.number);
            self.unlatch(LatchId::Lock(bucket), Mode::Exclusive).await;
            if is_taken {
                return locked.push(row);
            }
            self.engine().events.lock_waits += 1;
            self.give_way().await;
        }
    }

    /// Unlocks all rows of a transaction.
    pub(super) async fn unlock(&self, locked: Vec<Row>) {
        for row in locked {
            let bucket = Locks::bucket(row);
            self.latch(LatchId::Lock(bucket), Mode::Exclusive).await;
            let entries = self.engine().locks.entries(bucket);
            self.call(UNLOCK, &[follow(entries), write(entries)]);
            self.engine().locks.buckets[bucket].1.retain(|(found, _)| *found != row);
            self.unlatch(LatchId::Lock(bucket), Mode::Exclusive).await;
        }
    }
}
