//! Findings of a rule, and how they are printed.

use super::File;

/// Something a rule has to say about a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// File, relative to the root; empty for the whole.
    pub(crate) path: String,
    /// One-based line, or 0 for the whole file.
    pub(crate) line: usize,
    /// The fault and its remedy.
    pub(crate) says: String,
    pub(crate) weight: Weight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Warning,
    Failure,
}

impl Finding {
    pub(crate) fn at(file: &File, line: usize, says: impl Into<String>) -> Self {
        let says = says.into();
        Self { path: file.path.clone(), line, says, weight: Weight::Failure }
    }

    pub(crate) fn of_file(file: &File, says: impl Into<String>) -> Self {
        Self::at(file, 0, says)
    }

    pub(crate) fn of_path(path: impl Into<String>, says: impl Into<String>) -> Self {
        Self { path: path.into(), line: 0, says: says.into(), weight: Weight::Failure }
    }

    pub(crate) fn warning(self) -> Self {
        Self { weight: Weight::Warning, ..self }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = match self.weight {
            Weight::Warning => "warning",
            Weight::Failure => "error",
        };
        match self.line {
            0 => write!(f, "{}: {word}: {}", self.path, self.says),
            line => write!(f, "{}:{line}: {word}: {}", self.path, self.says),
        }
    }
}
