//! Values that may be unavailable, and why: those of a formula over counts, and of the arithmetic
//! of the papers.

use serde::{Deserialize, Serialize};

/// A value, or why there is none.
pub type Value = Result<f64, Unavailable>;

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Unavailable {
    /// An input was not counted.
    #[error("{name} is missing: {why}")]
    Missing {
        /// Which input.
        name: String,
        /// The obstacle.
        why: String,
    },
    /// Nothing happened in what the value is relative to.
    #[error("{name} is zero, so nothing is relative to it: count for longer")]
    NothingToDivideBy {
        /// The denominator.
        name: String,
    },
    /// A count or a share that can't be.
    #[error("{name} can't be {value}: count it again")]
    Impossible {
        /// Which input.
        name: String,
        /// The value as text: it may not be a number.
        value: String,
    },
    /// Shares of a whole that do not make a whole.
    #[error("shares of {name} add up to {sum:.4} instead of 1: count them again")]
    NotAWhole {
        /// The whole.
        name: String,
        /// Their sum.
        sum: f64,
    },
    /// A profile without widths.
    #[error("a profile of {name} has no width above 0")]
    NoWidths {
        /// The profile.
        name: String,
    },
}

/// A count as a value: an uncounted one is missing, for this reason.
pub fn counted(name: &str, count: Option<u64>, why: &str) -> Value {
    count.map(|count| count as f64).ok_or_else(|| missing(name, why))
}

/// An input that was not counted, and why.
pub fn missing(name: &str, why: &str) -> Unavailable {
    Unavailable::Missing { name: name.to_owned(), why: why.to_owned() }
}

/// One value relative to another; unavailable where either is, or where the denominator is zero.
///
/// # Errors
/// The first input's reason if both are unavailable.
pub fn ratio(numerator: &Value, denominator: &Value, name: &str) -> Value {
    let numerator = numerator.clone()?;
    match denominator.clone()? {
        0.0 => Err(Unavailable::NothingToDivideBy { name: name.to_owned() }),
        denominator => Ok(numerator / denominator),
    }
}

/// Only what a count or a penalty can be: finite, and not below zero.
pub(crate) fn sound(name: &str, value: f64) -> Value {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(Unavailable::Impossible { name: name.to_owned(), value: value.to_string() })
}

/// Only what a share can be: from 0 to 1.
pub(crate) fn share(name: &str, value: f64) -> Value {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(Unavailable::Impossible { name: name.to_owned(), value: value.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_counted_stays_unavailable() {
        let unknown = counted("L2 misses", None, "this machine does not count them");
        let error = ratio(&unknown, &Ok(10.0), "instructions").unwrap_err().to_string();
        assert_eq!(error, "L2 misses is missing: this machine does not count them");
        assert!(ratio(&Ok(1.0), &unknown, "L2 misses").is_err());
        assert_eq!(ratio(&counted("misses", Some(0), ""), &Ok(4.0), "instructions"), Ok(0.0));
    }

    #[test]
    fn nothing_is_relative_to_zero() {
        let nothing = ratio(&Ok(0.0), &Ok(0.0), "instructions").unwrap_err();
        assert_eq!(nothing, Unavailable::NothingToDivideBy { name: "instructions".into() });
    }

    #[test]
    fn shares_and_counts_have_bounds() {
        assert!(share("time", 1.0).is_ok() && share("time", 1.1).is_err());
        assert!(share("time", f64::NAN).is_err() && sound("penalty", f64::INFINITY).is_err());
        assert!(sound("penalty", 0.0).is_ok() && sound("penalty", -1.0).is_err());
    }
}
