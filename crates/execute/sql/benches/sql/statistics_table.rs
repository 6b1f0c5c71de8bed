//! Tables in memory with the statistics of Parquet files: rows, nulls, and each column's minimum
//! and maximum. DataFusion's own memory table has only rows and bytes.

use std::fmt::{self, Formatter};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{ColumnStatistics, Statistics};
use datafusion::datasource::TableType;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::functions_aggregate::min_max::{MaxAccumulator, MinAccumulator};
use datafusion::logical_expr::{Accumulator, Expr};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering};
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr};

/// A table in memory with statistics.
#[derive(Debug)]
pub(crate) struct StatisticsTable {
    batches: Vec<RecordBatch>,
    columns: Arc<Vec<ColumnStatistics>>,
}

impl StatisticsTable {
    /// Of batches, at least one.
    pub(crate) fn new(batches: &[RecordBatch]) -> Result<Self> {
        let columns = (0..batches[0].num_columns()).map(|at| column(batches, at));
        let columns = Arc::new(columns.collect::<Result<_>>()?);
        Ok(Self { batches: batches.to_vec(), columns })
    }
}

fn column(batches: &[RecordBatch], at: usize) -> Result<ColumnStatistics> {
    let kind = batches[0].schema().field(at).data_type().clone();
    let (mut min, mut max) = (MinAccumulator::try_new(&kind)?, MaxAccumulator::try_new(&kind)?);
    let mut nulls = 0;
    for batch in batches {
        let values = batch.column(at);
        nulls += values.logical_null_count();
        min.update_batch(std::slice::from_ref(values))?;
        max.update_batch(std::slice::from_ref(values))?;
    }
    Ok(ColumnStatistics::new_unknown()
        .with_null_count(Precision::Exact(nulls))
        .with_min_value(Precision::Exact(min.evaluate()?))
        .with_max_value(Precision::Exact(max.evaluate()?)))
}

#[async_trait]
impl TableProvider for StatisticsTable {
    fn schema(&self) -> SchemaRef {
        self.batches[0].schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let parts = [self.batches.clone()];
        let rows = MemorySourceConfig::try_new(&parts, self.schema(), projection.cloned())?;
        let source =
            Source { rows, columns: Arc::clone(&self.columns), statistics: Arc::default() };
        Ok(DataSourceExec::from_data_source(source))
    }
}

/// A scan: DataFusion's own, with the table's statistics.
#[derive(Debug, Clone)]
struct Source {
    rows: MemorySourceConfig,
    columns: Arc<Vec<ColumnStatistics>>,
    /// Counting bytes takes a look at every array, and a planner wants them often.
    statistics: Arc<OnceLock<Arc<Statistics>>>,
}

impl Source {
    /// A scan that DataFusion derived from this one.
    fn with_rows(&self, rows: &Arc<dyn DataSource>) -> Arc<dyn DataSource> {
        let rows = rows.downcast_ref::<MemorySourceConfig>().expect("a scan of memory").clone();
        let (columns, statistics) = (Arc::clone(&self.columns), Arc::default());
        Arc::new(Self { rows, columns, statistics })
    }
}

impl DataSource for Source {
    fn open(&self, partition: usize, task: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.rows.open(partition, task)
    }

    fn fmt_as(&self, format: DisplayFormatType, f: &mut Formatter) -> fmt::Result {
        self.rows.fmt_as(format, f)
    }

    fn repartitioned(
        &self,
        partitions: usize,
        min_bytes: usize,
        order: Option<LexOrdering>,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        let partitioned = self.rows.repartitioned(partitions, min_bytes, order)?;
        Ok(partitioned.map(|rows| self.with_rows(&rows)))
    }

    fn output_partitioning(&self) -> Partitioning {
        self.rows.output_partitioning()
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        self.rows.eq_properties()
    }

    fn scheduling_type(&self) -> SchedulingType {
        self.rows.scheduling_type()
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        if partition.is_some() {
            return self.rows.partition_statistics(partition);
        }
        if let Some(known) = self.statistics.get() {
            return Ok(Arc::clone(known));
        }
        let own = self.rows.partition_statistics(partition)?;
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let columns = self.rows.projection().as_ref().unwrap_or(&all);
        let column_statistics = columns.iter().map(|at| self.columns[*at].clone()).collect();
        let all = Arc::new(Statistics { column_statistics, ..own.as_ref().clone() });
        Ok(Arc::clone(self.statistics.get_or_init(|| all)))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        self.rows.with_fetch(limit).map(|rows| self.with_rows(&rows))
    }

    fn fetch(&self) -> Option<usize> {
        self.rows.fetch()
    }

    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        let swapped = self.rows.try_swapping_with_projection(projection)?;
        Ok(swapped.map(|rows| self.with_rows(&rows)))
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.rows.apply_expressions(f)
    }
}
