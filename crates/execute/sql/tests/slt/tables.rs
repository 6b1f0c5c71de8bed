//! Tables and functions that DataFusion's runner registers for some files, and tables whose data
//! the files' crate does not ship.

use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{
    ArrayRef, BinaryArray, Float64Array, Int32Array, LargeBinaryArray, LargeStringArray,
    RecordBatch, StringArray, TimestampNanosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{CatalogProvider, MemTable, MemoryCatalogProvider, MemorySchemaProvider};
use datafusion::common::cast::as_float64_array;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::prelude::{CsvReadOptions, SessionContext};
use workahead_workloads::tpch::{Part, Table, Tpch};

/// The scale of the answers in `tpch/answers`.
const ANSWERS: f64 = 0.1;
/// For files that need only some rows of these tables.
const FEW_ROWS: f64 = 0.001;
/// Rows of a batch in memory.
const BATCH_ROWS: usize = 8192;

/// Registers the tables and functions that a file expects.
pub(crate) async fn register(context: &SessionContext, file: &str) {
    match file {
        "joins.slt" => {
            example(context);
            partition(context).await;
            many_types(context);
        }
        "subquery.slt" => {
            static TABLES: OnceLock<Vec<NamedTable>> = OnceLock::new();
            in_memory(context, TABLES.get_or_init(|| generated(FEW_ROWS)));
        }
        "tpch/tpch.slt" => {
            static TABLES: OnceLock<Vec<NamedTable>> = OnceLock::new();
            in_memory(context, TABLES.get_or_init(|| generated(ANSWERS)));
        }
        _ => {}
    }
}

type NamedTable = (&'static str, Vec<RecordBatch>);

fn generated(scale: f64) -> Vec<NamedTable> {
    let data = Tpch::new(scale).expect("a scale that can be made");
    let tables = Table::ALL.into_iter();
    tables.map(|t| (t.name(), data.batches(t, Part::WHOLE, BATCH_ROWS).collect())).collect()
}

/// The files create these only if they do not exist.
fn in_memory(context: &SessionContext, tables: &[NamedTable]) {
    for (name, batches) in tables {
        let schema = batches[0].schema();
        let table = MemTable::try_new(schema, vec![batches.clone()]).expect("one schema");
        context.register_table(*name, Arc::new(table)).expect("a new name");
    }
}

/// A function that adds two columns.
fn example(context: &SessionContext) {
    let add = |arguments: &[ColumnarValue]| {
        let arrays = ColumnarValue::values_to_arrays(arguments)?;
        let (left, right) = (as_float64_array(&arrays[0])?, as_float64_array(&arrays[1])?);
        let sums = left.iter().zip(right).map(|(left, right)| Some(left? + right?));
        let sums: ArrayRef = Arc::new(sums.collect::<Float64Array>());
        Ok(ColumnarValue::from(sums))
    };
    let kind = DataType::Float64;
    let arguments = vec![kind.clone(), kind.clone()];
    let function = create_udf("example", arguments, kind, Volatility::Immutable, Arc::new(add));
    context.register_udf(function);
}

/// A table of one partition in a file.
async fn partition(context: &SessionContext) {
    let row = |i: u32| format!("0,{i},{}\n", i.is_multiple_of(2));
    let text: String = (0..=10).map(row).collect();
    std::fs::create_dir_all("partition").expect("a directory in a temporary one");
    std::fs::write("partition/partition-0.csv", text).expect("a file in a temporary directory");
    let schema = Schema::new(vec![
        Field::new("c1", DataType::UInt32, false),
        Field::new("c2", DataType::UInt64, false),
        Field::new("c3", DataType::Boolean, false),
    ]);
    // These files have a header by default, and lose a row by it.
    let options = CsvReadOptions::new().schema(&schema);
    let registered = context.register_csv("test_partition_table", "partition", options).await;
    registered.expect("a readable file");
}

fn many_types(context: &SessionContext) {
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("int32_col", Arc::new(Int32Array::from(vec![1])), false),
        ("float64_col", Arc::new(Float64Array::from(vec![1.0])), true),
        ("utf8_col", Arc::new(StringArray::from(vec!["foo"])), true),
        ("large_utf8_col", Arc::new(LargeStringArray::from(vec!["bar"])), false),
        ("binary_col", Arc::new(BinaryArray::from(vec![b"foo" as &[u8]])), false),
        ("large_binary_col", Arc::new(LargeBinaryArray::from(vec![b"foo" as &[u8]])), false),
        ("timestamp_nanos", Arc::new(TimestampNanosecondArray::from(vec![123])), false),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("one row each");
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).expect("one schema");
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema("my_schema", Arc::new(MemorySchemaProvider::new())).expect("new");
    context.register_catalog("my_catalog", Arc::new(catalog));
    let name = "my_catalog.my_schema.table_with_many_types";
    context.register_table(name, Arc::new(table)).expect("a new name");
}
