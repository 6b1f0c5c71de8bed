//! Which keys can be compared, and how they are read.
//!
//! ```text
//! fixed width   every column is of a fixed width of at most 16 bytes, and they are few
//! bytes         one column of text or bytes
//! rows          anything else, in Arrow's row format: bytes that are equal exactly when rows are
//! ```

use arrow_schema::{DataType, Schema};

use super::fixed::FixedWidth;
use super::rows::RowFormat;
use super::{Form, Reader};
use crate::{JoinError, Side};

/// Most components of a key of fixed width: half a cache line.
const COMPONENTS_MAX: usize = 4;

/// Readers for the left and the right keys.
pub(crate) fn readers(
    left: &Schema,
    right: &Schema,
    on: &[(usize, usize)],
    nulls_equal: bool,
) -> Result<[Reader; 2], JoinError> {
    if on.is_empty() {
        return Err(JoinError::NoKeys);
    }
    for &(left_key, right_key) in on {
        let sides = [(Side::Left, left, left_key), (Side::Right, right, right_key)];
        for (side, schema, column) in sides {
            if column >= schema.fields().len() {
                let columns = schema.fields().len();
                return Err(JoinError::UnknownPosition { side: side.name(), column, columns });
            }
        }
        comparable(left.field(left_key), right.field(right_key))?;
    }
    let plain = |schema: &Schema, column: usize| plain(schema.field(column).data_type()).clone();
    let types: Vec<_> = on.iter().map(|&(a, b)| (plain(left, a), plain(right, b))).collect();
    let nullable = on.iter().any(|&(a, b)| {
        // A null only equals a null of the other side.
        left.field(a).is_nullable() && right.field(b).is_nullable()
    });
    let mask = nulls_equal && nullable;
    let swapped: Vec<_> = types.iter().map(|(a, b)| (b.clone(), a.clone())).collect();
    let left_form = form(&types, mask)?;
    let right_form = form(&swapped, mask)?;
    let reader = |columns, form| Reader { columns, form, nulls_equal: mask };
    Ok([
        reader(on.iter().map(|on| on.0).collect(), left_form),
        reader(on.iter().map(|on| on.1).collect(), right_form),
    ])
}

/// Dictionaries are compared by their values.
pub(crate) fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        other => other,
    }
}

fn comparable(left: &arrow_schema::Field, right: &arrow_schema::Field) -> Result<(), JoinError> {
    for field in [left, right] {
        if !RowFormat::takes(plain(field.data_type())) {
            let (name, found) = (field.name().clone(), field.data_type().clone());
            return Err(JoinError::KeyType { name, found });
        }
    }
    if same_kind(plain(left.data_type()), plain(right.data_type())) {
        return Ok(());
    }
    Err(JoinError::KeyKinds {
        left_name: left.name().clone(),
        left: left.data_type().clone(),
        right_name: right.name().clone(),
        right: right.data_type().clone(),
    })
}

/// Whether values of two types are equal exactly if their compared forms are.
fn same_kind(left: &DataType, right: &DataType) -> bool {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256, Timestamp};
    match (left, right) {
        (Decimal32(_, a), Decimal32(_, b))
        | (Decimal64(_, a), Decimal64(_, b))
        | (Decimal128(_, a), Decimal128(_, b))
        | (Decimal256(_, a), Decimal256(_, b)) => a == b,
        // With a time zone, a timestamp is an instant; without one, a wall-clock time.
        (Timestamp(a, zone), Timestamp(b, other)) => a == b && zone.is_some() == other.is_some(),
        _ if left.is_integer() && right.is_integer() => true,
        _ if is_text(left) && is_text(right) => true,
        _ if is_bytes(left) && is_bytes(right) => true,
        _ => left.equals_datatype(right),
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// The form of one side's keys, given both sides' types.
fn form(types: &[(DataType, DataType)], mask: bool) -> Result<Form, JoinError> {
    let fixed = types.iter().map(|(own, other)| FixedWidth::of(own, other));
    if let Some(fixed) = fixed.collect::<Option<Vec<_>>>() {
        let components =
            fixed.iter().map(FixedWidth::components).sum::<usize>() + usize::from(mask);
        if components <= COMPONENTS_MAX {
            return Ok(Form::FixedWidth(fixed.into()));
        }
    }
    let fixed_bytes = |own: &DataType| matches!(own, DataType::FixedSizeBinary(_));
    if let [(own, _)] = types
        && (is_text(own) || is_bytes(own) || fixed_bytes(own))
    {
        return Ok(Form::Bytes);
    }
    Ok(Form::Rows(RowFormat::new(types)?))
}
