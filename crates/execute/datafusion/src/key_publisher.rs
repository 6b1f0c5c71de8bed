//! Hands on a build side as it is, and publishes the keys that it had.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::error::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Statistics, internal_err};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion_physical_plan::statistics::StatisticsArgs;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PhysicalExpr,
    PlanProperties,
};
use futures::{Stream, StreamExt};
use parking_lot::Mutex;

use crate::key_set::{KeyExchange, KeyExchangeExtension, KeyScope, KeySet};
use crate::keys::{KeyCollector, ListLimits};
use crate::like_its_input;
use crate::local_keys::LocalKeys;
use crate::memory::memory_limit;

/// A key column whose values are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PublishedKey {
    /// The filter that is made of them.
    pub(crate) filter: u32,
    pub(crate) column: usize,
    pub(crate) scope: KeyScope,
}

/// Publishes the keys of its rows once it has seen all of them.
#[derive(Debug)]
pub(crate) struct KeyPublisherExec {
    input: Arc<dyn ExecutionPlan>,
    keys: Arc<[PublishedKey]>,
    /// Where they go in a plan of one process, rather than to the session's exchange.
    local: Option<Arc<LocalKeys>>,
    parts: Arc<Mutex<Parts>>,
}

/// Contributions of partitions.
#[derive(Debug)]
struct Parts {
    missing: usize,
    /// One for each key; none once a part is unknown.
    sets: Vec<Option<KeySet>>,
    /// Whether no partition has contributed yet.
    none_yet: bool,
    memory: Vec<MemoryReservation>,
}

impl KeyPublisherExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, keys: Arc<[PublishedKey]>) -> Self {
        let parts = Parts {
            missing: input.output_partitioning().partition_count(),
            sets: Vec::new(),
            none_yet: true,
            memory: Vec::new(),
        };
        Self { input, keys, local: None, parts: Arc::new(Mutex::new(parts)) }
    }

    /// Publishes in this process only.
    pub(crate) fn within(self, local: Option<Arc<LocalKeys>>) -> Self {
        Self { local, ..self }
    }

    #[cfg(feature = "proto")]
    pub(crate) fn is_local(&self) -> bool {
        self.local.is_some()
    }

    pub(crate) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    pub(crate) fn keys(&self) -> &[PublishedKey] {
        &self.keys
    }

    fn over(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, Arc::clone(&self.keys)).within(self.local.clone())
    }
}

impl DisplayAs for KeyPublisherExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPublisherExec:")?;
        let schema = self.input.schema();
        self.keys.iter().try_for_each(|PublishedKey { filter, column, .. }| {
            write!(f, " {}@{column} for filter {filter}", schema.field(*column).name())
        })
    }
}

impl ExecutionPlan for KeyPublisherExec {
    fn name(&self) -> &str {
        "KeyPublisherExec"
    }

    like_its_input!();

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        // The filters of a second run would be those of the first.
        Ok(Arc::clone(&self.input))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if let Some(local) = &self.local {
            let partitions = self.input.output_partitioning().partition_count();
            self.keys.iter().for_each(|key| local.start(key.filter, partitions));
        }
        let exchange = KeyExchangeExtension::or(self.local.as_ref(), &context);
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let Some(exchange) = exchange else { return Ok(input) };
        let limits = ListLimits::of(context.session_config().options());
        let limits = limits.for_exchanged_rows(memory_limit(&context));
        let schema = input.schema();
        let collector =
            |key: &PublishedKey| KeyCollector::new(&[key.column], &schema, limits).map(Some);
        let memory = MemoryConsumer::new("keys for other stages").register(context.memory_pool());
        Ok(Box::pin(PublishedStream {
            input,
            collectors: self.keys.iter().map(collector).collect::<Result<_>>()?,
            memory,
            contribution: Contribution {
                keys: Arc::clone(&self.keys),
                exchange,
                parts: Arc::clone(&self.parts),
                given: false,
            },
        }))
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&inputs[0]))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}

/// One partition's part. If it is dropped before it is given, its keys are unknown.
struct Contribution {
    keys: Arc<[PublishedKey]>,
    exchange: Arc<dyn KeyExchange>,
    parts: Arc<Mutex<Parts>>,
    given: bool,
}

impl Contribution {
    /// Gives what is known of each key, and publishes it if it is the last part.
    fn give(&mut self, sets: Vec<Option<KeySet>>, memory: Option<MemoryReservation>) {
        if std::mem::replace(&mut self.given, true) {
            return;
        }
        let mut parts = self.parts.lock();
        parts.memory.extend(memory);
        parts.sets = if std::mem::take(&mut parts.none_yet) {
            sets
        } else {
            let before = std::mem::take(&mut parts.sets);
            let both = before.into_iter().zip(sets);
            // Keys of one column have one type.
            both.map(|(one, two)| one?.merge(two?).ok()).collect()
        };
        parts.missing = parts.missing.saturating_sub(1);
        if parts.missing > 0 {
            return;
        }
        let sets = std::mem::take(&mut parts.sets);
        for (key, set) in self.keys.iter().zip(sets) {
            self.exchange.publish(key.filter, set, key.scope);
        }
        parts.memory.clear();
    }
}

impl Drop for Contribution {
    fn drop(&mut self) {
        self.give(vec![None; self.keys.len()], None);
    }
}

/// The rows of a partition, looked at on their way.
struct PublishedStream {
    input: SendableRecordBatchStream,
    /// One for each key; none once it is unknown.
    collectors: Vec<Option<KeyCollector>>,
    memory: MemoryReservation,
    contribution: Contribution,
}

impl PublishedStream {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        for collector in self.collectors.iter_mut().flatten() {
            collector.add(batch)?;
        }
        let bytes = self.collectors.iter().flatten().map(KeyCollector::bitmap_bytes).sum();
        if self.memory.try_resize(bytes).is_err() {
            // The join needs it more.
            self.collectors.fill_with(|| None);
            self.memory.free();
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let (collectors, schema) = (std::mem::take(&mut self.collectors), self.input.schema());
        let keys = self.contribution.keys.iter().zip(collectors);
        let sets = keys.map(|(key, collector)| {
            let Some(collector) = collector else { return Ok(None) };
            let kind = schema.field(key.column).data_type();
            let rows = collector.rows();
            Ok(Some(KeySet::new(kind, collector.finish(rows)?)))
        });
        let sets = sets.collect::<Result<_>>()?;
        self.contribution.give(sets, Some(self.memory.take()));
        Ok(())
    }
}

impl Stream for PublishedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let batch = ready!(self.input.poll_next_unpin(context));
        let done = match &batch {
            Some(Ok(batch)) => self.add(batch),
            None => self.end(),
            Some(Err(_)) => Ok(()),
        };
        Poll::Ready(match done {
            Ok(()) => batch,
            Err(error) => Some(Err(error)),
        })
    }
}

impl RecordBatchStream for PublishedStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
