//! State shared by all parts of one join: memory, files, null-aware state.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow_array::RecordBatch;

use crate::StopCheck;
use crate::batch::{batch_bytes_max, row_bytes, rows_min};
use crate::memory_estimate::{OutputSize, sliced_bytes};
use crate::row_bytes::WidestValues;
use crate::spill::SpillCounters;
use crate::{JoinError, JoinSpec, MemoryError, MemoryPool, Pool, Reservation, SpillDirectory};

/// The pieces in progress of all threads together get this share of the memory.
const PIECE_SHARE: usize = 16;
/// Bytes of a row in a piece: key, position, match. And how many copies of the row itself there may
/// be: as read, partitioned, joined, buffered.
const ROW_BYTES: usize = 128;
const ROW_TIMES: usize = 4;

/// A limit suffices that is this many times what a step needed: later steps may need more, and the
/// buffers grow with the limit, as does their number.
const ENOUGH_TIMES: f64 = 3.0;
/// Rows of both sides that are held at a time however wide they are: read, compressed, partitioned,
/// as keys, in an output and in the one before.
const WIDE_ROWS: usize = 20;

/// Shared by a join and all levels of its partitions.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// Records the peak, within the caller's pool.
    pub(crate) pool: Arc<Pool>,
    /// The limit that errors name.
    total: Option<usize>,
    /// Most bytes that each of the probers may hold at a time of rows as wide as the widest so far.
    wide_bytes: Arc<AtomicUsize>,
    probers: usize,
    pub(crate) spill: Option<Arc<SpillDirectory>>,
    pub(crate) stop: StopCheck,
    pub(crate) null_aware_state: Arc<NullAwareState>,
    pub(crate) counts: Arc<SpillCounters>,
}

impl Context {
    pub(crate) fn new(spec: &JoinSpec) -> Self {
        Self {
            pool: Pool::within(spec.memory.clone(), usize::MAX),
            total: spec.memory.total(),
            wide_bytes: Arc::default(),
            probers: spec.probers,
            spill: spec.spill.clone(),
            stop: spec.stop.clone(),
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
        match self.pool.share() {
            Some(_) => {
                let row_bytes = sliced_bytes(batch).div_ceil(batch.num_rows().max(1));
                self.piece_rows_of(row_bytes, threads)
            }
            None => usize::MAX,
        }
    }

    /// The same by the bytes of a row.
    pub(crate) fn piece_rows_of(&self, row_bytes: usize, threads: usize) -> usize {
        let Some(share) = self.pool.share() else { return usize::MAX };
        (share / PIECE_SHARE / threads / (ROW_BYTES + ROW_TIMES * row_bytes))
            .max(rows_min(row_bytes))
    }

    /// Most bytes of such a piece, unless it is one row: the average misleads if some are wide.
    pub(crate) fn piece_bytes(&self, threads: usize) -> usize {
        batch_bytes_max(self.pool.share(), threads) / ROW_TIMES
    }

    /// The size of output batches.
    pub(crate) fn output_size(&self, spec: &JoinSpec) -> OutputSize {
        let bytes_max = batch_bytes_max(self.pool.share(), spec.probers);
        OutputSize { rows: spec.batch_rows, bytes_max }
    }

    /// Bytes of a batch's widest row; zero if memory is unlimited and nothing depends on it.
    pub(crate) fn widest_row(&self, batch: &RecordBatch) -> usize {
        let mut widest = WidestValues::default();
        self.add_widest(batch, &mut widest);
        widest.row_bytes()
    }

    /// Measures a batch's widest values, if memory is limited.
    pub(crate) fn add_widest(&self, batch: &RecordBatch, to: &mut WidestValues) {
        if self.pool.limit().is_some() {
            to.add(batch);
            self.wide_bytes.fetch_max(WIDE_ROWS * to.row_bytes(), Ordering::Relaxed);
        }
    }

    /// The same error; for lack of memory, the one that names a limit that is enough.
    pub(crate) fn named(&self, error: JoinError) -> JoinError {
        match error {
            JoinError::Limit(short) => self.short(short),
            other => other,
        }
    }

    /// The error for lack of memory.
    pub(crate) fn short(&self, MemoryError { wanted, used, limit }: MemoryError) -> JoinError {
        match self.spill {
            Some(_) => {
                let (share, limit) = (limit.max(1), self.total.unwrap_or(limit));
                let share_enough = used.saturating_add(wanted) as f64 * ENOUGH_TIMES;
                let enough = (limit as f64 * share_enough / share as f64) as usize;
                let wide_bytes = self.wide_bytes.load(Ordering::Relaxed);
                let enough = enough.max(wide_bytes.saturating_mul(self.probers));
                JoinError::LimitTooSmall { wanted, used, limit, enough }
            }
            None => JoinError::Limit(MemoryError { wanted, used, limit }),
        }
    }
}

/// Properties of the whole inputs that a null-aware join must know before it outputs unmatched
/// rows.
#[derive(Debug, Default)]
pub(crate) struct NullAwareState {
    build_rows: AtomicBool,
    build_nulls: AtomicBool,
    probe_rows: AtomicBool,
    probe_nulls: AtomicBool,
}

impl NullAwareState {
    /// Records the build side, once it is complete.
    pub(crate) fn set_build(&self, rows: usize, has_null: bool) {
        self.build_rows.store(rows > 0, Ordering::Relaxed);
        self.build_nulls.store(has_null, Ordering::Relaxed);
    }

    /// The build side.
    pub(crate) fn build(&self) -> InputState {
        InputState::load(&self.build_rows, &self.build_nulls)
    }

    /// Records a probe batch.
    pub(crate) fn add_probe(&self, rows: usize, has_null: bool) {
        if rows > 0 {
            self.probe_rows.store(true, Ordering::Relaxed);
        }
        if has_null {
            self.probe_nulls.store(true, Ordering::Relaxed);
        }
    }

    /// The probe side. Valid once all probers have ended.
    pub(crate) fn probe(&self) -> InputState {
        InputState::load(&self.probe_rows, &self.probe_nulls)
    }
}

/// The state of an input that a null-aware join must know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InputState {
    pub(crate) has_rows: bool,
    /// Whether any key was null.
    pub(crate) has_null: bool,
}

impl InputState {
    fn load(rows: &AtomicBool, nulls: &AtomicBool) -> Self {
        let [has_rows, has_null] = [rows, nulls].map(|flag| flag.load(Ordering::Relaxed));
        Self { has_rows, has_null }
    }
}
