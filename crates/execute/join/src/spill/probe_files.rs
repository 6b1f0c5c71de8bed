//! Buffers probe rows of spilled partitions and writes them to files.
//!
//! Each prober buffers the rows of its own batches under a lock that is only contended if memory is
//! short: a prober that is still short after writing its own buffers writes those of the others. A
//! prober that starts late finds all memory taken by earlier ones.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arrow_array::RecordBatch;
use workahead_walks::walk::Row;

use super::file::SpillFile;
use super::partition_buffer::{self, PartitionBuffer, SpillTarget};
use super::partitioner::{Partitioner, piece};
use super::sizes::Sizes;
use crate::context::Context;
use crate::join_type::SideOutput;
use crate::memory::ChargedBatches;
use crate::{JoinError, JoinSpec, MemoryError, Reservation, SpillDirectory};

/// One prober's rows of spilled partitions, buffered until they are worth a write.
pub(crate) struct ProbeFiles {
    partitioner: Partitioner,
    spill: ProbeSpill,
    own: Arc<Mutex<ProbeBuffers>>,
    context: Context,
    /// Memory for writing, beside the buffered rows.
    writing_bytes: usize,
    /// Whether the join outputs rows that match nothing.
    keeps_keyless: bool,
}

/// How the probe rows of a table are spilled, shared by its probers.
#[derive(Clone)]
pub(crate) struct ProbeSpill {
    pub(crate) sizes: Sizes,
    /// Which partitions are spilled.
    pub(crate) spilled: Arc<[bool]>,
    pub(crate) buffers: Arc<AllProbeBuffers>,
}

/// A prober's buffers, and where they are written.
struct ProbeBuffers {
    target: SpillTarget,
    buffers: Vec<PartitionBuffer>,
    charge: ChargedBatches,
}

impl ProbeBuffers {
    fn add(
        &mut self,
        partition: usize,
        piece: RecordBatch,
    ) -> Result<Option<MemoryError>, JoinError> {
        let (buffers, charge) = (&mut self.buffers, &mut self.charge);
        partition_buffer::add(buffers, partition, piece, &self.target, charge)
    }

    fn write_through(&mut self, partition: usize, piece: &RecordBatch) -> Result<(), JoinError> {
        self.buffers[partition].write_through(piece, &self.target)
    }

    fn bytes(&self) -> usize {
        self.buffers.iter().map(PartitionBuffer::bytes).sum()
    }
}

/// The buffers of all probers of a table.
#[derive(Default)]
pub(crate) struct AllProbeBuffers(Mutex<Vec<Weak<Mutex<ProbeBuffers>>>>);

impl AllProbeBuffers {
    fn register(&self, own: &Arc<Mutex<ProbeBuffers>>) {
        lock(&self.0).push(Arc::downgrade(own));
    }

    /// Charges more to a reservation, and writes buffers, the largest first, until it fits. What
    /// is only made free may be taken by others of the same pool, again and again.
    ///
    /// The caller must not hold any of the locks. All are taken at once, in a fixed order: if they
    /// were inspected one by one, a prober that meanwhile writes its own buffers could make all
    /// seem empty although memory is free.
    ///
    /// # Errors
    /// If there is less memory although no prober buffers anything.
    pub(crate) fn grow(
        &self,
        to: &mut Reservation,
        more: usize,
        context: &Context,
    ) -> Result<(), JoinError> {
        if to.grow(more).is_ok() {
            return Ok(());
        }
        let all: Vec<Arc<Mutex<ProbeBuffers>>> =
            lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        let mut all: Vec<MutexGuard<'_, ProbeBuffers>> = all.iter().map(|own| lock(own)).collect();
        while let Err(short) = to.grow(more) {
            let largest = all.iter_mut().max_by_key(|own| own.bytes());
            let made = match largest {
                Some(largest) => {
                    let ProbeBuffers { target, buffers, charge } = &mut **largest;
                    partition_buffer::make_room(buffers, target, charge)?
                }
                None => false,
            };
            if !made {
                return Err(context.short(short));
            }
        }
        Ok(())
    }
}

/// The lock stays usable after a panic: the join is dropped then.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProbeFiles {
    pub(crate) fn new(
        spec: &JoinSpec,
        context: &Context,
        directory: &Arc<SpillDirectory>,
        partitioner: Partitioner,
        spill: ProbeSpill,
    ) -> Self {
        let probe = spec.output_rules().probe;
        let schema = spec.schema_of(spec.build_side.other());
        let own = Arc::new(Mutex::new(ProbeBuffers {
            target: SpillTarget::new(directory, context, schema, spill.sizes),
            buffers: spill.spilled.iter().map(|_| PartitionBuffer::default()).collect(),
            charge: ChargedBatches::new(context.reservation()),
        }));
        spill.buffers.register(&own);
        Self {
            partitioner,
            own,
            context: context.clone(),
            writing_bytes: spill.sizes.writing_bytes(),
            spill,
            keeps_keyless: matches!(probe, SideOutput::Unmatched | SideOutput::Marked),
        }
    }

    /// Buffers the rows of spilled partitions and returns the others.
    pub(crate) fn partition(
        &mut self,
        batch: RecordBatch,
    ) -> Result<Option<RecordBatch>, JoinError> {
        self.partitioner.assign(&batch)?;
        let mut rest = Vec::<Row>::new();
        for (partition, spilled) in self.spill.spilled.iter().enumerate() {
            let (rows, _) = self.partitioner.rows_of(partition);
            if rows.is_empty() {
                continue;
            }
            if !spilled {
                rest.extend_from_slice(rows);
                continue;
            }
            self.buffer(partition, &piece(&batch, rows.to_vec())?)?;
        }
        if self.keeps_keyless {
            rest.append(&mut self.partitioner.keyless(batch.num_rows()));
        }
        if rest.len() == batch.num_rows() {
            return Ok(Some(batch));
        }
        if rest.is_empty() {
            return Ok(None);
        }
        // In input order: neighbouring probe rows often hit neighbouring entries.
        rest.sort_unstable();
        Ok(Some(piece(&batch, rest)?))
    }

    /// Adds rows to a buffer; if memory is short, makes room in all probers' buffers.
    fn buffer(&self, partition: usize, piece: &RecordBatch) -> Result<(), JoinError> {
        let short = lock(&self.own).add(partition, piece.clone())?;
        let Some(short) = short else { return Ok(()) };
        match self.grow(&mut self.context.reservation(), short.wanted) {
            Err(JoinError::LimitTooSmall { .. }) => {}
            made => {
                made?;
                // Others may have taken the memory meanwhile.
                if lock(&self.own).add(partition, piece.clone())?.is_none() {
                    return Ok(());
                }
            }
        }
        lock(&self.own).write_through(partition, piece)
    }

    /// Charges more to a reservation, and writes buffers until it fits.
    pub(crate) fn grow(&self, to: &mut Reservation, more: usize) -> Result<(), JoinError> {
        self.spill.buffers.grow(to, more, &self.context)
    }

    /// Bytes used beside the buffered rows.
    pub(crate) fn bytes(&self, batch_rows: usize) -> usize {
        self.partitioner.bytes(batch_rows) + self.writing_bytes
    }

    /// The files, by partition.
    pub(crate) fn finish(self) -> Result<Vec<Option<SpillFile>>, JoinError> {
        let mut own = lock(&self.own);
        let ProbeBuffers { target, buffers, charge } = &mut *own;
        let mut files = Vec::new();
        for mut buffer in std::mem::take(buffers) {
            if buffer.bytes() > 0 {
                buffer.spill(target, charge)?;
            }
            files.push(buffer.finish(target)?);
        }
        Ok(files)
    }
}
