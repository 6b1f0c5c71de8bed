//! A value of a study: a TOML value other than dates, arrays and tables.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

/// One value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Setting {
    /// `true` or `false`.
    Switch(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// A text.
    Text(String),
}

/// Values by name.
pub type Settings = BTreeMap<String, Setting>;

impl Setting {
    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Setting::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number, when it is one.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Setting::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// The number, whole or not.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Setting::Integer(integer) => Some(*integer as f64),
            Setting::Number(number) => Some(*number),
            _ => None,
        }
    }
}

// By hand rather than untagged, so that errors use words that a user knows.
impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Setting, D::Error> {
        deserializer.deserialize_any(SettingVisitor)
    }
}

struct SettingVisitor;

impl Visitor<'_> for SettingVisitor {
    type Value = Setting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("words, a number, true or false")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Setting, E> {
        Ok(Setting::Switch(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Setting, E> {
        Ok(Setting::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Setting, E> {
        i64::try_from(value).map(Setting::Integer).map_err(E::custom)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Setting, E> {
        Ok(Setting::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Setting, E> {
        Ok(Setting::Text(value.to_owned()))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Switch(switch) => write!(f, "{switch}"),
            Setting::Integer(integer) => write!(f, "{integer}"),
            Setting::Number(number) => write!(f, "{number}"),
            Setting::Text(text) => f.write_str(text),
        }
    }
}

impl From<&str> for Setting {
    fn from(text: &str) -> Setting {
        Setting::Text(text.to_owned())
    }
}

impl From<i64> for Setting {
    fn from(integer: i64) -> Setting {
        Setting::Integer(integer)
    }
}

/// `a=1, b=x`: settings on one line.
pub fn one_line(settings: &Settings) -> String {
    let pairs: Vec<String> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(", ")
}
