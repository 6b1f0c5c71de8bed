//! One task of a stage, with metrics that Ballista can send.
//!
//! Ballista's protocol has no text metrics, and a single one makes it drop the metrics of all
//! operators of the task. Our joins have two (design, build side): each is sent as a count whose
//! name contains the text, `design=buckets` being 1.

use std::fmt;
use std::sync::Arc;

use ballista_core::serde::protobuf::{
    RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport,
};
use ballista_executor::execution_engine::QueryStageExecutor;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::{Count, Metric, MetricValue, MetricsSet};

/// A task of Ballista's engine.
#[derive(Debug)]
pub(crate) struct Task {
    stage: Arc<dyn QueryStageExecutor>,
}

impl Task {
    pub(crate) fn new(stage: Arc<dyn QueryStageExecutor>) -> Self {
        Self { stage }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stage.fmt(f)
    }
}

#[async_trait::async_trait]
impl QueryStageExecutor for Task {
    async fn execute_query_stage(
        &self,
        task: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        self.stage.execute_query_stage(task, context).await
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        self.stage.collect_plan_metrics().iter().map(sendable).collect()
    }

    fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport> {
        self.stage.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> Result<Vec<WindowStateReport>> {
        self.stage.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.stage.collect_column_stats()
    }
}

fn sendable(set: &MetricsSet) -> MetricsSet {
    let mut sent = MetricsSet::new();
    for metric in set.iter() {
        sent.push(match metric.value() {
            MetricValue::Custom { name, value } => {
                let count = Count::new();
                count.add(1);
                let value = MetricValue::Count { name: format!("{name}={value}").into(), count };
                Arc::new(Metric::new(value, metric.partition()))
            }
            _ => Arc::clone(metric),
        });
    }
    sent
}

#[cfg(test)]
mod tests {
    use ballista_core::serde::protobuf::OperatorMetricsSet;
    use datafusion::arrow::array::{Int64Array, RecordBatch};
    use datafusion::physical_plan::{ExecutionPlan, collect};
    use datafusion::prelude::SessionContext;

    use super::*;

    /// A plan with one of our joins, after it ran.
    async fn joined() -> Arc<dyn ExecutionPlan> {
        let builder = datafusion::execution::SessionStateBuilder::new().with_default_features();
        let context = SessionContext::new_with_state(workahead_sql::install(builder).build());
        for table in ["l", "r"] {
            let keys = Arc::new(Int64Array::from_iter_values(0..100)) as _;
            let batch = RecordBatch::try_from_iter([("k", keys)]).unwrap();
            context.register_batch(table, batch).unwrap();
        }
        let frame = context.sql("select l.k from l join r on l.k = r.k").await.unwrap();
        let plan = frame.create_physical_plan().await.unwrap();
        collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
        plan
    }

    fn join(plan: &Arc<dyn ExecutionPlan>) -> Option<MetricsSet> {
        match plan.name() {
            "WorkaheadJoinExec" => plan.metrics(),
            _ => plan.children().into_iter().find_map(join),
        }
    }

    #[tokio::test]
    async fn counts_of_our_joins_can_be_sent() {
        let metrics = join(&joined().await).expect("our join");
        let refused: std::result::Result<OperatorMetricsSet, _> = metrics.clone().try_into();
        assert!(refused.is_err(), "Ballista sends text metrics now: remove `sendable`");
        let sent: OperatorMetricsSet = sendable(&metrics).try_into().unwrap();
        assert_eq!(sent.metrics.len(), metrics.iter().count());
        let text = sendable(&metrics).to_string();
        assert!(text.contains("design=") && text.contains("build_side="), "{text}");
    }
}
