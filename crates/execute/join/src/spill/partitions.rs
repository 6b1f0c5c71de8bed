//! The partitioned build side: as many partitions as fit stay in memory.

use arrow_array::RecordBatch;
use workahead_walks::walk::Row;

use super::file::SpillFile;
use super::level::Level;
use super::partition_buffer::{self, PartitionBuffer, SpillTarget};
use super::partitioner::{Partitioner, piece};
use super::sizes::Sizes;
use crate::builder::ROWS_MAX;
use crate::context::Context;
use crate::distinct::Distinct;
use crate::join_type::SideOutput;
use crate::memory::ChargedBatches;
use crate::memory_estimate::{MemoryEstimate, sliced_bytes, widest};
use crate::table_layout::table_load;
use crate::{JoinError, JoinSpec, MemoryPool, Reservation, SpillDirectory};

/// A partition with more than this percentage of the rows is not partitioned again: most of its
/// rows have one key.
const UNSPLITTABLE_PERCENT: usize = 90;

/// The build side's rows by partition.
pub(crate) struct Partitions {
    context: Context,
    target: SpillTarget,
    partitioner: Partitioner,
    level: Level,
    buffers: Vec<PartitionBuffer>,
    /// Distinct keys and bytes of full keys, by partition.
    distinct: Vec<Distinct>,
    key_bytes: Vec<usize>,
    charge: ChargedBatches,
    /// Whether rows without a key are kept, and whether there is a match bitmap.
    keeps_keyless: bool,
    match_bitmap: bool,
    /// The partition of the next row without a key: they are distributed round-robin.
    next_keyless: usize,
    batch_rows: usize,
    /// Bytes of all rows.
    bytes: usize,
}

/// The finished build side.
pub(crate) struct PartitionedBuildSide {
    /// Batches of the in-memory partitions, and the memory for a table of them.
    pub(crate) in_memory: Vec<RecordBatch>,
    pub(crate) memory: Reservation,
    /// Memory reserved for probers.
    pub(crate) room: Reservation,
    /// By partition; `None` for those in memory.
    pub(crate) files: Vec<Option<SpilledPartition>>,
}

/// A spilled partition of the build side.
#[derive(Clone)]
pub(crate) struct SpilledPartition {
    pub(crate) build: SpillFile,
    /// Whether it is not worth being partitioned again.
    pub(crate) unsplittable: bool,
}

impl Partitions {
    pub(crate) fn new(
        spec: &JoinSpec,
        context: &Context,
        directory: &std::sync::Arc<SpillDirectory>,
        level: Level,
        sizes: Sizes,
    ) -> Self {
        let build = spec.output_rules().build;
        let partitions = sizes.partitions();
        Self {
            target: SpillTarget::new(directory, context, spec.schema_of(spec.build_side), sizes),
            partitioner: Partitioner::new(spec, spec.build_side, level, sizes.bits),
            level,
            buffers: (0..partitions).map(|_| PartitionBuffer::default()).collect(),
            distinct: vec![Distinct::new(); partitions],
            key_bytes: vec![0; partitions],
            charge: ChargedBatches::new(context.reservation()),
            keeps_keyless: matches!(build, SideOutput::Unmatched | SideOutput::Marked),
            match_bitmap: build != SideOutput::Never,
            next_keyless: 0,
            batch_rows: 0,
            bytes: 0,
            context: context.clone(),
        }
    }

    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<(), JoinError> {
        self.batch_rows = self.batch_rows.max(batch.num_rows());
        self.bytes += sliced_bytes(batch);
        self.partitioner.assign(batch)?;
        let mut keyless = vec![Vec::new(); self.buffers.len()];
        if self.keeps_keyless {
            for row in self.partitioner.keyless(batch.num_rows()) {
                keyless[self.next_keyless].push(row);
                self.next_keyless = (self.next_keyless + 1) % keyless.len();
            }
        }
        for (partition, keyless) in keyless.into_iter().enumerate() {
            let (rows, keys) = self.partitioner.rows_of(partition);
            let all: Vec<Row> = rows.iter().copied().chain(keyless).collect();
            if all.is_empty() {
                continue;
            }
            self.distinct[partition].add(keys);
            let keyed = self.partitioner.keyed().max(1);
            self.key_bytes[partition] +=
                (self.partitioner.key_bytes() * rows.len()).div_ceil(keyed);
            let piece = piece(batch, all)?;
            let (buffers, target) = (&mut self.buffers, &self.target);
            let (whole, charge) = (piece.clone(), &mut self.charge);
            let short = partition_buffer::add(buffers, partition, whole, target, charge)?;
            if short.is_some() {
                self.buffers[partition].write_through(&piece, target)?;
            }
        }
        Ok(())
    }

    /// Estimates the memory for a table of the in-memory partitions.
    fn estimate(&self) -> MemoryEstimate {
        let mut estimate = MemoryEstimate {
            keyed: 0,
            rows: 0,
            distinct: 0,
            key_bytes: 0,
            widest_bytes: 0,
            table_bytes: None,
            existence_only: false,
            load: table_load(self.context.pool.limit().is_some()),
            batch_rows: self.batch_rows,
            match_bitmap: self.match_bitmap,
        };
        let in_memory = || self.buffers.iter().filter(|buffer| !buffer.is_spilled());
        for (at, buffer) in
            self.buffers.iter().enumerate().filter(|(_, buffer)| !buffer.is_spilled())
        {
            estimate.rows += buffer.rows();
            estimate.distinct += self.distinct[at].estimate();
            estimate.key_bytes += self.key_bytes[at];
        }
        estimate.keyed = estimate.rows;
        estimate.widest_bytes = widest(in_memory().flat_map(PartitionBuffer::batches));
        estimate
    }

    /// Spills the largest partition. False if none has rows in memory.
    pub(crate) fn make_room(&mut self) -> Result<bool, JoinError> {
        partition_buffer::make_room(&mut self.buffers, &self.target, &mut self.charge)
    }

    /// Average bytes of a row.
    pub(crate) fn row_bytes(&self) -> usize {
        let rows: usize = self.buffers.iter().map(PartitionBuffer::rows).sum();
        self.bytes.div_ceil(rows.max(1))
    }

    /// Spills until a table of the rest fits beside `room` bytes for probers, and finishes the
    /// files. The reservation for spilling becomes part of that room. With `keeps_none`, all
    /// partitions are spilled.
    pub(crate) fn finish(
        mut self,
        room: usize,
        mut reserve: Reservation,
        keeps_none: bool,
    ) -> Result<PartitionedBuildSide, JoinError> {
        let room = room.saturating_sub(reserve.bytes());
        let spills =
            |buffer: &&mut PartitionBuffer| buffer.is_spilled() || keeps_none && buffer.rows() > 0;
        for buffer in self.buffers.iter_mut().filter(spills) {
            buffer.spill(&self.target, &mut self.charge)?;
        }
        loop {
            let estimate = self.estimate();
            let short = match self.charge.memory.grow(estimate.bytes() + room) {
                Ok(()) if estimate.rows <= ROWS_MAX => break,
                Ok(()) => {
                    self.charge.memory.shrink(estimate.bytes() + room);
                    None
                }
                Err(short) => Some(short),
            };
            let in_memory = self.buffers.iter_mut().filter(|buffer| !buffer.is_spilled());
            match in_memory.max_by_key(|buffer| buffer.bytes()).filter(|buffer| buffer.rows() > 0) {
                Some(buffer) => buffer.spill(&self.target, &mut self.charge)?,
                None => {
                    return Err(self.context.short(short.expect("no rows always fit in number")));
                }
            }
        }
        let all: usize = self.buffers.iter().map(PartitionBuffer::rows).sum();
        reserve.absorb(self.charge.memory.split(room));
        let (in_memory, files) = (Vec::new(), Vec::new());
        let mut partitioned =
            PartitionedBuildSide { in_memory, memory: self.charge.memory, room: reserve, files };
        for mut buffer in self.buffers {
            let rows = buffer.rows();
            if buffer.is_spilled() {
                self.context.counts.partition(self.level.depth);
            } else {
                partitioned.in_memory.append(&mut buffer.take_batches());
                partitioned.files.push(None);
                continue;
            }
            let unsplittable = rows * 100 > all * UNSPLITTABLE_PERCENT;
            let file = buffer.finish(&self.target)?;
            partitioned.files.push(file.map(|build| SpilledPartition { build, unsplittable }));
        }
        Ok(partitioned)
    }
}
