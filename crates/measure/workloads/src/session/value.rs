//! A value that goes to or comes from a server.
//!
//! Money is a decimal of whole units, never a float: sums over it are compared exactly (TPC-C
//! rev. 5.11, clause 1.3.1; checkers that compare floats accept wrong databases). Dates are days,
//! time stamps microseconds, both since 1970 and without a zone.

use std::fmt;

/// A value of one column or of one mark in a statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A whole number.
    Int(i64),
    /// A binary floating-point number.
    Real(f64),
    /// An exact decimal number.
    Decimal(Decimal),
    /// Text; from a server, also what it sent as text without our asking for its type.
    Text(&'a str),
    /// A day.
    Date(Date),
    /// A moment.
    Timestamp(Timestamp),
}

impl From<i64> for Value<'_> {
    fn from(int: i64) -> Self {
        Self::Int(int)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

/// `units` of ten to the minus `scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The number without its point.
    pub units: i64,
    /// Digits after the point, at most 18.
    pub scale: u8,
}

impl Decimal {
    /// More would not fit 64 bits.
    const SCALE_MAX: u8 = 18;

    /// A number of `units`, the last `scale` digits of which are behind the point.
    ///
    /// # Panics
    /// When `scale` exceeds 18.
    #[must_use]
    pub const fn new(units: i64, scale: u8) -> Self {
        assert!(scale <= Self::SCALE_MAX);
        Self { units, scale }
    }

    /// An amount of money.
    #[must_use]
    pub const fn cents(cents: i64) -> Self {
        Self::new(cents, 2)
    }

    /// Reads digits with an optional sign and point; zeros that don't fit behind the point go.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let kept = fraction.len().min(Self::SCALE_MAX as usize);
        let fraction = match fraction.get(kept..)?.bytes().all(|digit| digit == b'0') {
            true => &fraction[..kept],
            false => return None,
        };
        let all = || whole.bytes().chain(fraction.bytes());
        if all().next().is_none() || !all().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let zeros = fraction.len() - fraction.trim_end_matches('0').len();
        let mut digits = all().take(whole.len() + fraction.len() - zeros);
        let units = digits.try_fold(0_i64, |units, digit| {
            units.checked_mul(10)?.checked_add(sign * i64::from(digit - b'0'))
        })?;
        Some(Self::new(units, (fraction.len() - zeros) as u8))
    }

    /// The same number in units of ten to the minus `scale`, if it has so few digits.
    #[must_use]
    pub fn at_scale(self, scale: u8) -> Option<i64> {
        if scale >= self.scale {
            let factor = 10_i64.checked_pow(u32::from(scale - self.scale))?;
            return self.units.checked_mul(factor);
        }
        let factor = 10_i64.checked_pow(u32::from(self.scale - scale))?;
        (self.units % factor == 0).then(|| self.units / factor)
    }

    /// The nearest floating-point number.
    #[must_use]
    pub fn real(self) -> f64 {
        self.units as f64 / 10_f64.powi(i32::from(self.scale))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let factor = 10_u64.pow(u32::from(self.scale));
        let (sign, units) = (if self.units < 0 { "-" } else { "" }, self.units.unsigned_abs());
        write!(f, "{sign}{}", units / factor)?;
        match self.scale {
            0 => Ok(()),
            scale => write!(f, ".{:0width$}", units % factor, width = usize::from(scale)),
        }
    }
}

/// Days since 1970-01-01; shown as `1995-03-17`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(pub i32);

impl fmt::Display for Date {
    /// The Gregorian calendar from a count of days, by eras of 400 years that begin in March (H.
    /// Hinnant, "chrono-compatible low-level date algorithms", 2013: `civil_from_days`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAYS_TO_1970: i64 = 719_468;
        const DAYS_OF_ERA: i64 = 146_097;
        let days = i64::from(self.0) + DAYS_TO_1970;
        let (era, day_of_era) = (days.div_euclid(DAYS_OF_ERA), days.rem_euclid(DAYS_OF_ERA));
        let leaps = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
        let year_of_era = (day_of_era - leaps) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * march_month + 2) / 5 + 1;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// Microseconds since 1970-01-01 00:00:00; shown as `1995-03-17 12:30:00.000000`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MICROS_OF_DAY: i64 = 86_400_000_000;
        let days = self.0.div_euclid(MICROS_OF_DAY);
        let micros = self.0.rem_euclid(MICROS_OF_DAY);
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{} {hours:02}:{minutes:02}:{seconds:02}.{micros:06}", Date(days as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_shown_and_read() {
        for (text, units, scale) in
            [("0.05", 5, 2), ("-0.05", -5, 2), ("12", 12, 0), ("-300000.01", -30_000_001, 2)]
        {
            assert_eq!(Decimal::new(units, scale).to_string(), text);
            assert_eq!(Decimal::parse(text), Some(Decimal::new(units, scale)));
        }
        assert_eq!(Decimal::parse("2.50000000000000000000").unwrap().at_scale(2), Some(250));
        assert_eq!(Decimal::parse("1.005").unwrap().at_scale(2), None);
        for wrong in ["", "-", ".", "1.2.3", "1e3", "99999999999999999999", "abc", "١"] {
            assert_eq!(Decimal::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn days_and_moments_are_shown_as_the_calendar_has_them() {
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (8_035, "1992-01-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (19_782, "2024-02-29"),
        ] {
            assert_eq!(Date(days).to_string(), text);
        }
        assert_eq!(Timestamp(-1).to_string(), "1969-12-31 23:59:59.999999");
        assert_eq!(Timestamp(86_400_000_000 + 1).to_string(), "1970-01-02 00:00:00.000001");
    }

    proptest! {
        #[test]
        fn every_decimal_is_read_as_shown(units in any::<i64>(), scale in 0_u8..=18) {
            let decimal = Decimal::new(units, scale);
            let read = Decimal::parse(&decimal.to_string());
            prop_assert_eq!(read.and_then(|read| read.at_scale(scale)), Some(units));
        }
    }
}
