//! Rows gathered into the columns of a table.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int32Builder, Int64Builder,
    LargeStringBuilder, StringBuilder, StringViewBuilder, TimestampMicrosecondBuilder,
    TimestampNanosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use workahead_workloads::session::{SessionError, Value};

/// Columns that grow row by row.
pub(super) struct Columns {
    schema: SchemaRef,
    columns: Vec<Column>,
}

enum Column {
    Int32(Int32Builder),
    Int64(Int64Builder),
    Real(Float64Builder),
    Decimal(Decimal128Builder, u8),
    Text(StringBuilder),
    LargeText(LargeStringBuilder),
    View(StringViewBuilder),
    Date(Date32Builder),
    Micros(TimestampMicrosecondBuilder),
    Nanos(TimestampNanosecondBuilder),
}

impl Columns {
    /// Empty columns with the types of a table.
    pub(super) fn new(schema: &SchemaRef) -> Result<Self, SessionError> {
        let columns = schema.fields().iter().map(|field| {
            Column::new(field.data_type()).ok_or_else(|| {
                let (name, kind) = (field.name(), field.data_type());
                SessionError::Failed(format!("column {name} is of a type not filled here: {kind}"))
            })
        });
        let columns = columns.collect::<Result<_, _>>()?;
        Ok(Self { schema: Arc::clone(schema), columns })
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: &[Value<'_>]) -> Result<(), SessionError> {
        if row.len() != self.columns.len() {
            let says = format!("{} values for {} columns", row.len(), self.columns.len());
            return Err(SessionError::Failed(says));
        }
        for (index, (column, value)) in self.columns.iter_mut().zip(row).enumerate() {
            column.push(value).ok_or_else(|| {
                let name = self.schema.field(index).name();
                SessionError::Failed(format!("{value:?} does not fit column {name}"))
            })?;
        }
        Ok(())
    }

    /// Takes the gathered rows, and starts again with none.
    pub(super) fn take(&mut self) -> Result<RecordBatch, SessionError> {
        let columns = self.columns.iter_mut().map(Column::finish).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| SessionError::Failed(error.to_string()))
    }
}

impl Column {
    fn new(kind: &DataType) -> Option<Self> {
        Some(match kind {
            DataType::Int32 => Self::Int32(Int32Builder::new()),
            DataType::Int64 => Self::Int64(Int64Builder::new()),
            DataType::Float64 => Self::Real(Float64Builder::new()),
            DataType::Decimal128(_, scale) => Self::Decimal(
                Decimal128Builder::new().with_data_type(kind.clone()),
                u8::try_from(*scale).ok()?,
            ),
            DataType::Utf8 => Self::Text(StringBuilder::new()),
            DataType::LargeUtf8 => Self::LargeText(LargeStringBuilder::new()),
            DataType::Utf8View => Self::View(StringViewBuilder::new()),
            DataType::Date32 => Self::Date(Date32Builder::new()),
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                Self::Micros(TimestampMicrosecondBuilder::new())
            }
            DataType::Timestamp(TimeUnit::Nanosecond, None) => {
                Self::Nanos(TimestampNanosecondBuilder::new())
            }
            _ => return None,
        })
    }

    /// None when the value is of another type.
    fn push(&mut self, value: &Value<'_>) -> Option<()> {
        match (self, *value) {
            (Self::Int32(column), Value::Int(int)) => column.append_value(int.try_into().ok()?),
            (Self::Int32(column), Value::Null) => column.append_null(),
            (Self::Int64(column), Value::Int(int)) => column.append_value(int),
            (Self::Int64(column), Value::Null) => column.append_null(),
            (Self::Real(column), Value::Real(real)) => column.append_value(real),
            (Self::Real(column), Value::Null) => column.append_null(),
            (Self::Decimal(column, scale), Value::Decimal(decimal)) => {
                column.append_value(decimal.at_scale(*scale)?.into());
            }
            (Self::Decimal(column, scale), Value::Int(int)) => {
                column.append_value(i128::from(int) * 10_i128.pow((*scale).into()));
            }
            (Self::Decimal(column, _), Value::Null) => column.append_null(),
            (Self::Text(column), Value::Text(text)) => column.append_value(text),
            (Self::Text(column), Value::Null) => column.append_null(),
            (Self::LargeText(column), Value::Text(text)) => column.append_value(text),
            (Self::LargeText(column), Value::Null) => column.append_null(),
            (Self::View(column), Value::Text(text)) => column.append_value(text),
            (Self::View(column), Value::Null) => column.append_null(),
            (Self::Date(column), Value::Date(date)) => column.append_value(date.0),
            (Self::Date(column), Value::Null) => column.append_null(),
            (Self::Micros(column), Value::Timestamp(moment)) => column.append_value(moment.0),
            (Self::Micros(column), Value::Null) => column.append_null(),
            (Self::Nanos(column), Value::Timestamp(moment)) => {
                column.append_value(moment.0.checked_mul(1_000)?);
            }
            (Self::Nanos(column), Value::Null) => column.append_null(),
            _ => return None,
        }
        Some(())
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Int32(column) => ArrayBuilder::finish(column),
            Self::Int64(column) => ArrayBuilder::finish(column),
            Self::Real(column) => ArrayBuilder::finish(column),
            Self::Decimal(column, _) => ArrayBuilder::finish(column),
            Self::Text(column) => ArrayBuilder::finish(column),
            Self::LargeText(column) => ArrayBuilder::finish(column),
            Self::View(column) => ArrayBuilder::finish(column),
            Self::Date(column) => ArrayBuilder::finish(column),
            Self::Micros(column) => ArrayBuilder::finish(column),
            Self::Nanos(column) => ArrayBuilder::finish(column),
        }
    }
}
