//! Fields of a schema that lies in a message of Arrow, counted before they are made: one that is
//! there once may be named any number of times, and each is made anew with its name.
//!
//! Once they are made, also those of a Parquet file, a row of them is: a schema alone says how wide
//! it is at least, as a null takes as much as any other value of fixed size.

use arrow_cast::base64::{BASE64_STANDARD, Engine};
use arrow_ipc::{Field, KeyValue, Schema, root_as_message};
use arrow_schema::{DataType, FieldRef};
use workahead_footer::COLUMNS_MAX;

use crate::{BYTES_MIN, MARKER, MessageError, too_much, wrong};

/// A field without its texts.
const FIELD_BYTES: usize = 512;
/// An item of a list, also of a type without bytes: its number, or its levels.
pub const ITEM_BYTES: usize = 4;
/// Shown of a name, which may be as long as a file.
const NAME_CHARS: usize = 100;

/// Refuses a schema of more columns than a file may have, or of more bytes than it may take.
///
/// # Errors
/// When it has, or does.
pub fn check(schema: Schema<'_>, bytes_max: usize) -> Result<(), MessageError> {
    let columns = schema.fields().map_or(0, |fields| fields.len());
    if columns > COLUMNS_MAX {
        return Err(wrong(format!("it has {columns} columns, and {COLUMNS_MAX} are the most")));
    }
    let fields = schema.fields().into_iter().flatten().map(field_bytes);
    let pairs = schema.custom_metadata().into_iter().flatten().map(pair_bytes);
    let bytes = fields.chain(pairs).fold(0, usize::saturating_add);
    let most = bytes_max.max(BYTES_MIN);
    if bytes <= most { Ok(()) } else { Err(too_much("its schema", bytes, most, "")) }
}

/// The same of the schema that Arrow's writers put beside Parquet's, a message in Base64. What is
/// none, a decoder refuses.
///
/// # Errors
/// As [`check`].
pub fn check_encoded_schema(text: &[u8], bytes_max: usize) -> Result<(), MessageError> {
    let Ok(bytes) = BASE64_STANDARD.decode(text) else { return Ok(()) };
    let message = bytes.strip_prefix(&MARKER).and_then(|rest| rest.get(4..)).unwrap_or(&bytes);
    let message = root_as_message(message).ok();
    let schema = message.and_then(|message| message.header_as_schema());
    schema.map_or(Ok(()), |schema| check(schema, bytes_max))
}

/// Refuses a schema of which a row takes more than it may, whatever values it has.
///
/// # Errors
/// When it does, or a size in it is below zero.
pub fn check_row(schema: &arrow_schema::Schema, bytes_max: usize) -> Result<(), MessageError> {
    let most = bytes_max.max(BYTES_MIN);
    let (mut row_bytes, mut widest) = (0_usize, (0, ""));
    for field in schema.fields() {
        let name = field.name().as_str();
        let bytes = width(field.data_type()).ok_or_else(|| {
            wrong(format!(
                "column {} has values of less than no bytes or items: write the file again",
                shown(name)
            ))
        })?;
        if bytes > most {
            return Err(too_much(format!("a row of {}", shown(name)), bytes, most, ""));
        }
        row_bytes = row_bytes.saturating_add(bytes);
        if bytes > widest.0 {
            widest = (bytes, name);
        }
    }
    if row_bytes <= most {
        return Ok(());
    }
    let what = format!("a row of all columns (the widest is {})", shown(widest.1));
    Err(too_much(what, row_bytes, most, ""))
}

/// Bytes of a row at least, whatever values it has.
#[must_use]
pub fn row_bytes<'a>(fields: impl Iterator<Item = &'a FieldRef>) -> usize {
    fields.filter_map(|field| width(field.data_type())).fold(0, usize::saturating_add)
}

/// A name in an error.
#[must_use]
pub fn shown(name: &str) -> String {
    format!("{:?}", name.chars().take(NAME_CHARS).collect::<String>())
}

/// Bytes of a value at least, and of an item of what has any number of them; none if a size is
/// below zero.
fn width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::FixedSizeBinary(bytes) => usize::try_from(*bytes).ok(),
        DataType::FixedSizeList(item, items) => {
            let item = width(item.data_type())?.max(ITEM_BYTES);
            Some(item.saturating_mul(usize::try_from(*items).ok()?))
        }
        DataType::Struct(fields) => widths(fields.iter()),
        DataType::Union(fields, _) => widths(fields.iter().map(|(_, field)| field)),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::Map(item, _)
        | DataType::RunEndEncoded(_, item) => width(item.data_type()),
        DataType::Dictionary(_, value) => width(value),
        other => Some(other.primitive_width().unwrap_or(0)),
    }
}

fn widths<'a>(mut fields: impl Iterator<Item = &'a FieldRef>) -> Option<usize> {
    fields.try_fold(0, |sum: usize, field| Some(sum.saturating_add(width(field.data_type())?)))
}

/// The decoder of messages bounds how deep they are, and how often it looks at any of them.
fn field_bytes(field: Field<'_>) -> usize {
    let name = FIELD_BYTES + field.name().map_or(0, str::len);
    let children = field.children().into_iter().flatten().map(field_bytes);
    let pairs = field.custom_metadata().into_iter().flatten().map(pair_bytes);
    children.chain(pairs).fold(name, usize::saturating_add)
}

fn pair_bytes(pair: KeyValue<'_>) -> usize {
    FIELD_BYTES + pair.key().map_or(0, str::len) + pair.value().map_or(0, str::len)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn list(item: DataType, items: i32) -> DataType {
        DataType::FixedSizeList(Arc::new(arrow_schema::Field::new("item", item, true)), items)
    }

    fn check_types(types: &[DataType], bytes_max: usize) -> Result<(), MessageError> {
        let field = |(at, data_type): (usize, &DataType)| {
            arrow_schema::Field::new(format!("c{at}"), data_type.clone(), true)
        };
        let fields: Vec<_> = types.iter().enumerate().map(field).collect();
        check_row(&arrow_schema::Schema::new(fields), bytes_max)
    }

    #[test]
    fn a_row_takes_what_its_types_say() {
        let usual = [
            list(DataType::Float32, 1_024),
            list(DataType::Null, 1_024),
            list(list(DataType::Float64, 100), 100),
            DataType::FixedSizeBinary(1 << 20),
            DataType::Null,
            DataType::Utf8,
        ];
        check_types(&usual, 0).unwrap();
        let wide = [
            list(DataType::Null, 700_000_000),
            list(DataType::Decimal256(76, 0), i32::MAX),
            list(list(DataType::Decimal128(38, 0), 1 << 30), 1 << 30),
            DataType::FixedSizeBinary(i32::MAX),
        ];
        for data_type in wide {
            let field = Arc::new(arrow_schema::Field::new("value", data_type.clone(), true));
            let within = DataType::Struct(vec![field].into());
            for data_type in [data_type, within] {
                let says = check_types(&[DataType::Utf8, data_type], 1 << 30).unwrap_err();
                assert!(matches!(says, MessageError::TooMuch { .. }), "{says}");
                let says = says.to_string();
                assert!(says.starts_with("a row of \"c1\" takes "), "{says}");
                assert!(says.contains("more than the 1024 MiB"), "{says}");
                assert!(says.contains("raise the memory limit"), "{says}");
            }
        }
        let (narrow, wide) = (DataType::FixedSizeBinary(5 << 20), list(DataType::Int64, 1 << 20));
        check_types(&[narrow.clone(), wide.clone()], 0).unwrap();
        let says = check_types(&[narrow, wide.clone(), wide], 0).unwrap_err().to_string();
        let expected = "a row of all columns (the widest is \"c1\") takes 21 MiB";
        assert!(says.starts_with(expected), "{says}");
    }

    #[test]
    fn sizes_below_zero_are_refused() {
        for data_type in [DataType::FixedSizeBinary(-1), list(DataType::Utf8, -1)] {
            let item = Arc::new(arrow_schema::Field::new("item", data_type.clone(), true));
            for data_type in [data_type, DataType::List(item)] {
                let says = check_types(&[data_type], usize::MAX).unwrap_err().to_string();
                assert!(says.starts_with("column \"c0\" has values of less than no "), "{says}");
            }
        }
    }

    #[test]
    fn a_long_name_is_cut() {
        assert_eq!(shown(&"n".repeat(1 << 20)).len(), NAME_CHARS + 2);
        assert_eq!(shown("a\nb"), "\"a\\nb\"");
    }
}
