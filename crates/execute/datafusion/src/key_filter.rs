//! Drops rows by keys that a [publisher](crate::key_publisher) has seen, maybe in another process.
//!
//! It waits for them, at most a bounded time: its rows could not be used before the build side is
//! complete. Then it drops rows while it drops enough of them; after the time is up, all rows pass.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use datafusion_common::error::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Statistics, internal_err};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::execution_plan::{CardinalityEffect, ReplaceChildrenOptions};
use datafusion_physical_plan::expressions::Column;
use datafusion_physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion_physical_plan::statistics::StatisticsArgs;
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
};
use futures::StreamExt;

use crate::key_publisher::PublishedKey;
use crate::key_set::KeyExchangeExtension;
use crate::like_its_input;
use crate::local_keys::LocalKeys;
use crate::patience::within;
use crate::sideways_filter::{FilterMetrics, FilteredStream};

/// Drops rows that a join of another stage would drop.
#[derive(Debug)]
pub(crate) struct KeyFilterExec {
    input: Arc<dyn ExecutionPlan>,
    pub(crate) key: PublishedKey,
    pub(crate) wait: Duration,
    /// Where the keys come from in a plan of one process.
    local: Option<Arc<LocalKeys>>,
    metrics: ExecutionPlanMetricsSet,
}

impl KeyFilterExec {
    /// By what is published as that key, in that column of the input.
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, key: PublishedKey, wait: Duration) -> Self {
        Self { input, key, wait, local: None, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// By what is published in this process.
    pub(crate) fn within(self, local: Option<Arc<LocalKeys>>) -> Self {
        Self { local, ..self }
    }

    #[cfg(feature = "proto")]
    pub(crate) fn is_local(&self) -> bool {
        self.local.is_some()
    }

    fn column(&self) -> Arc<dyn PhysicalExpr> {
        let at = self.key.column;
        Arc::new(Column::new(self.input.schema().field(at).name(), at))
    }

    fn over(&self, input: Arc<dyn ExecutionPlan>) -> Self {
        Self::new(input, self.key, self.wait).within(self.local.clone())
    }
}

impl DisplayAs for KeyFilterExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyFilterExec: {} in filter {}", self.column(), self.key.filter)
    }
}

impl ExecutionPlan for KeyFilterExec {
    fn name(&self) -> &str {
        "KeyFilterExec"
    }

    like_its_input!();

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        f(&self.column())
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        // The keys of a second run may be others.
        Ok(Arc::clone(&self.input))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let exchange = KeyExchangeExtension::or(self.local.as_ref(), &context);
        let Some(exchange) = exchange else { return Ok(input) };
        let (schema, column, wait) = (self.schema(), self.column(), self.wait);
        let keys = exchange.keys(self.key.filter, self.key.scope);
        let rows = context.session_config().batch_size();
        let metrics = FilterMetrics::new(&self.metrics, partition);
        let time = MetricBuilder::new(&self.metrics).subset_time("wait_time", partition);
        let stream = async move {
            let timer = time.timer();
            let keys = within(wait, keys).await;
            drop(timer);
            let keys = keys.flatten();
            let schema = input.schema();
            let filter = keys.and_then(|keys| keys.predicate(&column, &schema).transpose());
            match filter.transpose() {
                Ok(None) => input,
                Ok(Some(filter)) => Box::pin(FilteredStream::new(input, filter, rows, metrics)),
                Err(error) => {
                    let error = futures::stream::once(async { Err(error) });
                    Box::pin(RecordBatchStreamAdapter::new(schema, error)) as _
                }
            }
        };
        let stream = futures::stream::once(stream).flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(inputs[0].as_ref().clone().to_inexact()))
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::LowerEqual
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashMap;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use datafusion_physical_plan::ExecutionPlanProperties;
    use datafusion_physical_plan::common::collect;
    use datafusion_physical_plan::test::TestMemoryExec;
    use futures::FutureExt;
    use futures::future::BoxFuture;
    use parking_lot::Mutex;
    use tokio::sync::watch;

    use super::*;
    use crate::key_publisher::KeyPublisherExec;
    use crate::key_set::{KeyExchange, KeyScope, KeySet};

    /// The published keys of each filter.
    type PublishedKeys = HashMap<u32, watch::Sender<Option<Option<Arc<KeySet>>>>>;

    /// One task that publishes for itself.
    #[derive(Debug, Default)]
    pub(crate) struct OneTask(Mutex<PublishedKeys>);

    impl KeyExchange for OneTask {
        fn publish(&self, filter: u32, keys: Option<KeySet>, _: KeyScope) {
            self.0.lock().entry(filter).or_default().send_replace(Some(keys.map(Arc::new)));
        }

        fn keys(&self, filter: u32, _: KeyScope) -> BoxFuture<'static, Option<Arc<KeySet>>> {
            let mut known = self.0.lock().entry(filter).or_default().subscribe();
            async move { known.wait_for(Option::is_some).await.ok()?.clone().flatten() }.boxed()
        }
    }

    pub(crate) fn context(exchange: &Arc<OneTask>) -> Arc<TaskContext> {
        let exchange = Arc::clone(exchange) as Arc<dyn KeyExchange>;
        let config = datafusion_execution::config::SessionConfig::new()
            .with_extension(Arc::new(KeyExchangeExtension(exchange)));
        Arc::new(TaskContext::default().with_session_config(config))
    }

    pub(crate) fn table(name: &str, keys: impl IntoIterator<Item = i64>) -> Arc<dyn ExecutionPlan> {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
        let batch = RecordBatch::try_from_iter([(name, keys)]).unwrap();
        let schema = batch.schema();
        TestMemoryExec::try_new_exec(&[vec![batch.clone()], vec![batch]], schema, None).unwrap()
    }

    const KEY: PublishedKey = PublishedKey { filter: 3, column: 0, scope: KeyScope::Parts };

    fn publisher() -> Arc<dyn ExecutionPlan> {
        Arc::new(KeyPublisherExec::new(table("b", [4, 6]), [KEY].into()))
    }

    fn filter(wait: Duration) -> Arc<dyn ExecutionPlan> {
        Arc::new(KeyFilterExec::new(table("p", 0..100), KEY, wait))
    }

    pub(crate) async fn rows(
        plan: &Arc<dyn ExecutionPlan>,
        at: usize,
        context: &Arc<TaskContext>,
    ) -> usize {
        let batches = collect(plan.execute(at, Arc::clone(context)).unwrap()).await.unwrap();
        batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[tokio::test]
    async fn rows_wait_for_all_partitions_and_are_filtered() {
        let exchange = Arc::default();
        let context = context(&exchange);
        let (publisher, filter) = (publisher(), filter(Duration::from_secs(60)));
        assert_eq!(publisher.output_partitioning().partition_count(), 2);
        assert_eq!(rows(&publisher, 0, &context).await, 2);
        let filtered = rows(&filter, 0, &context);
        futures::pin_mut!(filtered);
        assert!(filtered.as_mut().now_or_never().is_none(), "it waits for partition 1");
        assert_eq!(rows(&publisher, 1, &context).await, 2);
        assert_eq!(filtered.await, 2);
    }

    #[tokio::test]
    async fn all_rows_pass_where_the_keys_are_unknown() {
        let exchange = Arc::default();
        let context = context(&exchange);
        let (publisher, filter) = (publisher(), filter(Duration::from_secs(60)));
        assert_eq!(rows(&publisher, 0, &context).await, 2);
        drop(publisher.execute(1, Arc::clone(&context)).unwrap());
        assert_eq!(rows(&filter, 0, &context).await, 100);
    }

    #[tokio::test]
    async fn all_rows_pass_when_the_time_is_up_or_there_is_no_exchange() {
        let filter = filter(Duration::from_millis(1));
        assert_eq!(rows(&filter, 0, &context(&Arc::default())).await, 100);
        assert_eq!(rows(&filter, 0, &Arc::default()).await, 100);
        assert_eq!(rows(&publisher(), 0, &Arc::default()).await, 2);
    }
}
