//! What the parts of one join share: its memory, its files, what is known of the whole inputs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow_array::RecordBatch;

use crate::batch::{ROWS_MIN, row_bytes};
use crate::memory_estimate::sliced_bytes;
use crate::spill::SpillCounters;
use crate::{JoinError, JoinSpec, MemoryError, MemoryPool, Pool, Reservation, SpillDirectory};

/// What is made of the pieces of all threads is a share of the memory.
const PIECE_SHARE: usize = 16;
/// Of a row in a piece: its key, its place, its pair; and itself as it came, routed, joined, held.
const ROW_BYTES: usize = 128;
const ROW_TIMES: usize = 4;

/// Of one join, its partitions, and theirs.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// SpillCounters the peak, within the pool that was given.
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

    /// The same with no more memory than a share.
    pub(crate) fn with_share(&self, bytes: usize) -> Self {
        Self { pool: Pool::within(self.pool.clone(), bytes), ..self.clone() }
    }

    pub(crate) fn reservation(&self) -> Reservation {
        Reservation::new(self.pool.clone())
    }

    /// The bytes that a batch's rows occupy: about, where memory has no limit and nothing depends
    /// on it. To find out how long texts are costs as much as to gather them.
    pub(crate) fn bytes_of(&self, batch: &RecordBatch) -> usize {
        match self.pool.limit() {
            Some(_) => sliced_bytes(batch),
            None => batch.num_rows() * row_bytes(batch.schema_ref()),
        }
    }

    /// How many rows of a batch are taken at a time: what so many threads make of them must fit
    /// beside everything else that memory is for. All, where it has no limit.
    pub(crate) fn piece_rows(&self, batch: &RecordBatch, threads: usize) -> usize {
        let Some(limit) = self.pool.limit() else { return usize::MAX };
        let row_bytes = sliced_bytes(batch).div_ceil(batch.num_rows().max(1));
        (limit / PIECE_SHARE / threads / (ROW_BYTES + ROW_TIMES * row_bytes)).max(ROWS_MIN)
    }

    /// What to say when memory is short.
    pub(crate) fn short(&self, MemoryError { wanted, used, limit }: MemoryError) -> JoinError {
        match self.spill {
            Some(_) => JoinError::LimitTooSmall { wanted, used, limit },
            None => JoinError::Limit(MemoryError { wanted, used, limit }),
        }
    }
}

/// What a null-aware join must know of whole inputs before any row comes out alone.
#[derive(Debug, Default)]
pub(crate) struct NullAwareState {
    build_rows: AtomicUsize,
    build_nulls: AtomicBool,
    probe_rows: AtomicBool,
    probe_nulls: AtomicBool,
}

impl NullAwareState {
    /// Notes the build side, once it is complete.
    pub(crate) fn build(&self, rows: usize, nulls: bool) {
        self.build_rows.store(rows, Ordering::Relaxed);
        self.build_nulls.store(nulls, Ordering::Relaxed);
    }

    /// The build side's rows, and whether any key was null.
    pub(crate) fn built(&self) -> (usize, bool) {
        (self.build_rows.load(Ordering::Relaxed), self.build_nulls.load(Ordering::Relaxed))
    }

    /// Notes a probe batch.
    pub(crate) fn probe(&self, rows: usize, nulls: bool) {
        if rows > 0 {
            self.probe_rows.store(true, Ordering::Relaxed);
        }
        if nulls {
            self.probe_nulls.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the probe side had any row, and any null key. Whoever asks has waited for all
    /// probers.
    pub(crate) fn probed(&self) -> (bool, bool) {
        (self.probe_rows.load(Ordering::Relaxed), self.probe_nulls.load(Ordering::Relaxed))
    }
}
