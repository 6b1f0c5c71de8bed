//! The root of a query's plan: says where it runs and why, and gives its settings to the workers.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, PhysicalExpr, PlanProperties,
};
use datafusion_distributed::DistributedExt;
use futures::future::ready;
use futures::{StreamExt, TryStreamExt, stream};

use workahead_datafusion::KeyExchangeExtension;

use crate::WorkerStatus;
use crate::keys::{Registry, Route, TaskKeys};
use crate::planner::Choice;
use crate::settings;
use crate::url::http;
use crate::workers::Workers;

/// A query of a cluster's client.
pub(crate) struct ClusterQueryExec {
    plan: Arc<dyn ExecutionPlan>,
    /// Where it runs, and why.
    choice: Choice,
    workers: Arc<Workers>,
}

impl ClusterQueryExec {
    pub(crate) fn new(plan: Arc<dyn ExecutionPlan>, choice: Choice, workers: Arc<Workers>) -> Self {
        Self { plan, choice, workers }
    }

    /// A context in which build sides exchange keys with the workers.
    fn context(&self, context: &TaskContext) -> Result<TaskContext> {
        let config = context.session_config();
        let urls = self.workers.alive().into_iter().map(|worker| http(worker.address));
        let route = Route::new(urls)?;
        let mut headers = settings::headers(config);
        route.put(&mut headers)?;
        let registry = Registry::new(Arc::clone(context.memory_pool()));
        // The client's own stage has one task.
        let keys = TaskKeys::new(&registry, self.workers.channels.clone(), route, (0, 1));
        let config = config.clone().with_distributed_passthrough_headers(headers)?;
        let config = config.with_extension(Arc::new(KeyExchangeExtension(Arc::new(keys))));
        Ok(TaskContext::new(
            context.task_id(),
            context.session_id(),
            config,
            context.scalar_functions().clone(),
            context.higher_order_functions().clone(),
            context.aggregate_functions().clone(),
            context.window_functions().clone(),
            context.runtime_env(),
        ))
    }
}

impl fmt::Debug for ClusterQueryExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterQueryExec({:?}, {})", self.plan, self.choice.why)
    }
}

impl DisplayAs for ClusterQueryExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterQueryExec: {}", self.choice.why)
    }
}

impl ExecutionPlan for ClusterQueryExec {
    fn name(&self) -> &str {
        "ClusterQueryExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.plan]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([plan]) = <[_; 1]>::try_from(children) else {
            return internal_err!("ClusterQueryExec has one input");
        };
        Ok(Arc::new(Self::new(plan, self.choice.clone(), Arc::clone(&self.workers))))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let context = match self.choice.here {
            true => context,
            false => Arc::new(self.context(&context)?),
        };
        if !self.plan.name().ends_with("AnalyzeExec") {
            return self.plan.execute(partition, context);
        }
        let (plan, schema) = (Arc::clone(&self.plan), self.schema());
        let (why, here) = (self.choice.why.clone(), self.choice.here);
        let workers = Arc::clone(&self.workers);
        let reported = async move {
            let before = if here { Vec::new() } else { workers.states().await };
            let first = explanation(&schema, "Where it runs", &why);
            let rows = plan.execute(partition, context)?;
            let last = async move {
                let after = if here { Vec::new() } else { workers.states().await };
                let lines = after.iter().zip(&before).filter_map(cpu_time);
                let lines: Vec<String> = lines.collect();
                if lines.is_empty() {
                    return None;
                }
                Some(explanation(&schema, "CPU time by worker", &lines.join("\n")))
            };
            let last = stream::once(last).filter_map(ready);
            Ok::<_, DataFusionError>(stream::once(ready(first)).chain(rows).chain(last))
        };
        let reported = stream::once(reported).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), reported)))
    }
}

/// A row of what explains a query.
fn explanation(schema: &SchemaRef, kind: &str, text: &str) -> Result<RecordBatch> {
    let columns: [ArrayRef; 2] =
        [kind, text].map(|text| Arc::new(StringArray::from(vec![text])) as _);
    Ok(RecordBatch::try_new(Arc::clone(schema), columns.to_vec())?)
}

/// CPU time of a worker between two looks, all its queries together.
fn cpu_time((after, before): (&WorkerStatus, &WorkerStatus)) -> Option<String> {
    let us = after.state?.cpu_us.checked_sub(before.state?.cpu_us)?;
    Some(format!("{}  {:.3} s", after.address, us as f64 / 1e6))
}
