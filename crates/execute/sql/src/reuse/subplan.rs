//! The rows of a subplan that several parts of a plan read.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::spill_file::SpillFile;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, metrics::SpillMetrics};
use futures::future::{BoxFuture, FutureExt, Shared};
use futures::{StreamExt, TryStreamExt, stream};

/// The part of a pool that one subplan's rows take at most; the rest is spilled.
const POOL_PART: usize = 16;

/// One partition's rows, once they are all there. The first that waits starts a task, which goes on
/// where its readers leave: other partitions may wait for this one (builds of a join report their
/// keys together). It ends with the plan.
type RowsFuture = Shared<BoxFuture<'static, CollectedRows>>;
type CollectedRows = std::result::Result<Arc<Rows>, Arc<DataFusionError>>;
/// `None` for those that no reader has requested yet.
type Partitions = Vec<Mutex<Option<RowsFuture>>>;

/// A subplan that is run once.
#[derive(Default)]
pub(super) struct Subplan {
    /// Names it in `EXPLAIN`.
    pub(super) number: OnceLock<usize>,
    /// The copy that is run, its first reader's, and its partitions.
    run: OnceLock<(Arc<dyn ExecutionPlan>, Partitions)>,
}

impl std::fmt::Debug for Subplan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subplan").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Subplan {
    /// The rows of a partition, of whichever copy is run.
    pub(super) fn read(
        &self,
        copy: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: &Arc<TaskContext>,
        metrics: SpillMetrics,
    ) -> Result<SendableRecordBatchStream> {
        let (plan, partitions) = self.run.get_or_init(|| {
            let partitions = copy.properties().output_partitioning().partition_count();
            (Arc::clone(copy), (0..partitions).map(|_| Mutex::default()).collect())
        });
        let mut collected = partitions[partition].lock().unwrap_or_else(PoisonError::into_inner);
        let collected = match &*collected {
            Some(collected) => collected.clone(),
            None => {
                let input = plan.execute(partition, Arc::clone(context))?;
                let rows = Rows::new(&plan.schema(), context, metrics, partitions.len());
                let work = async move {
                    let rows = SpawnedTask::spawn(rows.collect(input)).join_unwind().await;
                    let rows = rows.map_err(|error| DataFusionError::ExecutionJoin(error.into()));
                    rows.flatten().map(Arc::new).map_err(Arc::new)
                };
                collected.insert(work.boxed().shared()).clone()
            }
        };
        let schema = plan.schema();
        let rows = async move {
            let rows = collected.await.map_err(DataFusionError::Shared)?;
            // Readers that waited may run on this thread only, until this one lets go of it.
            tokio::task::yield_now().await;
            rows.stream()
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::once(rows).try_flatten())))
    }
}

/// Rows in memory, then those in a file.
struct Rows {
    batches: Vec<RecordBatch>,
    spilled: Option<Arc<dyn SpillFile>>,
    spill: SpillManager,
    reservation: MemoryReservation,
    bytes_max: usize,
}

impl Rows {
    fn new(
        schema: &SchemaRef,
        context: &TaskContext,
        metrics: SpillMetrics,
        partitions: usize,
    ) -> Self {
        let pool = context.memory_pool();
        let bytes_max = match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / POOL_PART / partitions,
            MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX,
        };
        let spill = SpillManager::new(context.runtime_env(), metrics, Arc::clone(schema));
        let reservation = MemoryConsumer::new("ReusedSubplanExec").register(pool);
        Self { batches: Vec::new(), spilled: None, spill, reservation, bytes_max }
    }

    async fn collect(mut self, mut input: SendableRecordBatchStream) -> Result<Self> {
        while let Some(batch) = input.next().await.transpose()? {
            let bytes = batch.get_array_memory_size();
            let fits = self.reservation.size().saturating_add(bytes) <= self.bytes_max;
            if fits && self.reservation.try_grow(bytes).is_ok() {
                self.batches.push(batch);
                continue;
            }
            let mut file = self.spill.create_in_progress_file("a subplan that is reused")?;
            file.append_batch(&batch)?;
            while let Some(batch) = input.next().await.transpose()? {
                file.append_batch(&batch)?;
            }
            self.spilled = file.finish()?;
        }
        Ok(self)
    }

    /// All of them, in their order.
    fn stream(self: Arc<Self>) -> Result<SendableRecordBatchStream> {
        let schema = Arc::clone(self.spill.schema());
        let spilled = self.spilled.clone();
        let file = spilled.map(|file| self.spill.read_spill_as_stream(file, None)).transpose()?;
        let batches = (0..self.batches.len()).map(move |at| Ok(self.batches[at].clone()));
        let all = stream::iter(batches).chain(stream::iter(file).flatten());
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, all)))
    }
}
