//! The build side while its input is read: in memory while it fits, then in partitions.
//!
//! ```text
//! InMemory ──memory is short──► Partitioned ──► finish: some partitions in memory, others in files
//!    └─────────────────────────────────────────► finish: everything in memory
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;

use crate::batch::pieces_within;
use crate::builder::{Builder, ROWS_MAX};
use crate::context::Context;
use crate::decision::Decision;
use crate::join_type::SideOutput;
use crate::memory_estimate::{ProbeBatchSize, RowSize};
use crate::row_bytes::WidestValues;
use crate::spill::{Level, Partitioner, Partitions, Runs, Sizes};
use crate::table::SpilledPartitions;
use crate::{HashJoin, JoinError, JoinSpec, JoinTable, MemoryPool, Reservation};

/// Collects the build side's batches and makes a [`JoinTable`] of them.
pub struct BuildSide {
    spec: Arc<JoinSpec>,
    context: Context,
    /// The level of recursive partitioning.
    level: Level,
    sizes: Sizes,
    state: State,
    /// Reserved so that spilling can start: pieces of one batch, and the files' buffers.
    reserve: Reservation,
    /// Size of probe batches; assumed to be that of build batches unless it is known.
    probe_batch_size: ProbeBatchSize,
    probe_batch_size_is_known: bool,
    bytes: usize,
    rows: usize,
    /// The widest values, if memory is limited.
    widest: WidestValues,
    /// Of a null-aware join, whether any key was null.
    nulls: bool,
    build_time: Duration,
}

enum State {
    InMemory(Box<Builder>),
    Partitioned(Box<Partitions>),
}

impl HashJoin {
    /// Starts the build side.
    #[must_use]
    pub fn build(&self) -> BuildSide {
        BuildSide::at(Level::default(), &Arc::new(self.spec.clone()), Context::new(self))
    }
}

impl BuildSide {
    /// The build side of a partition.
    pub(crate) fn at(level: Level, spec: &Arc<JoinSpec>, context: Context) -> Self {
        let probers = if level.is_top() { spec.probers } else { 1 };
        let sizes = Sizes::of(context.pool.limit(), probers);
        let state = State::InMemory(Box::new(Builder::new(spec.clone(), context.reservation())));
        let reserve = context.reservation();
        let (rows, nulls, build_time) = (0, false, Duration::ZERO);
        Self {
            spec: spec.clone(),
            context,
            level,
            sizes,
            state,
            reserve,
            probe_batch_size: ProbeBatchSize::default(),
            probe_batch_size_is_known: false,
            bytes: 0,
            rows,
            widest: WidestValues::default(),
            nulls,
            build_time,
        }
    }

    /// Sets the known size of the probe side's batches.
    pub(crate) fn with_probe_batch_size(self, probe_batch_size: ProbeBatchSize) -> Self {
        Self { probe_batch_size, probe_batch_size_is_known: true, ..self }
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// If the batch doesn't have the declared schema, there are too many rows, the memory limit is
    /// reached without a spill directory, or spilling fails.
    pub fn push(&mut self, batch: RecordBatch) -> Result<(), JoinError> {
        let start = Instant::now();
        self.spec.check(self.spec.build_side, batch.schema_ref())?;
        if batch.num_rows() > ROWS_MAX {
            let (rows, most) = (batch.num_rows(), ROWS_MAX);
            return Err(JoinError::TooManyRows { rows, most });
        }
        if batch.num_rows() > 0 {
            let keys = self.spec.keys(self.spec.build_side);
            self.nulls |= self.spec.null_aware && keys.nulls(&batch).is_some();
            // Of the whole batch first: an error for lack of memory names a limit by it.
            self.context.add_widest(&batch, &mut self.widest);
            let threads = self.spec.probers;
            let rows = self.context.piece_rows(&batch, threads);
            let bytes = if self.context.pool.limit().is_some() {
                self.context.piece_bytes(threads)
            } else {
                usize::MAX
            };
            for piece in pieces_within(&batch, rows, bytes) {
                self.rows += piece.num_rows();
                self.update_probe_batch_size(&piece);
                self.add(piece)?;
            }
        }
        self.build_time += start.elapsed();
        Ok(())
    }

    fn update_probe_batch_size(&mut self, batch: &RecordBatch) {
        let widest = self.widest.row_bytes();
        if !self.probe_batch_size_is_known {
            self.bytes += self.context.bytes_of(batch);
            self.probe_batch_size.rows = self.probe_batch_size.rows.max(batch.num_rows());
            self.probe_batch_size.row = RowSize { average: self.bytes.div_ceil(self.rows), widest };
        }
    }

    fn add(&mut self, batch: RecordBatch) -> Result<(), JoinError> {
        self.context.stop.check()?;
        if !self.reserve_spilling(&batch)? {
            self.start_partitioning()?;
            self.reserve_spilling(&batch)?;
        }
        match &mut self.state {
            State::Partitioned(partitions) => partitions.add(&batch),
            State::InMemory(builder) => {
                let mut fits = builder.rows().all() + batch.num_rows() <= ROWS_MAX;
                if let Err(short) = builder.charge(&batch) {
                    if self.context.spill.is_none() {
                        return Err(self.context.short(short));
                    }
                    fits = false;
                }
                if !fits && self.context.spill.is_some() {
                    self.start_partitioning()?;
                    return self.add(batch);
                }
                builder.push(batch)?;
                match builder.charge_actual() {
                    Ok(()) => Ok(()),
                    Err(_) if self.context.spill.is_some() => self.start_partitioning(),
                    Err(short) => Err(self.context.short(short)),
                }
            }
        }
    }

    /// Reserves memory for spilling a batch like this. False if the batches in memory must be
    /// spilled first.
    fn reserve_spilling(&mut self, batch: &RecordBatch) -> Result<bool, JoinError> {
        if self.context.spill.is_none() {
            return Ok(true);
        }
        let needed = self.sizes.partitioning_bytes(batch);
        if needed <= self.reserve.bytes() {
            return Ok(true);
        }
        match (self.reserve.resize(needed), &mut self.state) {
            (Ok(()), _) => Ok(true),
            (Err(_), State::InMemory(builder)) if builder.rows().input > 0 => Ok(false),
            (Err(short), State::InMemory(_)) => Err(self.context.short(short)),
            (Err(_), State::Partitioned(partitions)) => {
                while let Err(short) = self.reserve.resize(needed) {
                    if !partitions.make_room()? {
                        return Err(self.context.short(short));
                    }
                }
                Ok(true)
            }
        }
    }

    /// Moves the batches in memory into partitions.
    fn start_partitioning(&mut self) -> Result<(), JoinError> {
        let State::InMemory(builder) = &mut self.state else { return Ok(()) };
        let (spec, context) = (&self.spec, &self.context);
        let directory = context.spill.as_ref().expect("only called with a spill directory");
        let mut partitions = Partitions::new(spec, context, directory, self.level, self.sizes);
        let empty = Builder::new(spec.clone(), context.reservation());
        let (batches, mut charged) = std::mem::replace(&mut **builder, empty).into_batches();
        // The first pieces are made before the first batch is freed.
        let lent = self.reserve.bytes() - self.sizes.writing_bytes().min(self.reserve.bytes());
        self.reserve.shrink(lent / 2);
        for batch in batches {
            context.stop.check()?;
            charged.release(&batch);
            partitions.add(&batch)?;
        }
        while let Err(short) = self.reserve.grow(lent / 2) {
            if !partitions.make_room()? {
                return Err(self.context.short(short));
            }
        }
        self.state = State::Partitioned(Box::new(partitions));
        Ok(())
    }

    /// Builds the table.
    ///
    /// # Errors
    /// If the memory limit is reached without a spill directory, or spilling fails.
    pub fn finish(mut self) -> Result<JoinTable, JoinError> {
        let start = Instant::now();
        if self.level.is_top() {
            self.context.null_aware_state.set_build(self.rows, self.nulls);
        }
        let decision = self.reserve_table()?;
        let Self { spec, context, level, sizes, state, reserve, .. } = self;
        let (probe_batch_size, rows, build_time, widest) =
            (self.probe_batch_size, self.rows, self.build_time, self.widest.row_bytes());
        // Below the first level, each partition pair is joined by one thread.
        let probers = if level.is_top() { spec.probers } else { 1 };
        let null_aware_state = context.null_aware_state.clone();
        let table = match state {
            State::InMemory(builder) => {
                drop(reserve);
                let room = context.reservation();
                let decision = decision.unwrap_or_else(|| builder.decide());
                let built = builder.finish(decision, null_aware_state);
                let in_memory = built.map_err(|error| context.named(error))?;
                JoinTable::new(in_memory, context, room, rows)
            }
            State::Partitioned(partitions) => {
                let build_row = RowSize { average: partitions.row_bytes(), widest };
                let ProbeBatchSize { rows: piece_rows, row } = probe_batch_size;
                let piece_bytes = context.piece_bytes(spec.probers).max(row.widest);
                let prober = probe_batch_size.bytes(context.output_size(&spec), build_row)
                    + piece_rows * Partitioner::ROW_BYTES
                    // A piece's rows, and the full keys of them.
                    + 2 * (piece_rows * row.average).min(piece_bytes).max(row.widest)
                    + sizes.files_bytes();
                let spare = sizes.spare_bytes(context.pool.share());
                let schema = (level.is_top() && spec.is_ordered()).then(|| spec.schema());
                // Probers with final phases of their own join pairs while others still probe: each
                // has a share of the memory, and nothing is shared but the files.
                let alone = schema.is_some() && probers > 1;
                let room = match (&schema, alone) {
                    (_, true) => 0,
                    (Some(_), _) => prober + Runs::writing_bytes(sizes) + spare,
                    (None, _) => probers * prober + spare,
                };
                let mut build = partitions.finish(room, reserve, alone)?;
                if alone {
                    build.room.free();
                }
                let spec = if schema.is_some() { Arc::new(spec.numbered()) } else { spec };
                let mut builder = Builder::new(spec, build.memory);
                for batch in std::mem::take(&mut build.in_memory) {
                    context.stop.check()?;
                    builder.count(&batch);
                    builder.push(batch)?;
                }
                let decision = builder.decide();
                let built = builder.finish(decision, null_aware_state);
                let in_memory = built.map_err(|error| context.named(error))?;
                let table = JoinTable::new(in_memory, context, build.room, rows);
                let table =
                    table.with_spilled(SpilledPartitions::new(build.files, sizes, level), schema);
                if alone { table.with_shares() } else { table }
            }
        };
        Ok(table.with_build_time(build_time + start.elapsed()))
    }

    /// The size of the pieces that probe batches are cut to.
    fn probe_piece_size(&self) -> ProbeBatchSize {
        let ProbeBatchSize { rows, row } = self.probe_batch_size;
        let whole = self.spec.output_rules().probe == SideOutput::Tracked;
        let most = || self.context.piece_rows_of(row.average, self.spec.probers);
        ProbeBatchSize { rows: if whole { rows } else { rows.min(most()) }, row }
    }

    /// Reserves memory for a table of all rows, if there is enough for its probers too, and returns
    /// the decision on it, or partitions the build side.
    fn reserve_table(&mut self) -> Result<Option<Decision>, JoinError> {
        let piece = self.probe_piece_size();
        let State::InMemory(builder) = &mut self.state else { return Ok(None) };
        let mut decision = builder.decide();
        let estimate = builder.estimate(&decision);
        if self.context.spill.is_none() {
            builder.reserve(estimate).map_err(|short| self.context.short(short))?;
            builder.reserve_partitioned_build(&mut decision);
            return Ok(Some(decision));
        }
        let probers = if self.level.is_top() { self.spec.probers } else { 1 };
        let room = match self.context.pool.limit() {
            Some(_) => {
                let widest = self.widest.row_bytes();
                let build_row = RowSize { average: builder.row_bytes(), widest };
                let output = self.context.output_size(&self.spec);
                probers * piece.bytes(output, build_row)
            }
            None => 0,
        };
        let reserved = self.reserve.bytes();
        self.reserve.free();
        if builder.reserve(estimate + room).is_ok() {
            builder.release(room);
            builder.reserve_partitioned_build(&mut decision);
            return Ok(Some(decision));
        }
        self.reserve.grow(reserved).map_err(|short| self.context.short(short))?;
        self.start_partitioning()?;
        Ok(None)
    }
}

impl std::fmt::Debug for BuildSide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            State::InMemory(_) => "in memory",
            State::Partitioned(_) => "partitioned",
        };
        f.debug_struct("BuildSide")
            .field("spec", &self.spec)
            .field("rows", &self.rows)
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
