//! The identity of subplans: two have it alike only if they give the same rows.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{CsvSource, FileScanConfig, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::Boundedness;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion_proto::bytes::physical_plan_to_bytes_with_extension_codec;
use workahead_datafusion::WorkaheadCodec;

/// The bytes of a plan, and where that lies which they only name: the arrays that it reads, and its
/// functions. It says nothing once they are freed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Identity {
    plan: Vec<u8>,
    places: Vec<usize>,
    /// Of the whole plan: numbers have 32 bits in the bytes, and all their digits in the text, and
    /// an empty table stays apart from rows that were taken out.
    text: u64,
}

impl Identity {
    /// Of a plan and the hash of its text; none of one that may give other rows each time, or whose
    /// nodes have no bytes. Scans of other kinds are not tried: what says that they have none may
    /// print all their rows.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>, text: u64) -> Option<Self> {
        if plan.exists(|node| Ok(differs_each_time(node))).unwrap_or(true) {
            return None;
        }
        // Rows in memory are not part of the bytes: there can be any number of them.
        let mut places = Vec::new();
        let without_rows = Arc::clone(plan).transform_up(|node| {
            functions_of(node.as_ref(), &mut places)?;
            let Some(arrays) = arrays_of(node.as_ref()) else { return Ok(Transformed::no(node)) };
            places.extend(arrays);
            Ok(Transformed::yes(Arc::new(EmptyExec::new(node.schema())) as _))
        });
        let plan = without_rows.ok()?.data;
        let bytes = physical_plan_to_bytes_with_extension_codec(plan, &WorkaheadCodec::default());
        Some(Self { plan: bytes.ok()?.to_vec(), places, text })
    }
}

/// The functions of a node: two of one name need not be the same.
fn functions_of(node: &dyn ExecutionPlan, places: &mut Vec<usize>) -> Result<()> {
    let aggregates = node.downcast_ref::<AggregateExec>().map(AggregateExec::aggr_expr);
    let functions = aggregates.iter().flat_map(|aggregates| aggregates.iter());
    places.extend(functions.map(|aggregate| place(Arc::as_ptr(aggregate.fun().inner()))));
    node.apply_expressions(&mut |root: &Arc<dyn PhysicalExpr>| {
        root.apply(|expression| {
            let function = expression.downcast_ref::<ScalarFunctionExpr>();
            places.extend(function.map(|function| place(Arc::as_ptr(function.fun().inner()))));
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

fn place<T: ?Sized>(pointer: *const T) -> usize {
    pointer.cast::<u8>() as usize
}

/// The columns and rows that a scan of memory reads; none of any other node.
fn arrays_of(node: &dyn ExecutionPlan) -> Option<Vec<usize>> {
    let scan = node.downcast_ref::<DataSourceExec>()?;
    let source = scan.data_source().downcast_ref::<MemorySourceConfig>()?;
    let mut read = vec![source.partitions().len(), scan.fetch().unwrap_or(usize::MAX)];
    let projection = source.projection();
    read.push(projection.as_ref().map_or(usize::MAX, Vec::len));
    read.extend(projection.iter().flatten());
    for partition in source.partitions() {
        read.push(partition.len());
        let arrays = partition.iter().flat_map(|batch| batch.columns());
        read.extend(arrays.map(|array| place(Arc::as_ptr(array))));
    }
    Some(read)
}

fn is_known_leaf(node: &dyn ExecutionPlan) -> bool {
    let Some(scan) = node.downcast_ref::<DataSourceExec>() else {
        return node.is::<EmptyExec>() || node.is::<PlaceholderRowExec>();
    };
    let files = scan.data_source().downcast_ref::<FileScanConfig>();
    scan.data_source().is::<MemorySourceConfig>() || files.is_some_and(bytes_say_all)
}

/// Whether the bytes of a scan have all that its rows depend on: of text they have neither what
/// ends a line nor how it is compressed, and of other formats less.
fn bytes_say_all(files: &FileScanConfig) -> bool {
    let csv = files.file_source().downcast_ref::<CsvSource>();
    let usual = csv.is_some_and(|csv| csv.terminator().is_none())
        && files.file_compression_type == FileCompressionType::UNCOMPRESSED;
    files.expr_adapter_factory.is_none() && (usual || files.file_source().is::<ParquetSource>())
}

/// Whether windows have a filter, or leave out nulls. DataFusion says so neither in their bytes,
/// nor when queried for their expressions, nor by methods that others may call.
fn has_hidden_parts(node: &dyn ExecutionPlan) -> bool {
    let bounded =
        node.downcast_ref::<BoundedWindowAggExec>().map(BoundedWindowAggExec::window_expr);
    let whole = node.downcast_ref::<WindowAggExec>().map(WindowAggExec::window_expr);
    bounded.or(whole).into_iter().flatten().any(|window| {
        let fields = format!("{window:?}");
        fields.contains("filter: Some(") || fields.contains("ignore_nulls: true")
    })
}

/// Whether a node depends on more than its inputs and its text.
fn differs_each_time(node: &Arc<dyn ExecutionPlan>) -> bool {
    let unbounded = !matches!(node.properties().boundedness, Boundedness::Bounded);
    let mut found = unbounded
        || (node.children().is_empty() && !is_known_leaf(node.as_ref()))
        || has_hidden_parts(node.as_ref());
    let visited = node.apply_expressions(&mut |root: &Arc<dyn PhysicalExpr>| {
        let differs = root.exists(|expression| {
            Ok(expression.is_volatile_node()
                || expression.is::<DynamicFilterPhysicalExpr>()
                || expression.is::<ScalarSubqueryExpr>())
        });
        found |= differs?;
        Ok(TreeNodeRecursion::Continue)
    });
    found || visited.is_err()
}
