//! Errors of presets, each in one line with the remedy.

use crate::geometry::GeometryError;

/// Why a preset is rejected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PresetError {
    /// No machine has this name.
    #[error("no machine is called {name}: {known}; a file's name ends in .toml")]
    Unknown {
        /// The requested name.
        name: String,
        /// Known machines.
        known: String,
    },
    /// The machine has no such variant.
    #[error("{machine} has no variant {name}: {known}")]
    UnknownVariant {
        /// Machine.
        machine: String,
        /// The requested variant.
        name: String,
        /// Known variants.
        known: String,
    },
    /// The description can't be parsed.
    #[error("{name}: {why}")]
    Unreadable {
        /// Machine.
        name: String,
        /// The parse error.
        why: String,
    },
    /// The machine is impossible.
    #[error("{name}: {what}: {why}")]
    Impossible {
        /// Machine.
        name: String,
        /// Its part.
        what: String,
        /// The reason.
        why: GeometryError,
    },
    /// A figure is out of range.
    #[error("{name}: {what} is {value}: it takes {range}")]
    Range {
        /// Machine.
        name: String,
        /// Figure.
        what: String,
        /// Its value.
        value: f64,
        /// The allowed range.
        range: &'static str,
    },
    /// A figure has no origin.
    #[error("{name}: nothing says where {what} comes from: add it under [origin]")]
    NoOrigin {
        /// Machine.
        name: String,
        /// Figure.
        what: String,
    },
    /// No figure has this path.
    #[error("{name} has no figure {path}: {known}")]
    UnknownFigure {
        /// Machine.
        name: String,
        /// The requested path.
        path: String,
        /// Known keys at that level.
        known: String,
    },
    /// A figure can't have this value.
    #[error("{name}: {path} can't be {value}: {why}")]
    Value {
        /// Machine.
        name: String,
        /// Figure.
        path: String,
        /// The requested value.
        value: String,
        /// The accepted values.
        why: String,
    },
    /// An override without a path and a value.
    #[error("{0} changes nothing: write a figure's path and its value, as cache.L2.bytes=1048576")]
    NoChange(String),
}
