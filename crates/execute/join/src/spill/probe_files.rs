//! The probe side's rows of spilled partitions, on their way into files.
//!
//! Each prober keeps those of its own batches, under a lock that only memory's lack contends for:
//! who is short after all of its own is written has the others' written too. A prober that comes
//! late finds all memory taken by those before it.

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
use crate::{JoinError, JoinSpec, SpillDirectory};

/// Rows by partition, in memory until they are worth a write: those of one prober.
pub(crate) struct ProbeFiles {
    partitioner: Partitioner,
    /// By partition; none of those whose build rows are in memory.
    spilled: Arc<[bool]>,
    kept: Arc<Mutex<ProbeBuffers>>,
    all: Arc<AllProbeBuffers>,
    context: Context,
    /// Beside the rows that are kept.
    writing_bytes: usize,
    /// Whether rows that match nothing come out.
    keeps_keyless: bool,
}

/// What a prober keeps in memory, and where it goes.
struct ProbeBuffers {
    target: SpillTarget,
    buffers: Vec<PartitionBuffer>,
    charge: ChargedBatches,
}

impl ProbeBuffers {
    fn add(&mut self, partition: usize, piece: RecordBatch) -> Result<(), JoinError> {
        partition_buffer::add(&mut self.buffers, partition, piece, (&self.target, &mut self.charge))
    }

    fn bytes(&self) -> usize {
        self.buffers.iter().map(PartitionBuffer::bytes).sum()
    }
}

/// What all probers of a table keep in memory.
#[derive(Default)]
pub(crate) struct AllProbeBuffers(Mutex<Vec<Weak<Mutex<ProbeBuffers>>>>);

impl AllProbeBuffers {
    fn register(&self, kept: &Arc<Mutex<ProbeBuffers>>) {
        lock(&self.0).push(Arc::downgrade(kept));
    }

    /// Writes piles, the largest first, until so much memory is free that `wanted` bytes were had
    /// for a moment.
    ///
    /// # Errors
    /// When there is less even though nobody keeps anything.
    ///
    /// Whoever asks holds none of the locks. All are taken, in one order, so that "nobody keeps
    /// anything" is true of one moment: looked at one by one, a prober that writes its own piles
    /// meanwhile made this seem to be so with memory free.
    pub(crate) fn make_room(&self, wanted: usize, context: &Context) -> Result<(), JoinError> {
        let all: Vec<Arc<Mutex<ProbeBuffers>>> =
            lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        let mut all: Vec<MutexGuard<'_, ProbeBuffers>> =
            all.iter().map(|kept| lock(kept)).collect();
        while let Err(short) = context.reservation().grow(wanted) {
            let most = all.iter_mut().max_by_key(|kept| kept.bytes());
            let made = match most {
                Some(most) => {
                    let ProbeBuffers { target, buffers, charge } = &mut **most;
                    partition_buffer::make_room(buffers, (target, charge))?
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

/// What a thread that panicked left behind goes with the join.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ProbeFiles {
    pub(crate) fn new(
        spec: &JoinSpec,
        context: &Context,
        directory: &Arc<SpillDirectory>,
        (partitioner, spilled): (Partitioner, Arc<[bool]>),
        (sizes, all): (Sizes, Arc<AllProbeBuffers>),
    ) -> Self {
        let probe = spec.output_rules().probe;
        let schema = spec.schema_of(spec.build_side.other());
        let kept = Arc::new(Mutex::new(ProbeBuffers {
            target: SpillTarget::new(directory, context, schema, sizes),
            buffers: spilled.iter().map(|_| PartitionBuffer::default()).collect(),
            charge: ChargedBatches::new(context.reservation()),
        }));
        all.register(&kept);
        Self {
            partitioner,
            spilled,
            kept,
            all,
            context: context.clone(),
            writing_bytes: sizes.writing_bytes(),
            keeps_keyless: matches!(probe, SideOutput::Unmatched | SideOutput::Marked),
        }
    }

    /// Keeps the rows of spilled partitions, and gives the others.
    pub(crate) fn route(&mut self, batch: RecordBatch) -> Result<Option<RecordBatch>, JoinError> {
        self.partitioner.route(&batch)?;
        let mut rest = Vec::<Row>::new();
        for (partition, spilled) in self.spilled.iter().enumerate() {
            let (rows, _) = self.partitioner.of(partition);
            if rows.is_empty() {
                continue;
            }
            if !spilled {
                rest.extend_from_slice(rows);
                continue;
            }
            self.keep(partition, &piece(&batch, rows.to_vec())?)?;
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
        // In their order: hits of neighbours in the probe side are often neighbours in the table.
        rest.sort_unstable();
        Ok(Some(piece(&batch, rest)?))
    }

    /// Adds a piece to a pile, while memory is short in turn with room made anywhere.
    fn keep(&self, partition: usize, piece: &RecordBatch) -> Result<(), JoinError> {
        loop {
            let added = lock(&self.kept).add(partition, piece.clone());
            match added {
                // Another may take what is free now: it comes a piece further, and this one again.
                Err(JoinError::LimitTooSmall { wanted, .. }) => {
                    self.all.make_room(wanted, &self.context)?;
                }
                other => return other,
            }
        }
    }

    /// Bytes beside those of the rows that are kept.
    pub(crate) fn bytes(&self, batch_rows: usize) -> usize {
        self.partitioner.bytes(batch_rows) + self.writing_bytes
    }

    /// The files, by partition.
    pub(crate) fn finish(self) -> Result<Vec<Option<SpillFile>>, JoinError> {
        let mut kept = lock(&self.kept);
        let ProbeBuffers { target, buffers, charge } = &mut *kept;
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
