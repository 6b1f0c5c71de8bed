//! Why there is no such machine, in one line with the remedy.

use crate::geometry::Impossible;

/// Why there is no such machine.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PresetError {
    /// Nobody has described it.
    #[error("no machine is called {name}: {known}; a file's name ends in .toml")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// It has no such variant.
    #[error("{machine} has no variant {name}: {known}")]
    UnknownVariant {
        /// Whose.
        machine: String,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// It is no description of a machine.
    #[error("{name}: {why}")]
    Unreadable {
        /// Which.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// No machine is like this.
    #[error("{name}: {what}: {why}")]
    Impossible {
        /// Which.
        name: String,
        /// Of which part.
        what: String,
        /// What is wrong.
        why: Impossible,
    },
    /// A figure is out of its range.
    #[error("{name}: {what} is {value}: it takes {range}")]
    Range {
        /// Which.
        name: String,
        /// Of which part.
        what: String,
        /// What it is.
        value: f64,
        /// What it may be.
        range: &'static str,
    },
    /// A figure without origin.
    #[error("{name}: nothing says where {what} comes from: add it under [origin]")]
    NoOrigin {
        /// Which.
        name: String,
        /// Of which part.
        what: String,
    },
    /// There is no such figure to change.
    #[error("{name} has no figure {path}: {known}")]
    UnknownFigure {
        /// Which machine.
        name: String,
        /// What was asked for.
        path: String,
        /// What there is at that level.
        known: String,
    },
    /// A figure can't be this.
    #[error("{name}: {path} can't be {value}: {why}")]
    Value {
        /// Which machine.
        name: String,
        /// Of which figure.
        path: String,
        /// What was asked for.
        value: String,
        /// What it takes.
        why: String,
    },
    /// No figure is named.
    #[error("{0} changes nothing: write a figure's path and its value, as cache.L2.bytes=1048576")]
    NoChange(String),
}
