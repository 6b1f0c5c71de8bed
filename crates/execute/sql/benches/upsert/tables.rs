//! The tables: ids and vectors, generated batch by batch while they are read.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::array::{ArrayRef, FixedSizeListArray, Float32Array, Int64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;

/// Partitions of each table.
pub(crate) const PARTITIONS: usize = 2;

/// A batch of a reader of wide rows: DataFusion's number of rows, or fewer of this size together.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_ROWS: usize = 8192;

/// Numbers that vectors are parts of: making them must not take longer than joining them.
static NUMBERS: LazyLock<Vec<f32>> =
    LazyLock::new(|| (0..8192_u32).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 8) as f32).collect());

/// A target, and a source that updates some of its rows and adds others.
pub(crate) struct Shape {
    pub(crate) name: String,
    /// Numbers of a vector.
    width: usize,
    target_rows: usize,
    updated_percent: usize,
}

impl Shape {
    /// All six; small ones for the tests.
    pub(crate) fn all(is_small: bool) -> Vec<Self> {
        let shape = |(bytes, rows, updated_percent): (usize, usize, usize)| {
            let name = format!("{bytes} B, {updated_percent} % updated");
            let target_rows = if is_small { rows / 50 } else { rows };
            Self { name, width: bytes / 4, target_rows, updated_percent }
        };
        let shapes = [
            (16, 8_000_000, 100),
            (256, 1_200_000, 100),
            (1024, 400_000, 10),
            (1024, 400_000, 100),
            (4096, 100_000, 10),
            (4096, 100_000, 100),
        ];
        shapes.map(shape).into()
    }

    /// Ids and vectors of the target.
    pub(crate) fn build_mb(&self) -> f64 {
        (self.target_rows * self.row_bytes()) as f64 / 1e6
    }

    /// Rows of a batch.
    pub(crate) fn batch_rows(&self) -> usize {
        (BATCH_BYTES / self.row_bytes()).min(BATCH_ROWS)
    }

    fn row_bytes(&self) -> usize {
        8 + 4 * self.width
    }

    /// Its ids in their order.
    pub(crate) fn target(&self) -> StreamingTable {
        self.table(self.target_rows, |row, _| row)
    }

    /// Ids of the target evenly and in no order; every twentieth is a new one.
    pub(crate) fn source(&self) -> StreamingTable {
        let (target_rows, percent) = (self.target_rows, self.updated_percent);
        self.table(target_rows * percent / 100, move |row, rows| {
            // Prime, and no divisor of any number of rows.
            let row = row * 1_000_003 % rows;
            let id = row * 100 / percent;
            if row % 20 == 0 { target_rows + id } else { id }
        })
    }

    fn table(
        &self,
        rows: usize,
        id: impl Fn(usize, usize) -> usize + Send + Sync + Copy + 'static,
    ) -> StreamingTable {
        let item = Arc::new(Field::new("item", DataType::Float32, true));
        let vector = DataType::FixedSizeList(item, self.width as i32);
        let fields = [("id", DataType::Int64), ("vector", vector)];
        let schema = Arc::new(Schema::new(
            fields.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec(),
        ));
        let partition = |at: usize| {
            let end = rows * (at + 1) / PARTITIONS;
            let part = Part {
                schema: Arc::clone(&schema),
                width: self.width,
                batch_rows: self.batch_rows(),
                rows: rows * at / PARTITIONS..end,
                id: Arc::new(move |row| id(row, rows) as i64),
            };
            Arc::new(part) as Arc<dyn PartitionStream>
        };
        let partitions = (0..PARTITIONS).map(partition).collect();
        StreamingTable::try_new(Arc::clone(&schema), partitions).expect("one schema")
    }
}

/// A partition of a table.
#[derive(Clone)]
struct Part {
    schema: SchemaRef,
    width: usize,
    batch_rows: usize,
    rows: std::ops::Range<usize>,
    id: Arc<dyn Fn(usize) -> i64 + Send + Sync>,
}

impl Part {
    fn batch(&self, rows: std::ops::Range<usize>) -> RecordBatch {
        let mut numbers = Vec::with_capacity(rows.len() * self.width);
        for row in rows.clone() {
            let start = (row * 7) % (NUMBERS.len() - self.width);
            numbers.extend_from_slice(&NUMBERS[start..start + self.width]);
        }
        let ids: Int64Array = rows.map(|row| (self.id)(row)).collect();
        let DataType::FixedSizeList(item, width) = self.schema.field(1).data_type() else {
            unreachable!("the schema is this file's");
        };
        let (item, numbers) = (Arc::clone(item), Arc::new(Float32Array::from(numbers)));
        let vectors = FixedSizeListArray::new(item, *width, numbers, None);
        let columns: Vec<ArrayRef> = vec![Arc::new(ids), Arc::new(vectors)];
        RecordBatch::try_new(Arc::clone(&self.schema), columns).expect("columns of one length")
    }
}

impl std::fmt::Debug for Part {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "rows {:?}", self.rows)
    }
}

impl PartitionStream for Part {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let part = self.clone();
        let batches =
            self.rows.clone().step_by(self.batch_rows).map(move |start| {
                Ok(part.batch(start..(start + part.batch_rows).min(part.rows.end)))
            });
        let stream = futures::stream::iter(batches);
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream))
    }
}
