//! A value that goes into DuckDB or comes out of it.

use std::fmt;

/// A value of one column or of one mark in a statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// A whole number, a truth value as 0 or 1.
    Int(i64),
    /// A binary floating-point number; also whole and decimal ones of more than 64 bits.
    Real(f64),
    /// `units` of ten to the minus `scale`.
    Decimal {
        /// The number without its point.
        units: i64,
        /// Digits after the point, at most 18.
        scale: u8,
    },
    /// Text.
    Text(&'a str),
    /// Days since 1970-01-01.
    Days(i32),
    /// Microseconds since 1970-01-01 00:00:00.
    Micros(i64),
}

impl Cell<'_> {
    /// A whole number; a real number beyond 64 bits.
    pub(crate) fn whole(number: i128) -> Self {
        i64::try_from(number).map_or(Cell::Real(number as f64), Cell::Int)
    }

    /// A decimal number; a real number beyond 64 bits or 18 places.
    pub(crate) fn decimal(units: i128, scale: u8) -> Self {
        match i64::try_from(units) {
            Ok(units) if scale <= 18 => Cell::Decimal { units, scale },
            _ => Cell::Real(units as f64 / 10_f64.powi(scale.into())),
        }
    }
}

impl fmt::Display for Cell<'_> {
    /// As SQL's texts have it, days and moments as their numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Cell::Null => f.write_str("null"),
            Cell::Int(int) => write!(f, "{int}"),
            Cell::Real(real) => write!(f, "{real}"),
            Cell::Text(text) => f.write_str(text),
            Cell::Days(days) => write!(f, "{days}"),
            Cell::Micros(micros) => write!(f, "{micros}"),
            Cell::Decimal { units, scale } => {
                let factor = 10_u64.pow(scale.into());
                let (sign, units) = (if units < 0 { "-" } else { "" }, units.unsigned_abs());
                match scale {
                    0 => write!(f, "{sign}{units}"),
                    _ => {
                        let width = usize::from(scale);
                        write!(f, "{sign}{}.{:0width$}", units / factor, units % factor)
                    }
                }
            }
        }
    }
}
