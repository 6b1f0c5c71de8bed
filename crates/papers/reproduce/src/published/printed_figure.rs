//! Figures as they were printed: values with their rounding.

use serde::{Deserialize, Serialize};

/// A figure as printed. The unrounded value lies within half a unit of its last digit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PrintedFigure {
    /// Its value.
    pub value: f64,
    /// Digits after the point; -1 for "about 90".
    pub decimals: i32,
}

/// All of something, in per cent.
const WHOLE: f64 = 100.0;

/// Not a figure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a printed figure: write digits, as in 2.90, or 9e1 for about 90")]
pub struct PrintedFigureError(String);

impl PrintedFigure {
    /// The least that rounds to it.
    pub fn low(&self) -> f64 {
        self.value - self.half()
    }

    /// The most that rounds to it.
    pub fn high(&self) -> f64 {
        self.value + self.half()
    }

    fn half(&self) -> f64 {
        0.5 * 10f64.powi(-self.decimals)
    }
}

impl TryFrom<String> for PrintedFigure {
    type Error = PrintedFigureError;

    fn try_from(text: String) -> Result<PrintedFigure, PrintedFigureError> {
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let exponent: Option<i32> = exponent.parse().ok();
        let value = text.parse().ok().filter(|value: &f64| value.is_finite());
        match (value, exponent, i32::try_from(decimals)) {
            (Some(value), Some(exponent), Ok(decimals)) => {
                Ok(PrintedFigure { value, decimals: decimals - exponent })
            }
            _ => Err(PrintedFigureError(text)),
        }
    }
}

impl From<PrintedFigure> for String {
    fn from(printed: PrintedFigure) -> String {
        printed.to_string()
    }
}

impl std::fmt::Display for PrintedFigure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match usize::try_from(self.decimals) {
            Ok(decimals) => write!(f, "{:.decimals$}", self.value),
            Err(_) => write!(f, "{}e{}", self.value * 10f64.powi(self.decimals), -self.decimals),
        }
    }
}

/// The statement about a value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// This much.
    Exactly(PrintedFigure),
    /// All of something, in per cent: it was never rounded.
    Whole,
    /// Somewhere in between.
    Between(PrintedFigure, PrintedFigure),
    /// This much or more.
    AtLeast(PrintedFigure),
    /// This much or less.
    AtMost(PrintedFigure),
}

impl Quantity {
    /// The least and the most that it allows, rounding included; infinite where it is open.
    pub fn bounds(&self) -> (f64, f64) {
        match self {
            Quantity::Exactly(value) => (value.low(), value.high()),
            Quantity::Whole => (WHOLE, WHOLE),
            Quantity::Between(low, high) => (low.low(), high.high()),
            Quantity::AtLeast(low) => (low.low(), f64::INFINITY),
            Quantity::AtMost(high) => (f64::NEG_INFINITY, high.high()),
        }
    }

    /// The value, where it states just one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Quantity::Exactly(printed) => Some(printed.value),
            Quantity::Whole => Some(WHOLE),
            _ => None,
        }
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Quantity::Exactly(value) if value.decimals < 0 => write!(f, "about {}", value.value),
            Quantity::Exactly(value) => write!(f, "{value}"),
            Quantity::Whole => write!(f, "{WHOLE}"),
            Quantity::Between(low, high) => write!(f, "{low} to {high}"),
            Quantity::AtLeast(low) => write!(f, "at least {low}"),
            Quantity::AtMost(high) => write!(f, "at most {high}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> PrintedFigure {
        PrintedFigure::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn digits_say_how_far_it_was_rounded() {
        assert_eq!(of("2.90"), PrintedFigure { value: 2.9, decimals: 2 });
        assert!((of("2.90").low() - 2.895).abs() < 1e-12);
        assert!((of("93").high() - 93.5).abs() < 1e-12);
        assert_eq!((of("9e1").low(), of("9e1").high()), (85.0, 95.0));
        assert_eq!((of("-5.8").value, of("-5.8").decimals), (-5.8, 1));
        for text in ["", "n/a", "4-way", "1e", "inf", "NaN", "5%"] {
            assert!(PrintedFigure::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn figures_are_written_as_they_were_read() {
        for text in ["2.90", "0", "0.0", "93", "9e1", "1738"] {
            assert_eq!(of(text).to_string(), text);
        }
        assert_eq!(Quantity::Exactly(of("9e1")).to_string(), "about 90");
        assert_eq!(Quantity::Between(of("3"), of("5")).to_string(), "3 to 5");
    }

    #[test]
    fn open_ends_allow_anything() {
        assert_eq!(Quantity::AtLeast(of("90")).bounds(), (89.5, f64::INFINITY));
        assert_eq!(Quantity::AtMost(of("1")).bounds(), (f64::NEG_INFINITY, 1.5));
        assert_eq!(Quantity::AtMost(of("1")).value(), None);
    }
}
