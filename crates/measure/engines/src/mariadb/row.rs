//! Values from MariaDB: rows read where they lie.

use std::ops::Range;

use mysql_common::constants::{ColumnFlags, ColumnType};
use mysql_common::io::ParseBuf;
use mysql_common::packets::Column;
use workahead_workloads::session::{Columns, Date, SessionError, Timestamp, Value};

use super::wire::short;

/// How a column's values come in the answer of a prepared statement (MariaDB manual, "Resultset
/// row": binary).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A whole number of 1, 2, 4 or 8 bytes.
    Int {
        bytes: u8,
        signed: bool,
    },
    Float4,
    Float8,
    Date,
    Timestamp,
    Time,
    /// Everything else, as text.
    Text,
}

impl Form {
    pub(super) fn of(column: &Column) -> Form {
        let signed = !column.flags().contains(ColumnFlags::UNSIGNED_FLAG);
        match column.column_type() {
            ColumnType::MYSQL_TYPE_TINY => Form::Int { bytes: 1, signed },
            ColumnType::MYSQL_TYPE_SHORT | ColumnType::MYSQL_TYPE_YEAR => {
                Form::Int { bytes: 2, signed }
            }
            ColumnType::MYSQL_TYPE_LONG | ColumnType::MYSQL_TYPE_INT24 => {
                Form::Int { bytes: 4, signed }
            }
            ColumnType::MYSQL_TYPE_LONGLONG => Form::Int { bytes: 8, signed },
            ColumnType::MYSQL_TYPE_FLOAT => Form::Float4,
            ColumnType::MYSQL_TYPE_DOUBLE => Form::Float8,
            ColumnType::MYSQL_TYPE_DATE => Form::Date,
            ColumnType::MYSQL_TYPE_DATETIME | ColumnType::MYSQL_TYPE_TIMESTAMP => Form::Timestamp,
            ColumnType::MYSQL_TYPE_TIME => Form::Time,
            _ => Form::Text,
        }
    }

    /// The bytes of a value at the head of `rest`, without their length.
    fn eat<'a>(self, rest: &mut ParseBuf<'a>) -> Option<&'a [u8]> {
        match self {
            Form::Int { bytes, .. } => rest.checked_eat(usize::from(bytes)),
            Form::Float4 => rest.checked_eat(4),
            Form::Float8 => rest.checked_eat(8),
            Form::Date | Form::Timestamp | Form::Time => rest.checked_eat_u8_str(),
            Form::Text => rest.checked_eat_lenenc_str(),
        }
    }
}

/// Where the values of a row are; reused from row to row.
#[derive(Debug, Default)]
pub(super) struct Cells(Vec<Option<Range<usize>>>);

impl Cells {
    /// Finds the values of a row: binary ones of these forms, or `width` texts.
    pub(super) fn split<'a>(
        &'a mut self,
        packet: &'a [u8],
        forms: Option<&'a [Form]>,
        width: usize,
    ) -> Result<Fields<'a>, SessionError> {
        self.0.clear();
        let found = match forms {
            Some(forms) => self.binary(packet, forms),
            None => self.texts(packet, width),
        };
        found.ok_or_else(short)?;
        Ok(Fields { packet, forms, cells: &self.0 })
    }

    /// A zero byte, a bit for every null from the third on, the others' values.
    fn binary(&mut self, packet: &[u8], forms: &[Form]) -> Option<()> {
        let nulls = packet.get(1..1 + (forms.len() + 2).div_ceil(8))?;
        let mut rest = ParseBuf(&packet[1 + nulls.len()..]);
        for (column, form) in forms.iter().enumerate() {
            let bit = column + 2;
            let cell = match nulls[bit / 8] >> (bit % 8) & 1 {
                0 => Some(of(packet, form.eat(&mut rest)?)),
                _ => None,
            };
            self.0.push(cell);
        }
        Some(())
    }

    fn texts(&mut self, packet: &[u8], width: usize) -> Option<()> {
        let mut rest = ParseBuf(packet);
        for _ in 0..width {
            let cell = match rest.0.first()? {
                0xfb => {
                    rest.skip(1);
                    None
                }
                _ => Some(of(packet, rest.checked_eat_lenenc_str()?)),
            };
            self.0.push(cell);
        }
        Some(())
    }
}

/// Where in `packet` its `part` is.
fn of(packet: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr() - packet.as_ptr().addr();
    start..start + part.len()
}

/// A received row.
pub(super) struct Fields<'a> {
    packet: &'a [u8],
    forms: Option<&'a [Form]>,
    cells: &'a [Option<Range<usize>>],
}

impl Columns for Fields<'_> {
    fn count(&self) -> usize {
        self.cells.len()
    }

    fn value(&self, index: usize) -> Result<Value<'_>, SessionError> {
        let Some(cell) = &self.cells[index] else { return Ok(Value::Null) };
        let form = self.forms.map_or(Form::Text, |forms| forms[index]);
        read(form, &self.packet[cell.clone()])
            .map_err(|why| SessionError::Failed(format!("column {index} is {why}")))
    }
}

fn read(form: Form, bytes: &[u8]) -> Result<Value<'_>, &'static str> {
    match form {
        Form::Int { signed, .. } => int(bytes, signed).map(Value::Int),
        Form::Float4 => {
            let bytes = bytes.try_into().map_err(|_| "no number")?;
            Ok(Value::Real(f64::from(f32::from_le_bytes(bytes))))
        }
        Form::Float8 => {
            let bytes = bytes.try_into().map_err(|_| "no number")?;
            Ok(Value::Real(f64::from_le_bytes(bytes)))
        }
        Form::Date => {
            let (days, _) = moment(bytes)?;
            Ok(Value::Date(Date(days as i32)))
        }
        Form::Timestamp => {
            let (days, micros) = moment(bytes)?;
            Ok(Value::Timestamp(Timestamp(days * 86_400_000_000 + micros)))
        }
        Form::Time => Err("a time of day: cast it to char"),
        Form::Text => std::str::from_utf8(bytes)
            .map(Value::Text)
            .map_err(|_| "bytes that are not text: convert them, for example with hex()"),
    }
}

/// A whole number of at most eight bytes, the lowest first.
fn int(bytes: &[u8], signed: bool) -> Result<i64, &'static str> {
    let is_negative = signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if is_negative { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let int = i64::from_le_bytes(wide);
    match signed || int >= 0 {
        true => Ok(int),
        false => Err("a whole number beyond 63 bits: cast it to a decimal"),
    }
}

/// Days from 1970-01-01 and microseconds of the day; trailing zeros are left out.
fn moment(bytes: &[u8]) -> Result<(i64, i64), &'static str> {
    let at = |index: usize| i64::from(bytes.get(index).copied().unwrap_or(0));
    let (year, month, day) = (at(0) | at(1) << 8, at(2), at(3));
    // `0000-00-00`, and days that only lax servers store.
    if month == 0 || day == 0 {
        return Err("not a day of the calendar");
    }
    let seconds = at(4) * 3600 + at(5) * 60 + at(6);
    let micros = at(7) | at(8) << 8 | at(9) << 16 | at(10) << 24;
    Ok((days(year, month, day), seconds * 1_000_000 + micros))
}

/// Days from 1970-01-01, by eras of 400 years that begin in March (H. Hinnant, "chrono-compatible
/// low-level date algorithms", 2013: `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let march_month = (month + 9) % 12;
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_that_are_shown() {
        for (year, month, day) in [
            (1970, 1, 1),
            (1969, 12, 31),
            (2000, 2, 29),
            (1900, 3, 1),
            (2024, 2, 29),
            (9999, 12, 31),
        ] {
            let shown = Date(days(year, month, day) as i32).to_string();
            assert_eq!(shown, format!("{year:04}-{month:02}-{day:02}"));
        }
    }
}
