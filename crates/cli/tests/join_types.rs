//! Columns of every type, as payload and key, into every format: written, or refused in one line.

mod hostile;
mod process;

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, DictionaryArray,
    FixedSizeBinaryArray, FixedSizeListArray, Int8Array, Int64Array, LargeBinaryArray,
    LargeListArray, LargeStringArray, ListArray, MapArray, NullArray, RecordBatch, StringArray,
    StringViewArray, StructArray, UnionArray, make_array, new_null_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit, UnionFields};
use hostile::{arrow_stream, ends_well, join, place};
use process::read;

const ROWS: usize = 4;

fn field(of: &ArrayRef) -> Arc<Field> {
    Arc::new(Field::new("item", of.data_type().clone(), true))
}

/// Types whose values have as many bytes each.
fn of_fixed_width() -> Vec<DataType> {
    use DataType::*;
    let units =
        [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
    let timed = units.into_iter().flat_map(|unit| {
        let zone = Some("+02:00".into());
        [Timestamp(unit, None), Timestamp(unit, zone), Duration(unit)]
    });
    let plain = [
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Date32,
        Date64,
        Time32(TimeUnit::Second),
        Time32(TimeUnit::Millisecond),
        Time64(TimeUnit::Microsecond),
        Time64(TimeUnit::Nanosecond),
        Interval(IntervalUnit::YearMonth),
        Interval(IntervalUnit::DayTime),
        Interval(IntervalUnit::MonthDayNano),
        Decimal32(9, 2),
        Decimal64(18, 2),
        Decimal128(38, 2),
        Decimal256(76, 2),
        Decimal128(5, -2),
    ];
    plain.into_iter().chain(timed).collect()
}

fn zeros(data_type: DataType) -> ArrayRef {
    let nulls = new_null_array(&data_type, ROWS).to_data();
    make_array(nulls.into_builder().nulls(None).build().unwrap())
}

fn flat() -> Vec<ArrayRef> {
    let texts = vec!["", "a", "twenty-two characters.", "a"];
    let bytes: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    let others: [ArrayRef; 9] = [
        Arc::new(StringArray::from(texts.clone())),
        Arc::new(LargeStringArray::from(texts.clone())),
        Arc::new(StringViewArray::from(texts)),
        Arc::new(BinaryArray::from_vec(bytes.clone())),
        Arc::new(LargeBinaryArray::from_vec(bytes.clone())),
        Arc::new(BinaryViewArray::from_iter_values(bytes)),
        Arc::new(FixedSizeBinaryArray::try_from_iter(["ab", "cd", "ef", "ab"].iter()).unwrap()),
        Arc::new(BooleanArray::from(vec![true, false, true, true])),
        Arc::new(NullArray::new(ROWS)),
    ];
    of_fixed_width().into_iter().map(zeros).chain(others).collect()
}

/// Layouts around a column.
fn around(of: &ArrayRef) -> Vec<ArrayRef> {
    let offsets = || OffsetBuffer::from_lengths([1, 0, 2, 1]);
    let wide = OffsetBuffer::from_lengths([1, 0, 2, 1]);
    let keys = Int8Array::from(vec![Some(0), Some(3), None, Some(1)]);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d"]));
    let named = |name: &str, of: &ArrayRef, nullable: bool| {
        Arc::new(Field::new(name, of.data_type().clone(), nullable))
    };
    let entries = StructArray::from(vec![
        (named("keys", &texts, false), texts),
        (named("values", of, true), of.clone()),
    ]);
    let entry = Arc::new(Field::new("entries", entries.data_type().clone(), false));
    let union = UnionFields::from_fields([Field::new("value", of.data_type().clone(), true)]);
    let dense = Some((0..ROWS as i32).collect());
    let union =
        |places| UnionArray::try_new(union.clone(), vec![0; ROWS].into(), places, vec![of.clone()]);
    vec![
        Arc::new(ListArray::new(field(of), offsets(), of.clone(), None)),
        Arc::new(LargeListArray::new(field(of), wide, of.clone(), None)),
        Arc::new(FixedSizeListArray::new(field(of), 1, of.clone(), None)),
        Arc::new(StructArray::from(vec![(field(of), of.clone())])),
        Arc::new(MapArray::new(entry, offsets(), entries, None, false)),
        Arc::new(DictionaryArray::<Int8Type>::new(keys, of.clone())),
        Arc::new(union(None).unwrap()),
        Arc::new(union(dense).unwrap()),
    ]
}

/// Columns of every type, and of every layout around each.
fn columns() -> impl Iterator<Item = ArrayRef> {
    let flat = flat();
    let nested: Vec<ArrayRef> = flat.iter().flat_map(around).collect();
    flat.into_iter().chain(nested)
}

/// A column `w` beside as many ids, of which the other file has all.
fn with_ids(column: ArrayRef) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![0, 7, 14, 21]));
    RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("w", column, true)]).unwrap()
}

#[test]
fn columns_of_every_type_are_written_or_refused() {
    let place = place();
    let mut written = 0;
    for column in columns() {
        let what = column.data_type().to_string();
        let nulls = new_null_array(column.data_type(), ROWS);
        for (name, column) in [("values.arrows", column), ("nulls.arrows", nulls)] {
            arrow_stream(&place.path(name), &with_ids(column), None);
        }
        for (name, out) in [("values.arrows", "out.parquet"), ("nulls.arrows", "out.csv")] {
            let code = ends_well(&place, &join(name, &["--type", "left", "--out", out]), &what);
            if code == Some(0) && out == "out.parquet" {
                let rows = read(&place.path(out)).iter().map(RecordBatch::num_rows).sum::<usize>();
                assert_eq!(rows, ROWS, "{what}");
                written += 1;
            }
        }
    }
    assert!(written > 200, "{written}");
}

#[test]
fn keys_of_every_type_find_themselves_or_are_refused() {
    let place = place();
    let mut joined = 0;
    for column in columns() {
        let what = column.data_type().to_string();
        arrow_stream(&place.path("keys.arrows"), &with_ids(column), None);
        let files = ["--left", "keys.arrows", "--right", "keys.arrows", "--on", "w"];
        let limits = ["--memory-limit", "200MB", "--type", "left-semi", "--out", "out.arrows"];
        let code = ends_well(&place, &[&["join"][..], &files, &limits].concat(), &what);
        joined += usize::from(code == Some(0));
    }
    assert!(joined > 200, "{joined}");
}
