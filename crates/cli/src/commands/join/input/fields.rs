//! Fields of a schema that lies in a message of Arrow, counted before they are made: one that is
//! there once may be named any number of times, and each is made anew with its name.

use std::io::{self, ErrorKind};

use arrow_ipc::{Field, KeyValue, Schema};

use super::records::COLUMNS_MAX;
use super::refusal::{BYTES_MIN, too_much};

/// A field without its texts.
const FIELD_BYTES: usize = 512;

/// Refuses a schema of more columns than a file may have, or of more bytes than it may take.
pub(super) fn check(schema: Schema<'_>, bytes_max: usize) -> io::Result<()> {
    let columns = schema.fields().map_or(0, |fields| fields.len());
    if columns > COLUMNS_MAX {
        let says = format!("it has {columns} columns, and {COLUMNS_MAX} are the most");
        return Err(io::Error::new(ErrorKind::InvalidData, says));
    }
    let fields = schema.fields().into_iter().flatten().map(field_bytes);
    let pairs = schema.custom_metadata().into_iter().flatten().map(pair_bytes);
    let bytes = fields.chain(pairs).fold(0, usize::saturating_add);
    let most = bytes_max.max(BYTES_MIN);
    if bytes <= most { Ok(()) } else { Err(too_much("its schema", bytes, most, "")) }
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
