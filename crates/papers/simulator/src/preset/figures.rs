//! The figures of a machine, each with its path, value and origin.
//!
//! ```text
//!   cache.L2.bytes   524288   Zhou et al. 2005, table 1: 512 KB
//!   └─ part ┘└leaf┘           └─ under [origin], by the path or the beginning of it
//! ```

use toml::{Table, Value};

use super::{Preset, PresetError, allowed};

/// A figure of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Its path, as overrides name it: `cache.L2.bytes`.
    pub path: String,
    /// Its value.
    pub value: String,
    /// Where it comes from: a paper and its table, a public document, or `default: why`.
    pub origin: String,
}

/// Bytes of an origin.
const ORIGIN_BYTES_MAX: f64 = 4096.0;

/// Keys that are not figures.
pub(super) const WORDS: [&str; 4] = ["name", "title", "origin", "variant"];

impl Preset {
    /// Every figure with its origin, in the order of the file; absent optional parts are listed as
    /// not modelled.
    #[must_use]
    pub fn described(&self) -> Vec<Figure> {
        let absent = [
            ("tlb.instructions", self.tlb.instructions.is_none()),
            ("branches", self.branches.is_none()),
            ("prefetcher", self.prefetcher.is_none()),
        ];
        let absent = absent.into_iter().filter(|(_, absent)| *absent);
        let absent = absent.map(|(path, _)| (path.to_owned(), "not modelled".to_owned()));
        let figures = self.leaves().into_iter().chain(absent);
        let described = figures.map(|(path, value)| {
            let origin = self.origin_of(&path).unwrap_or("default: none is described").to_owned();
            Figure { path, value, origin }
        });
        described.collect()
    }

    /// Checks that every figure has an origin, of a length that each figure can have a copy of.
    ///
    /// # Errors
    /// For the first without one, or a longer one.
    pub fn check_origins(&self) -> Result<(), PresetError> {
        let longest = self.origin.values().map(String::len).max().unwrap_or_default();
        let lengths = allowed((0.0, ORIGIN_BYTES_MAX), "up to 4096");
        self.within("the number of bytes of an origin", longest as f64, lengths)?;
        match self.leaves().into_iter().find(|(path, _)| self.origin_of(path).is_none()) {
            None => Ok(()),
            Some((what, _)) => Err(PresetError::NoOrigin { name: self.name.clone(), what }),
        }
    }

    /// The origin with the longest prefix of a path.
    pub(super) fn origin_of(&self, path: &str) -> Option<&str> {
        let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
        let mut origins = ends.filter_map(|end| self.origin.get(&path[..end]));
        origins.next_back().map(String::as_str)
    }

    /// Paths and values.
    pub(super) fn leaves(&self) -> Vec<(String, String)> {
        let mut leaves = Vec::new();
        for (key, value) in self.table() {
            if !WORDS.contains(&key.as_str()) {
                collect(key, &value, &mut leaves);
            }
        }
        leaves
    }

    /// The machine as TOML, with every default written out.
    pub(super) fn table(&self) -> Table {
        Table::try_from(self).expect("a preset is a table of numbers, words and tables")
    }
}

fn collect(path: String, value: &Value, leaves: &mut Vec<(String, String)>) {
    match value {
        Value::Table(parts) => {
            for (key, value) in parts {
                collect(format!("{path}.{key}"), value, leaves);
            }
        }
        Value::Array(parts) => {
            for part in parts {
                let Value::Table(part) = part else { continue };
                let name = part.get("name").and_then(Value::as_str).unwrap_or_default();
                for (key, value) in part.iter().filter(|(key, _)| *key != "name") {
                    collect(format!("{path}.{name}.{key}"), value, leaves);
                }
            }
        }
        Value::String(word) => leaves.push((path, word.clone())),
        number => leaves.push((path, number.to_string())),
    }
}
