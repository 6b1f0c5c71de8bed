//! A row of an answer, read in place.
//!
//! Engines hand values over as they came; text stands for any type, so that a server that sends
//! numbers as digits need no types. Reading converts, and names the column when it
//! can't.

use super::{Decimal, SessionError, Value};

/// The values of a row, wherever they lie.
pub trait Columns {
    /// How many there are.
    fn count(&self) -> usize;

    /// The value at a position from 0 and below [`count`](Self::count).
    ///
    /// # Errors
    /// When the bytes are not what the column's type says.
    fn value(&self, index: usize) -> Result<Value<'_>, SessionError>;
}

impl Columns for &[Value<'_>] {
    fn count(&self) -> usize {
        self.len()
    }
    fn value(&self, index: usize) -> Result<Value<'_>, SessionError> {
        Ok(self[index])
    }
}

/// A row that lasts as long as the closure that takes it.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    columns: &'a dyn Columns,
}

impl<'a> Row<'a> {
    /// The row of these values.
    #[must_use]
    pub fn new(columns: &'a dyn Columns) -> Self {
        Self { columns }
    }

    /// How many columns it has.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns.count()
    }

    /// The value of a column, from 0, as it came.
    ///
    /// # Errors
    /// When there is no such column, or its bytes are not of its type.
    pub fn value(&self, column: usize) -> Result<Value<'a>, SessionError> {
        if column >= self.columns.count() {
            let count = self.columns.count();
            let says = format!("column {column} of an answer that has {count} was requested");
            return Err(SessionError::Failed(says));
        }
        self.columns.value(column)
    }

    /// Whether the column is null.
    ///
    /// # Errors
    /// As [`value`](Self::value).
    pub fn is_null(&self, column: usize) -> Result<bool, SessionError> {
        Ok(matches!(self.value(column)?, Value::Null))
    }

    /// A whole number; a decimal without a fraction is one.
    ///
    /// # Errors
    /// When the column is something else.
    pub fn int(&self, column: usize) -> Result<i64, SessionError> {
        let value = self.value(column)?;
        let int = match value {
            Value::Int(int) => Some(int),
            Value::Decimal(decimal) => decimal.at_scale(0),
            Value::Text(text) => {
                text.parse().ok().or_else(|| Decimal::parse(text).and_then(|d| d.at_scale(0)))
            }
            _ => None,
        };
        int.ok_or_else(|| unlike(column, value, "a whole number"))
    }

    /// A decimal number in units of ten to the minus `scale`: `12.5` at scale 2 is 1250.
    ///
    /// # Errors
    /// When the column is something else, or has more digits after the point.
    pub fn decimal(&self, column: usize, scale: u8) -> Result<i64, SessionError> {
        let value = self.value(column)?;
        let decimal = match value {
            Value::Int(int) => Some(Decimal::new(int, 0)),
            Value::Decimal(decimal) => Some(decimal),
            Value::Text(text) => Decimal::parse(text),
            _ => None,
        };
        let units = decimal.and_then(|decimal| decimal.at_scale(scale));
        units.ok_or_else(|| unlike(column, value, "a decimal number within the supported digits"))
    }

    /// A number, rounded if need be.
    ///
    /// # Errors
    /// When the column is something else.
    pub fn real(&self, column: usize) -> Result<f64, SessionError> {
        let value = self.value(column)?;
        let real = match value {
            Value::Int(int) => Some(int as f64),
            Value::Real(real) => Some(real),
            Value::Decimal(decimal) => Some(decimal.real()),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        };
        real.ok_or_else(|| unlike(column, value, "a number"))
    }

    /// Text.
    ///
    /// # Errors
    /// When the column is something else.
    pub fn text(&self, column: usize) -> Result<&'a str, SessionError> {
        match self.value(column)? {
            Value::Text(text) => Ok(text),
            value => Err(unlike(column, value, "text")),
        }
    }
}

/// Characters of a text that an error shows: a server may send a gigabyte.
const SHOWN_CHARS_MAX: usize = 100;

fn unlike(column: usize, value: Value<'_>, wanted: &str) -> SessionError {
    let value = match value {
        Value::Text(text) => match text.char_indices().nth(SHOWN_CHARS_MAX) {
            Some((end, _)) => Value::Text(&text[..end]),
            None => value,
        },
        other => other,
    };
    SessionError::Failed(format!("column {column} of the answer is {value:?}, not {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_from_what_came_and_from_text() {
        let values: &[Value<'_>] = &[
            Value::Int(7),
            Value::Text("12.50"),
            Value::Decimal(Decimal::new(-125, 1)),
            Value::Null,
            Value::Text("300"),
        ];
        let row = Row::new(&values);
        assert_eq!((row.int(0), row.int(4)), (Ok(7), Ok(300)));
        assert_eq!((row.decimal(1, 2), row.decimal(2, 2)), (Ok(1250), Ok(-1250)));
        assert_eq!((row.real(1), row.text(1)), (Ok(12.5), Ok("12.50")));
        assert_eq!((row.is_null(3), row.is_null(0)), (Ok(true), Ok(false)));
        for wrong in [row.int(1), row.int(3), row.int(5), row.decimal(1, 0)] {
            assert!(matches!(wrong, Err(SessionError::Failed(_))), "{wrong:?}");
        }
    }

    #[test]
    fn an_error_shows_the_beginning_of_a_long_text() {
        let long = "é".repeat(1_000_000);
        let values: &[Value<'_>] = &[Value::Text(&long)];
        let says = Row::new(&values).int(0).unwrap_err().to_string();
        let shown = format!("Text(\"{}\"), not a whole number", "é".repeat(SHOWN_CHARS_MAX));
        assert!(says.ends_with(&shown), "{says}");
    }
}
