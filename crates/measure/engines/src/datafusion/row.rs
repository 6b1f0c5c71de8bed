//! Values out of DataFusion.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use workahead_workloads::session::{Columns, Date, Decimal, SessionError, Timestamp, Value};

/// A row of a batch.
pub(super) struct BatchRow<'b> {
    pub(super) batch: &'b RecordBatch,
    pub(super) row: usize,
}

impl Columns for BatchRow<'_> {
    fn count(&self) -> usize {
        self.batch.num_columns()
    }

    fn value(&self, index: usize) -> Result<Value<'_>, SessionError> {
        let column = self.batch.column(index);
        if column.is_null(self.row) {
            return Ok(Value::Null);
        }
        value(column.as_ref(), self.row).ok_or_else(|| {
            let kind = column.data_type();
            let says = format!("column {index} is neither number, text nor day ({kind})");
            SessionError::Failed(says + ": cast it to varchar")
        })
    }
}

fn value(column: &dyn Array, row: usize) -> Option<Value<'_>> {
    macro_rules! number {
        ($kind:ty) => {
            column.as_primitive::<$kind>().value(row)
        };
    }
    Some(match column.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => Value::Int(column.as_boolean().value(row).into()),
        DataType::Int8 => Value::Int(number!(Int8Type).into()),
        DataType::Int16 => Value::Int(number!(Int16Type).into()),
        DataType::Int32 => Value::Int(number!(Int32Type).into()),
        DataType::Int64 => Value::Int(number!(Int64Type)),
        DataType::UInt8 => Value::Int(number!(UInt8Type).into()),
        DataType::UInt16 => Value::Int(number!(UInt16Type).into()),
        DataType::UInt32 => Value::Int(number!(UInt32Type).into()),
        DataType::UInt64 => match i64::try_from(number!(UInt64Type)) {
            Ok(int) => Value::Int(int),
            Err(_) => Value::Real(number!(UInt64Type) as f64),
        },
        DataType::Float32 => Value::Real(number!(Float32Type).into()),
        DataType::Float64 => Value::Real(number!(Float64Type)),
        DataType::Decimal128(_, scale) => decimal(number!(Decimal128Type), *scale),
        DataType::Utf8 => Value::Text(column.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Value::Text(column.as_string::<i64>().value(row)),
        DataType::Utf8View => Value::Text(column.as_string_view().value(row)),
        DataType::Date32 => Value::Date(Date(number!(Date32Type))),
        DataType::Timestamp(unit, _) => Value::Timestamp(Timestamp(match unit {
            TimeUnit::Second => number!(TimestampSecondType) * 1_000_000,
            TimeUnit::Millisecond => number!(TimestampMillisecondType) * 1_000,
            TimeUnit::Microsecond => number!(TimestampMicrosecondType),
            TimeUnit::Nanosecond => number!(TimestampNanosecondType).div_euclid(1_000),
        })),
        _ => return None,
    })
}

/// Exact where it fits 64 bits, the nearest number elsewhere.
fn decimal(units: i128, scale: i8) -> Value<'static> {
    match (i64::try_from(units), u8::try_from(scale)) {
        (Ok(units), Ok(scale)) if scale <= 18 => Value::Decimal(Decimal::new(units, scale)),
        _ => Value::Real(units as f64 / 10_f64.powi(scale.into())),
    }
}
