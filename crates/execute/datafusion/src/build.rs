//! The build side: read to its end, made into a table, and shared by whoever probes it.
//!
//! With `CollectLeft` there is one table for all partitions of the probe side: whichever of them is
//! polled drives it, and the last to be done lets it go. With `Partitioned` each partition has its
//! own.

use std::sync::Arc;

use datafusion_common::error::{DataFusionError, Result};
use datafusion_execution::SendableRecordBatchStream;
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, Shared};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use workahead_join::{HashJoin, JoinTable, Side};

use crate::announcement::Reporter;
use crate::error::from_join;
use crate::keys::KeyCollector;
use crate::measured::Race;
use crate::metrics::JoinMetrics;
use crate::translation::Translation;

/// A table, and the metrics of the partition that built it.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) table: Arc<JoinTable>,
    metrics: JoinMetrics,
}

impl Drop for Built {
    /// Nobody probes it any more.
    fn drop(&mut self) {
        self.metrics.close_table(&self.table);
    }
}

/// A table that is being made, for any number of waiters.
pub(crate) type SharedTable = Shared<BoxFuture<'static, Result<Arc<Built>, Arc<DataFusionError>>>>;

/// What may be built.
pub(crate) enum Inputs {
    /// The left side.
    Planned(SendableRecordBatchStream),
    /// The side that is found to have fewer rows; who is told of the other.
    Measured(Box<Race>, oneshot::Sender<SendableRecordBatchStream>),
}

impl Inputs {
    /// The side that is built, and its rows.
    async fn choose(self) -> Result<(Side, SendableRecordBatchStream)> {
        match self {
            Self::Planned(left) => Ok((Side::Left, left)),
            Self::Measured(race, told) => {
                let raced = race.run().await?;
                // Nobody listens when the join has been given up.
                let _ = told.send(raced.probe);
                Ok((raced.built, raced.build))
            }
        }
    }
}

/// What a build needs.
pub(crate) struct Build {
    pub(crate) inputs: Inputs,
    pub(crate) translation: Arc<Translation>,
    /// The join with this session's options and memory.
    pub(crate) join: HashJoin,
    /// How many streams will probe the table and say that they are done.
    pub(crate) probers: usize,
    /// Who is told of the keys.
    pub(crate) reporter: Option<Reporter>,
    pub(crate) metrics: JoinMetrics,
}

impl Build {
    /// Starts when it is first polled.
    pub(crate) fn start(self) -> SharedTable {
        self.run().map(|built| built.map(Arc::new).map_err(Arc::new)).boxed().shared()
    }

    async fn run(self) -> Result<Built> {
        if let Some(reporter) = &self.reporter {
            reporter.start();
        }
        let (built, mut rows) = self.inputs.choose().await?;
        let mut side = self.join.with_build_side(built).build();
        let translation = Arc::clone(&self.translation);
        let (input, build_time) = (translation.of_side(built), self.metrics.build_time.clone());
        // The filter is for the right side, of the left one's keys. Dropped, nothing is told.
        let reporter = self.reporter.filter(|_| built == Side::Left);
        let mut collector = match &reporter {
            Some(reporter) => {
                Some(KeyCollector::new(&input.keys, &input.schema, reporter.limits())?)
            }
            None => None,
        };
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            let _timer = build_time.timer();
            self.metrics.build_input_batches.add(1);
            self.metrics.build_input_rows.add(batch.num_rows());
            let batch = input.read(&batch)?;
            if let Some(collector) = &mut collector {
                collector.add(&batch)?;
            }
            side.push(batch).map_err(from_join)?;
        }
        // The input's own memory is not needed while the table is made.
        drop(rows);
        let _timer = build_time.timer();
        let table = side.finish().map_err(from_join)?;
        table.expect_probers(self.probers);
        self.metrics.build_mem_used.add(table.memory_bytes());
        self.metrics.table_bytes.add(table.table_bytes());
        self.metrics.strategy.add(table.choice().strategy.name());
        self.metrics.design.add(table.choice().design.name());
        self.metrics.build_side.add(built.name());
        if let (Some(reporter), Some(collector)) = (&reporter, collector) {
            // How many keys a table has does not count those in files.
            let keys = if table.spills() { usize::MAX } else { table.keys() };
            reporter.report(collector.finish(keys)?)?;
        }
        Ok(Built { table: Arc::new(table), metrics: self.metrics.clone() })
    }
}

/// A stream of no batches, in place of one that is no longer needed.
pub(crate) fn empty(like: &SendableRecordBatchStream) -> SendableRecordBatchStream {
    use datafusion_physical_plan::EmptyRecordBatchStream;
    Box::pin(EmptyRecordBatchStream::new(like.schema()))
}

/// The one table of `CollectLeft`.
#[derive(Default)]
pub(crate) struct OneTable {
    state: Mutex<(Option<SharedTable>, usize)>,
}

impl OneTable {
    /// The table, started by whoever asks first.
    pub(crate) fn get(&self, start: impl FnOnce() -> Result<SharedTable>) -> Result<SharedTable> {
        let mut state = self.state.lock();
        if let Some(table) = &state.0 {
            return Ok(table.clone());
        }
        let table = start()?;
        *state = (Some(table.clone()), 0);
        Ok(table)
    }

    /// One of so many probers is done: with the last of them the table's memory goes.
    pub(crate) fn done(&self, probers: usize) {
        let mut state = self.state.lock();
        state.1 += 1;
        if state.1 == probers {
            *state = (None, 0);
        }
    }
}

impl std::fmt::Debug for OneTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OneTable").field("done", &self.state.lock().1).finish_non_exhaustive()
    }
}
