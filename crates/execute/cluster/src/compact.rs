//! Compact string columns before they are sent.
//!
//! A column of strings is views into buffers, and rows selected by a join or a sort keep all
//! buffers of its input. Within a process that costs nothing. In a shuffle file, and in a message
//! to the client, the buffers are written whole, once for each batch: 20 rows of TPC-H's query 10
//! are 3 MB.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, GenericByteViewArray, RecordBatch};
use datafusion::arrow::datatypes::{ByteViewType, DataType, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
};
use futures::StreamExt;

/// A node that differs from its inner node only in its batches: the scheduler counts the nodes of a
/// stage, so none may be added.
#[derive(Debug)]
struct CompactExec(Arc<dyn ExecutionPlan>);

/// The plan of a stage with compact input batches for its writer. Scans are compact already.
pub(crate) fn stage(writer: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let inputs: Vec<_> = writer.children().into_iter().map(Arc::clone).collect();
    let views = |input: &Arc<dyn ExecutionPlan>| {
        let schema = input.schema();
        !input.children().is_empty() && schema.fields().iter().any(|f| is_view(f.data_type()))
    };
    if !inputs.iter().any(views) {
        return Ok(writer);
    }
    let compact = inputs.into_iter().map(|input| Arc::new(CompactExec(input)) as _).collect();
    writer.replace_children(compact, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
}

fn is_view(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8View | DataType::BinaryView)
}

fn compact(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(|column| match column.data_type() {
        DataType::Utf8View => of_views(column, column.as_string_view()),
        DataType::BinaryView => of_views(column, column.as_binary_view()),
        _ => Arc::clone(column),
    });
    Ok(RecordBatch::try_new(batch.schema(), columns.collect())?)
}

/// Copies a column if that at least halves it.
fn of_views<T: ByteViewType>(column: &ArrayRef, views: &GenericByteViewArray<T>) -> ArrayRef {
    let held: usize = views.data_buffers().iter().map(|buffer| buffer.len()).sum();
    if held > 2 * views.total_buffer_bytes_used() {
        Arc::new(views.gc())
    } else {
        Arc::clone(column)
    }
}

impl DisplayAs for CompactExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(format, f)
    }
}

impl ExecutionPlan for CompactExec {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(self.0.as_ref())
    }

    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.0.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.0.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self(Arc::clone(&self.0).replace_children(children, options)?)))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let batches = self.0.execute(partition, context)?.map(|batch| compact(&batch?));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.0.metrics()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, StringViewArray, UInt32Array};
    use datafusion::arrow::compute::take_record_batch;
    use datafusion::physical_plan::collect;
    use datafusion::physical_plan::limit::GlobalLimitExec;
    use datafusion::prelude::SessionContext;

    use super::*;

    fn long(row: usize) -> String {
        format!("a text that does not fit into its view, {row:>60}")
    }

    fn batch() -> RecordBatch {
        let texts: StringViewArray = (0..10_000).map(|row| Some(long(row))).collect();
        let numbers = Int32Array::from_iter_values(0..10_000);
        RecordBatch::try_from_iter([("t", Arc::new(texts) as ArrayRef), ("n", Arc::new(numbers))])
            .unwrap()
    }

    fn held(batch: &RecordBatch) -> usize {
        batch.column(0).as_string_view().data_buffers().iter().map(|buffer| buffer.len()).sum()
    }

    #[test]
    fn selected_rows_are_compacted_without_a_change() {
        let all = batch();
        let few = take_record_batch(&all, &UInt32Array::from(vec![9_999, 3, 77])).unwrap();
        assert!(held(&few) > 900_000, "{}", held(&few));
        let compacted = compact(&few).unwrap();
        assert_eq!(compacted, few);
        assert!(held(&compacted) < 400, "{}", held(&compacted));
        // Nothing to gain: nothing is copied.
        let same = compact(&all).unwrap();
        let (buffer, as_was) = (same.column(0).as_string_view(), all.column(0).as_string_view());
        assert_eq!(buffer.data_buffers()[0].as_ptr(), as_was.data_buffers()[0].as_ptr());
    }

    #[tokio::test]
    async fn a_compact_node_looks_like_its_inner_node() {
        let context = SessionContext::new();
        let frame = context.read_batch(batch()).unwrap();
        let scan = frame.create_physical_plan().await.unwrap();
        let limit = || Arc::new(GlobalLimitExec::new(Arc::clone(&scan), 5, Some(3)));
        let plan: Arc<dyn ExecutionPlan> = Arc::new(CompactExec(limit()));
        assert_eq!((plan.name(), plan.children().len()), ("GlobalLimitExec", 1));
        assert!(plan.downcast_ref::<GlobalLimitExec>().is_some());
        let rows = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
        let wanted = collect(limit(), context.task_ctx()).await.unwrap();
        assert_eq!(rows, wanted);
        assert!(held(&rows[0]) * 100 < held(&wanted[0]));
        assert!(plan.metrics().is_some());
    }
}
