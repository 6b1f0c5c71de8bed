//! State shared by all parts of one join: memory, files, null-aware state.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow_array::RecordBatch;

use crate::batch::{ROWS_MIN, row_bytes};
use crate::memory_estimate::sliced_bytes;
use crate::spill::SpillCounters;
use crate::{JoinError, JoinSpec, MemoryError, MemoryPool, Pool, Reservation, SpillDirectory};

/// The pieces in progress of all threads together get this share of the memory.
const PIECE_SHARE: usize = 16;
/// Bytes of a row in a piece: key, position, match. And how many copies of the row itself there may
/// be: as read, partitioned, joined, buffered.
const ROW_BYTES: usize = 128;
const ROW_TIMES: usize = 4;

/// Shared by a join and all levels of its partitions.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// Records the peak, within the caller's pool.
    pub(crate) pool: Arc<Pool>,
    pub(crate) spill: Option<Arc<SpillDirectory>>,
    pub(crate) null_aware_state: Arc<NullAwareState>,
    pub(crate) counts: Arc<SpillCounters>,
}

impl Context {
    pub(crate) fn new(spec: &JoinSpec) -> Self {
        Self {
            pool: Pool::within(spec.memory.clone(), usize::MAX),
            spill: spec.spill.clone(),
            null_aware_state: Arc::default(),
            counts: Arc::default(),
        }
    }

    /// Memory that is free.
    pub(crate) fn free(&self) -> usize {
        self.pool.limit().map_or(usize::MAX, |limit| limit.saturating_sub(self.pool.used()))
    }

    /// The same context with a share of the memory.
    pub(crate) fn with_share(&self, bytes: usize) -> Self {
        Self { pool: Pool::within(self.pool.clone(), bytes), ..self.clone() }
    }

    pub(crate) fn reservation(&self) -> Reservation {
        Reservation::new(self.pool.clone())
    }

    /// Bytes of a batch's rows; an estimate if memory is unlimited and nothing depends on it:
    /// summing up the lengths of strings costs as much as gathering them.
    pub(crate) fn bytes_of(&self, batch: &RecordBatch) -> usize {
        match self.pool.limit() {
            Some(_) => sliced_bytes(batch),
            None => batch.num_rows() * row_bytes(batch.schema_ref()),
        }
    }

    /// Rows of a batch processed at a time, so that the results of all threads fit beside
    /// everything else in memory. All rows if memory is unlimited.
    pub(crate) fn piece_rows(&self, batch: &RecordBatch, threads: usize) -> usize {
        let Some(limit) = self.pool.limit() else { return usize::MAX };
        let row_bytes = sliced_bytes(batch).div_ceil(batch.num_rows().max(1));
        (limit / PIECE_SHARE / threads / (ROW_BYTES + ROW_TIMES * row_bytes)).max(ROWS_MIN)
    }

    /// The error for lack of memory.
    pub(crate) fn short(&self, MemoryError { wanted, used, limit }: MemoryError) -> JoinError {
        match self.spill {
            Some(_) => JoinError::LimitTooSmall { wanted, used, limit },
            None => JoinError::Limit(MemoryError { wanted, used, limit }),
        }
    }
}

/// Properties of the whole inputs that a null-aware join must know before it outputs unmatched
/// rows.
#[derive(Debug, Default)]
pub(crate) struct NullAwareState {
    build_rows: AtomicUsize,
    build_nulls: AtomicBool,
    probe_rows: AtomicBool,
    probe_nulls: AtomicBool,
}

impl NullAwareState {
    /// Records the build side, once it is complete.
    pub(crate) fn build(&self, rows: usize, nulls: bool) {
        self.build_rows.store(rows, Ordering::Relaxed);
        self.build_nulls.store(nulls, Ordering::Relaxed);
    }

    /// The build side's rows, and whether any key was null.
    pub(crate) fn built(&self) -> (usize, bool) {
        (self.build_rows.load(Ordering::Relaxed), self.build_nulls.load(Ordering::Relaxed))
    }

    /// Records a probe batch.
    pub(crate) fn probe(&self, rows: usize, nulls: bool) {
        if rows > 0 {
            self.probe_rows.store(true, Ordering::Relaxed);
        }
        if nulls {
            self.probe_nulls.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the probe side had any row, and any null key. Valid once all probers have ended.
    pub(crate) fn probed(&self) -> (bool, bool) {
        (self.probe_rows.load(Ordering::Relaxed), self.probe_nulls.load(Ordering::Relaxed))
    }
}
