//! Values to and from MariaDB.

use mysql::Value as Theirs;
use mysql::consts::ColumnType;
use workahead_workloads::session::{Columns, Date, SessionError, Timestamp, Value};

/// A value as the server is given it; it turns texts of numbers and days into what it needs.
pub(super) fn given(value: &Value<'_>) -> Theirs {
    match value {
        Value::Null => Theirs::NULL,
        Value::Int(int) => Theirs::Int(*int),
        Value::Real(real) => Theirs::Double(*real),
        Value::Text(text) => Theirs::Bytes(text.as_bytes().to_owned()),
        Value::Decimal(decimal) => Theirs::Bytes(decimal.to_string().into_bytes()),
        Value::Date(date) => Theirs::Bytes(date.to_string().into_bytes()),
        Value::Timestamp(moment) => Theirs::Bytes(moment.to_string().into_bytes()),
    }
}

/// A row that has come.
pub(super) struct Fields<'a>(pub(super) &'a mysql::Row);

impl Columns for Fields<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn value(&self, index: usize) -> Result<Value<'_>, SessionError> {
        let taken = || SessionError::Failed(format!("column {index} has no value"));
        let value = self.0.as_ref(index).ok_or_else(taken)?;
        let read = match value {
            Theirs::NULL => Ok(Value::Null),
            Theirs::Int(int) => Ok(Value::Int(*int)),
            Theirs::UInt(int) => match i64::try_from(*int) {
                Ok(int) => Ok(Value::Int(int)),
                Err(_) => Err("a whole number beyond 63 bits: cast it to a decimal"),
            },
            Theirs::Float(real) => Ok(Value::Real(f64::from(*real))),
            Theirs::Double(real) => Ok(Value::Real(*real)),
            Theirs::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Value::Text(text)),
                Err(_) => Err("bytes that are no text: convert them, for example with hex()"),
            },
            Theirs::Date(year, month, day, hour, minute, second, micros) => {
                let days = days(i64::from(*year), i64::from(*month), i64::from(*day));
                let seconds =
                    i64::from(*hour) * 3600 + i64::from(*minute) * 60 + i64::from(*second);
                match self.0.columns_ref().get(index).map(mysql::Column::column_type) {
                    // `0000-00-00`, and days that only lax servers store.
                    _ if *month == 0 || *day == 0 => Err("no day of the calendar"),
                    Some(ColumnType::MYSQL_TYPE_DATE) => Ok(Value::Date(Date(days as i32))),
                    _ => Ok(Value::Timestamp(Timestamp(
                        (days * 86_400 + seconds) * 1_000_000 + i64::from(*micros),
                    ))),
                }
            }
            Theirs::Time(..) => Err("a time of day: cast it to char"),
        };
        read.map_err(|why| SessionError::Failed(format!("column {index} is {why}")))
    }
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
