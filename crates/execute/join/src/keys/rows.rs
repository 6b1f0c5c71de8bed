//! Keys of any columns in Arrow's row format.
//!
//! Dictionaries are decoded, and integers of different types widened to 64 bits, so that equal keys
//! of both sides are equal bytes.

use std::sync::Arc;

use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, PrimitiveArray};
use arrow_buffer::BooleanBuffer;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{ArrowError, DataType};

use super::fixed::FixedWidth;

/// Converts one side's keys to rows.
#[derive(Debug, Clone)]
pub(crate) struct RowFormat {
    converter: Arc<RowConverter>,
    fields: Arc<[SortField]>,
    /// Columns of integers that are widened.
    widened: Arc<[Option<FixedWidth>]>,
}

impl RowFormat {
    /// Whether a type can be a key.
    pub(crate) fn takes(data_type: &DataType) -> bool {
        RowConverter::supports_fields(&[SortField::new(data_type.clone())])
    }

    /// For columns of given types, each with its counterpart on the other side.
    pub(crate) fn new(types: &[(DataType, DataType)]) -> Result<Self, ArrowError> {
        let widened = types.iter().map(|(own, other)| {
            let mixed = own != other && own.is_integer();
            if mixed { FixedWidth::of(own, other) } else { None }
        });
        let widened: Arc<[_]> = widened.collect();
        let fields = types.iter().zip(widened.iter()).map(|((own, _), fixed)| {
            SortField::new(if fixed.is_some() { DataType::UInt64 } else { own.clone() })
        });
        let fields: Arc<[_]> = fields.collect();
        let converter = Arc::new(RowConverter::new(fields.to_vec())?);
        Ok(Self { converter, fields, widened })
    }

    /// Whether both convert the same columns to the same bytes.
    pub(crate) fn formats_as(&self, other: &Self) -> bool {
        self.fields == other.fields && self.widened == other.widened
    }

    /// The rows of decoded columns, and which of them can match if some can't.
    pub(crate) fn rows(
        &self,
        mut columns: Vec<ArrayRef>,
    ) -> Result<(Rows, Option<BooleanBuffer>), ArrowError> {
        let mut matchable: Option<BooleanBuffer> = None;
        for (column, fixed) in columns.iter_mut().zip(self.widened.iter()) {
            let Some(fixed) = fixed else { continue };
            let mut values = Vec::new();
            fixed.read(column, 0, &mut values);
            if let Some(in_column) = fixed.matchable(&values) {
                // Values under nulls don't count.
                let in_column =
                    column.nulls().map_or(in_column.clone(), |nulls| &in_column | &!nulls.inner());
                matchable =
                    Some(matchable.map_or(in_column.clone(), |before| &before & &in_column));
            }
            let nulls = column.nulls().cloned();
            *column = Arc::new(PrimitiveArray::<UInt64Type>::new(values.into(), nulls));
        }
        Ok((self.converter.convert_columns(&columns)?, matchable))
    }
}
