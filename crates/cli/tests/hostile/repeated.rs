//! Arrow columns of a few bytes that stand for gigabytes: values that rows share, texts that lists
//! have many keys of, items without bytes, and types that are wide without a row.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, FixedSizeListArray, Float32Array, Int8Array,
    Int32Array, Int64Array, LargeStringArray, ListArray, ListViewArray, NullArray, RecordBatch,
    RunArray, StringViewArray, StructArray, UnionArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, UnionFields};

/// A column `w` beside as many ids.
pub(crate) fn with_ids(column: ArrayRef) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..column.len() as i64));
    let columns = [("id", ids, false), ("w", column, true)];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// A stream of a schema, without a batch.
pub(crate) fn without_rows(path: &Path, data_type: DataType) {
    let fields = vec![Field::new("id", DataType::Int64, false), Field::new("w", data_type, true)];
    let file = File::create(path).unwrap();
    StreamWriter::try_new(file, &Schema::new(fields)).unwrap().finish().unwrap();
}

fn text(bytes: usize) -> LargeStringArray {
    LargeStringArray::from(vec!["x".repeat(bytes)])
}

/// Runs of as many rows each, of the same text.
pub(crate) fn runs(runs: usize, rows: i32, text_bytes: usize) -> ArrayRef {
    let ends = Int32Array::from_iter_values((1..=runs as i32).map(|run| run * rows));
    let texts = LargeStringArray::from(vec!["x".repeat(text_bytes); runs]);
    Arc::new(RunArray::<Int32Type>::try_new(&ends, &texts).unwrap())
}

/// One run of rows that have the only value.
pub(crate) fn one_run(rows: i32, value: &ArrayRef) -> ArrayRef {
    let ends = Int32Array::from(vec![rows]);
    Arc::new(RunArray::<Int32Type>::try_new(&ends, value).unwrap())
}

/// Rows of a dense union that are one text.
pub(crate) fn sharing_union(rows: usize, text_bytes: usize) -> ArrayRef {
    union_of(rows, Arc::new(text(text_bytes)))
}

/// Rows of a dense union that are the only value.
pub(crate) fn union_of(rows: usize, value: ArrayRef) -> ArrayRef {
    let field = Field::new("value", value.data_type().clone(), true);
    let (ids, places) = (vec![0_i8; rows], vec![0_i32; rows]);
    let fields = UnionFields::from_fields([field]);
    let union = UnionArray::try_new(fields, ids.into(), Some(places.into()), vec![value]);
    Arc::new(union.unwrap())
}

/// Keys of a dictionary that has one text.
pub(crate) fn keys(count: usize, text_bytes: usize) -> ArrayRef {
    keys_of(count, Arc::new(text(text_bytes)))
}

/// Keys of a dictionary that has one value.
pub(crate) fn keys_of(count: usize, value: ArrayRef) -> ArrayRef {
    Arc::new(DictionaryArray::<Int8Type>::new(Int8Array::from(vec![0; count]), value))
}

/// Empty texts, which are looked at one by one.
pub(crate) fn views(count: usize) -> ArrayRef {
    Arc::new(StringViewArray::from(vec![""; count]))
}

/// Structs of twenty bits.
pub(crate) fn bits(count: usize) -> ArrayRef {
    let bits: ArrayRef = Arc::new(BooleanArray::from(vec![true; count]));
    let field = |at: usize| Arc::new(Field::new(format!("b{at}"), DataType::Boolean, true));
    let fields: Vec<_> = (0..20).map(|at| (field(at), bits.clone())).collect();
    Arc::new(StructArray::from(fields))
}

fn item(data_type: &DataType) -> Arc<Field> {
    Arc::new(Field::new("item", data_type.clone(), true))
}

pub(crate) fn numbers(count: usize) -> ArrayRef {
    Arc::new(Int8Array::from(vec![7; count]))
}

/// Lists that all have the same numbers.
pub(crate) fn sharing_lists(rows: usize, items: usize) -> ArrayRef {
    sharing(rows, numbers(items))
}

/// Lists of which the first has one item, and all others none.
pub(crate) fn first_of(rows: usize, items: ArrayRef) -> ArrayRef {
    let (offsets, mut sizes) = (vec![0_i32; rows], vec![0_i32; rows]);
    sizes[0] = 1;
    let item = item(items.data_type());
    Arc::new(ListViewArray::new(item, offsets.into(), sizes.into(), items, None))
}

/// Lists that all have all of the items.
pub(crate) fn sharing(rows: usize, items: ArrayRef) -> ArrayRef {
    let (offsets, sizes) = (vec![0_i32; rows], vec![items.len() as i32; rows]);
    let item = item(items.data_type());
    Arc::new(ListViewArray::new(item, offsets.into(), sizes.into(), items, None))
}

/// Lists of one item each.
pub(crate) fn single_lists(rows: i32) -> ArrayRef {
    let numbers: ArrayRef = Arc::new(Int8Array::from(vec![7; rows as usize]));
    let (offsets, sizes) = ((0..rows).collect::<Vec<_>>(), vec![1_i32; rows as usize]);
    let item = item(&DataType::Int8);
    Arc::new(ListViewArray::new(item, offsets.into(), sizes.into(), numbers, None))
}

/// Lists of nulls, which have no bytes.
pub(crate) fn null_lists(rows: usize, items: i32) -> ArrayRef {
    let nulls = NullArray::new(rows * items as usize);
    let item = item(&DataType::Null);
    Arc::new(FixedSizeListArray::new(item, items, Arc::new(nulls), None))
}

/// Vectors of 4 KiB.
pub(crate) fn vectors(rows: usize) -> ArrayRef {
    let numbers: ArrayRef = Arc::new(Float32Array::from(vec![0.5; 1_024 * rows]));
    Arc::new(FixedSizeListArray::new(item(&DataType::Float32), 1_024, numbers, None))
}

/// One row, a list of all of these.
pub(crate) fn one_list(items: ArrayRef) -> ArrayRef {
    lists(1, items)
}

/// Lists of equal length.
pub(crate) fn lists(rows: usize, items: ArrayRef) -> ArrayRef {
    let offsets = OffsetBuffer::from_lengths(vec![items.len() / rows; rows]);
    Arc::new(ListArray::new(item(items.data_type()), offsets, items, None))
}

/// A type of lists of fixed size.
pub(crate) fn list_type(of: &DataType, items: i32) -> DataType {
    DataType::FixedSizeList(item(of), items)
}
