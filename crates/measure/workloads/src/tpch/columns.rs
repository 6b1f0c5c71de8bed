//! A table as a list of named columns, each a way to take a value from a generated row.

use std::fmt::Display;
use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{
    ArrayRef, Date32Array, Decimal128Array, Int32Array, Int64Array, RecordBatch, RecordBatchOptions,
};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use tpchgen::dates::TPCHDate;
use tpchgen::decimal::TPCHDecimal;

/// Digits of a decimal, and of them after the point (TPC-H 3.0.1, clause 1.3.1).
const PRECISION: u8 = 15;
const CENTS: i8 = 2;

/// A column of rows `R`.
pub(super) struct Column<R> {
    name: &'static str,
    value: Value<R>,
}

/// How to take the column's value from a row.
enum Value<R> {
    Int64(fn(&R) -> i64),
    Int32(fn(&R) -> i32),
    Decimal(fn(&R) -> TPCHDecimal),
    Date(fn(&R) -> TPCHDate),
    Text(fn(&R) -> &str),
    /// Text that the generator only composes when shown.
    Shown(fn(&R) -> &dyn Display),
}

pub(super) fn int64<R>(name: &'static str, value: fn(&R) -> i64) -> Column<R> {
    Column { name, value: Value::Int64(value) }
}

pub(super) fn int32<R>(name: &'static str, value: fn(&R) -> i32) -> Column<R> {
    Column { name, value: Value::Int32(value) }
}

pub(super) fn decimal<R>(name: &'static str, value: fn(&R) -> TPCHDecimal) -> Column<R> {
    Column { name, value: Value::Decimal(value) }
}

pub(super) fn date<R>(name: &'static str, value: fn(&R) -> TPCHDate) -> Column<R> {
    Column { name, value: Value::Date(value) }
}

pub(super) fn text<R>(name: &'static str, value: fn(&R) -> &str) -> Column<R> {
    Column { name, value: Value::Text(value) }
}

pub(super) fn shown<R>(name: &'static str, value: fn(&R) -> &dyn Display) -> Column<R> {
    Column { name, value: Value::Shown(value) }
}

impl<R> Column<R> {
    fn field(&self) -> Field {
        let data_type = match self.value {
            Value::Int64(_) => DataType::Int64,
            Value::Int32(_) => DataType::Int32,
            Value::Decimal(_) => DataType::Decimal128(PRECISION, CENTS),
            Value::Date(_) => DataType::Date32,
            Value::Text(_) | Value::Shown(_) => DataType::Utf8View,
        };
        Field::new(self.name, data_type, false)
    }

    fn array(&self, rows: &[R]) -> ArrayRef {
        match self.value {
            Value::Int64(value) => Arc::new(Int64Array::from_iter_values(rows.iter().map(value))),
            Value::Int32(value) => Arc::new(Int32Array::from_iter_values(rows.iter().map(value))),
            Value::Decimal(value) => {
                let cents: ScalarBuffer<i128> =
                    rows.iter().map(|row| i128::from(value(row).into_inner())).collect();
                let array = Decimal128Array::new(cents, None);
                Arc::new(array.with_data_type(DataType::Decimal128(PRECISION, CENTS)))
            }
            Value::Date(value) => Arc::new(Date32Array::from_iter_values(
                rows.iter().map(|row| value(row).to_unix_epoch()),
            )),
            Value::Text(value) => {
                let mut builder = StringViewBuilder::with_capacity(rows.len());
                rows.iter().for_each(|row| builder.append_value(value(row)));
                Arc::new(builder.finish())
            }
            Value::Shown(value) => {
                let mut builder = StringViewBuilder::with_capacity(rows.len());
                let mut shown = String::new();
                for row in rows {
                    use std::fmt::Write;
                    shown.clear();
                    write!(shown, "{}", value(row)).expect("writing to a string does not fail");
                    builder.append_value(&shown);
                }
                Arc::new(builder.finish())
            }
        }
    }
}

/// The Arrow schema of a list of columns.
pub(super) fn schema<R>(columns: &[Column<R>]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(Column::field).collect::<Vec<_>>()))
}

/// Rows as one batch.
pub(super) fn batch<R>(schema: &SchemaRef, columns: &[Column<R>], rows: &[R]) -> RecordBatch {
    let arrays = columns.iter().map(|column| column.array(rows)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options)
        .expect("schema and arrays are made from the same columns")
}
