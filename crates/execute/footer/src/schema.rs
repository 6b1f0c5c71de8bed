//! The schema in a footer, looked through before it is decoded: how deep it is, and what it takes.
//!
//! A column keeps the names of all groups that it is in, each in memory of its own: one long name
//! in the file is as many in memory as there are columns below it.

use crate::thrift::{Malformed, Reader, kind};

/// An element decoded, as Parquet's and as Arrow's.
pub(crate) const ELEMENT_BYTES: usize = 1 << 10;
/// A name in a column's path beside its text.
const NAME_BYTES: usize = 48;

/// `SchemaElement`, and `LogicalType` within it.
const ELEMENT: [u8; 10] = [
    kind::I32,
    kind::I32,
    kind::I32,
    kind::BINARY,
    kind::I32,
    kind::I32,
    kind::I32,
    kind::I32,
    kind::I32,
    kind::STRUCT,
];
const LOGICAL_TYPE: [u8; 18] = [kind::STRUCT; 18];
const TIME_UNIT: [u8; 3] = [kind::STRUCT; 3];

/// The size of a schema once it is decoded.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schema {
    /// Groups within each other.
    pub(crate) levels: usize,
    pub(crate) columns: usize,
    pub(crate) bytes: usize,
}

impl Schema {
    /// Reads a list of elements, each of which is followed by its children.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (kind, elements) = reader.list()?;
        if kind != kind::STRUCT {
            return Err(Malformed::Wrong);
        }
        // Of each level, the children that are still to come, and the bytes of all names so far.
        let mut open: Vec<(i64, usize)> = Vec::new();
        let mut schema = Self::default();
        for _ in 0..elements {
            while open.pop_if(|(missing, _)| *missing == 0).is_some() {}
            let above = open.last_mut().map_or(0, |(missing, names)| {
                *missing -= 1;
                *names
            });
            let (name, children) = element(reader)?;
            // Decoders make room for as many.
            if children < 0 || children > elements as i64 {
                return Err(Malformed::Wrong);
            }
            let names = above + name + NAME_BYTES;
            schema.bytes = schema.bytes.saturating_add(ELEMENT_BYTES + name);
            if children > 0 {
                open.push((children, names));
                schema.levels = open.len().max(schema.levels);
            } else {
                schema.columns += 1;
                schema.bytes = schema.bytes.saturating_add(names);
            }
        }
        Ok(schema)
    }
}

/// The bytes of an element's name, and the number of its children.
fn element(reader: &mut Reader<'_>) -> Result<(usize, i64), Malformed> {
    let (mut name, mut children) = (0, 0);
    reader.fields(&ELEMENT, |reader, field| {
        match field {
            4 => name = reader.clone().size()?,
            5 => children = i64::from(reader.int()?),
            10 => logical_type(reader)?,
            _ => {}
        }
        Ok(matches!(field, 5 | 10))
    })?;
    Ok((name, children))
}

fn logical_type(reader: &mut Reader<'_>) -> Result<(), Malformed> {
    reader.fields(&LOGICAL_TYPE, |reader, of| {
        let kinds: &[u8] = match of {
            // Decimal; time and timestamp; integer; variant; geometry and geography.
            5 => &[kind::I32, kind::I32],
            7 | 8 => &[kind::TRUE, kind::STRUCT],
            10 => &[kind::BYTE, kind::TRUE],
            16 => &[kind::BYTE],
            17 | 18 => &[kind::BINARY, kind::I32],
            _ => &[],
        };
        reader.fields(kinds, |reader, field| {
            let is_unit = kinds.get(1) == Some(&kind::STRUCT) && field == 2;
            if is_unit {
                reader.fields(&TIME_UNIT, |_, _| Ok(false))?;
            }
            Ok(is_unit)
        })?;
        Ok(true)
    })
}
