//! Reasons as users read them.

use std::fmt::{self, Display};

use serde::{Deserialize, Serialize};

/// One line of plain text: the cause, and the remedy where there is one. A fragment that begins in
/// lower case and has no full stop, so that it can follow other words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Reason(String);

impl Reason {
    /// From a text or an error.
    pub fn new(text: impl Display) -> Self {
        Self(text.to_string())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
