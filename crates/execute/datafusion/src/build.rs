//! The build side: read to its end, made into a table, and shared by the streams that probe it.
//!
//! With `CollectLeft` there is one table for all partitions of the probe side: the partition that
//! is polled drives the build, and the last one to end drops the table. With `Partitioned` each
//! partition has its own.

use std::sync::Arc;

use datafusion_common::error::{DataFusionError, Result};
use datafusion_execution::SendableRecordBatchStream;
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, Shared};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use workahead_join::{HashJoin, JoinTable, Side};

use crate::dynamic_filter::BuildContribution;
use crate::error::from_join;
use crate::keys::KeyCollector;
use crate::memory::Share;
use crate::metrics::JoinMetrics;
use crate::runtime_build_side::RuntimeBuildSide;
use crate::translation::Translation;

/// A table, and the metrics of the partition that built it.
#[derive(Debug)]
pub(crate) struct BuildOutput {
    pub(crate) table: Arc<JoinTable>,
    metrics: JoinMetrics,
}

impl Drop for BuildOutput {
    /// The last prober has ended.
    fn drop(&mut self) {
        self.metrics.close_table(&self.table);
    }
}

/// A table that is being built, for any number of waiters.
pub(crate) type SharedTable =
    Shared<BoxFuture<'static, Result<Arc<BuildOutput>, Arc<DataFusionError>>>>;

/// The input of a build.
pub(crate) enum BuildInput {
    /// The left side, as planned.
    Left(SendableRecordBatchStream),
    /// The side with fewer rows; the other one is sent to the prober.
    Smaller(Box<RuntimeBuildSide>, oneshot::Sender<SendableRecordBatchStream>),
}

impl BuildInput {
    /// The build side and its rows.
    async fn open(self) -> Result<(Side, SendableRecordBatchStream)> {
        match self {
            Self::Left(left) => Ok((Side::Left, left)),
            Self::Smaller(sides, prober) => {
                let chosen = sides.choose().await?;
                // The receiver is gone when the join has been cancelled.
                let _ = prober.send(chosen.probe);
                Ok((chosen.build_side, chosen.build))
            }
        }
    }
}

/// A build before it starts.
pub(crate) struct Build {
    pub(crate) input: BuildInput,
    pub(crate) translation: Arc<Translation>,
    /// The join with this session's options and memory.
    pub(crate) join: HashJoin,
    /// Its share of the memory, if it may spill.
    pub(crate) share: Option<Arc<Share>>,
    /// Number of streams that will probe the table.
    pub(crate) probers: usize,
    /// Receives the keys, if a node reads the dynamic filter.
    pub(crate) contribution: Option<BuildContribution>,
    pub(crate) metrics: JoinMetrics,
}

impl Build {
    /// Starts when it is first polled.
    pub(crate) fn start(self) -> SharedTable {
        self.run().map(|built| built.map(Arc::new).map_err(Arc::new)).boxed().shared()
    }

    async fn run(self) -> Result<BuildOutput> {
        if let Some(contribution) = &self.contribution {
            contribution.start();
        }
        let (build_side, mut rows) = self.input.open().await?;
        // Joins below it are built before its first batch comes.
        let mut next = rows.next().await;
        if let Some(share) = &self.share {
            share.start();
        }
        let mut side = self.join.with_build_side(build_side).build();
        let translation = Arc::clone(&self.translation);
        let (input, build_time) =
            (translation.of_side(build_side), self.metrics.build_time.clone());
        // The filter holds the left side's keys: it stays empty if the right side is built.
        let contribution = self.contribution.filter(|_| build_side == Side::Left);
        let mut collector = match &contribution {
            Some(contribution) => {
                Some(KeyCollector::new(&input.keys, &input.schema, contribution.limits())?)
            }
            None => None,
        };
        while let Some(batch) = next {
            let batch = batch?;
            {
                let _timer = build_time.timer();
                self.metrics.build_input_batches.add(1);
                self.metrics.build_input_rows.add(batch.num_rows());
                let batch = input.read(&batch)?;
                if let Some(collector) = &mut collector {
                    collector.add(&batch)?;
                }
                side.push(batch).map_err(from_join)?;
            }
            next = rows.next().await;
        }
        // The input's own memory is not needed while the table is made.
        drop(rows);
        let _timer = build_time.timer();
        let table = side.finish().map_err(from_join)?;
        table.expect_probers(self.probers);
        if let Some(share) = self.share {
            share.end(table.spills());
        }
        self.metrics.build_mem_used.add(table.memory_bytes());
        self.metrics.table_bytes.add(table.table_bytes());
        self.metrics.layout.add(table.layout_choice().layout.name());
        self.metrics.build_side.add(build_side.name());
        if let (Some(contribution), Some(collector)) = (&contribution, collector) {
            // The table's number of keys leaves out those in spill files.
            let keys = if table.spills() { usize::MAX } else { table.keys() };
            contribution.complete(collector.finish(keys)?)?;
        }
        Ok(BuildOutput { table: Arc::new(table), metrics: self.metrics.clone() })
    }
}

/// An empty stream, to replace one that is no longer needed.
pub(crate) fn empty(like: &SendableRecordBatchStream) -> SendableRecordBatchStream {
    use datafusion_physical_plan::EmptyRecordBatchStream;
    Box::pin(EmptyRecordBatchStream::new(like.schema()))
}

/// The one table of `CollectLeft`.
#[derive(Default)]
pub(crate) struct CollectedTable {
    state: Mutex<CollectedTableState>,
}

#[derive(Default)]
struct CollectedTableState {
    table: Option<SharedTable>,
    /// Probers that have ended.
    ended: usize,
}

impl CollectedTable {
    /// The table, started by the first caller.
    pub(crate) fn get(&self, start: impl FnOnce() -> Result<SharedTable>) -> Result<SharedTable> {
        let mut state = self.state.lock();
        if let Some(table) = &state.table {
            return Ok(table.clone());
        }
        let table = start()?;
        *state = CollectedTableState { table: Some(table.clone()), ended: 0 };
        Ok(table)
    }

    /// One of `probers` streams over the table.
    pub(crate) fn prober(table: &Arc<Self>, probers: usize) -> CollectedProber {
        CollectedProber { table: Arc::clone(table), probers }
    }
}

impl std::fmt::Debug for CollectedTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ended = self.state.lock().ended;
        f.debug_struct("CollectedTable").field("ended", &ended).finish_non_exhaustive()
    }
}

/// One of the streams that probe a collected table.
pub(crate) struct CollectedProber {
    table: Arc<CollectedTable>,
    probers: usize,
}

impl CollectedProber {
    /// Ends the stream's use of the table; the last one frees its memory.
    pub(crate) fn end(self) {
        let mut state = self.table.state.lock();
        state.ended += 1;
        if state.ended == self.probers {
            *state = CollectedTableState::default();
        }
    }
}
