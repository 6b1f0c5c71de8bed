//! A checksum over values: FNV-1a (Fowler, Noll, Vo) with an end after each value.

use crate::session::{Row, SessionError, Value};

/// One being made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checksum(u64);

impl Checksum {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a value; two values are not their bytes in one.
    pub(crate) fn add(&mut self, value: &[u8]) {
        for byte in value.iter().chain(&[0]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }
}

/// A row as a number, over its values as text.
///
/// # Errors
/// When a value can't be read.
pub fn of_row(row: Row<'_>) -> Result<u64, SessionError> {
    let mut checksum = Checksum::new();
    for column in 0..row.columns() {
        match row.value(column)? {
            Value::Null => checksum.add(&[1]),
            Value::Int(int) => checksum.add(int.to_string().as_bytes()),
            Value::Real(real) => checksum.add(real.to_string().as_bytes()),
            Value::Decimal(decimal) => checksum.add(decimal.to_string().as_bytes()),
            Value::Text(text) => checksum.add(text.as_bytes()),
            Value::Date(date) => checksum.add(date.to_string().as_bytes()),
            Value::Timestamp(moment) => checksum.add(moment.to_string().as_bytes()),
        }
    }
    Ok(checksum.value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_values_end_counts() {
        let of = |values: &[&str]| {
            let mut checksum = Checksum::new();
            values.iter().for_each(|value| checksum.add(value.as_bytes()));
            checksum.value()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_eq!(of(&["ab", "c"]), of(&["ab", "c"]));
    }
}
