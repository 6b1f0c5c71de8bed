//! A machine's figures one by one, each with its path, value and origin.
//!
//! ```text
//!   cache.L2.bytes   524288   Zhou et al. 2005, table 1: 512 KB
//!   └─ part ┘└leaf┘           └─ under [origin], by the path or the beginning of it
//! ```

use toml::{Table, Value};

use super::{Preset, PresetError};

/// A figure of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Its path, as overrides name it: `cache.L2.bytes`.
    pub path: String,
    /// What it is.
    pub value: String,
    /// Where it comes from: a paper and its table, a public document, or `default: why`.
    pub origin: String,
}

/// What is not a figure.
pub(super) const WORDS: [&str; 4] = ["name", "title", "origin", "variant"];

impl Preset {
    /// Every figure with its origin, in the order of the file; parts that the machine does without
    /// are named as not modelled.
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

    /// Refuses figures of which nothing says where they come from.
    ///
    /// # Errors
    /// For the first of them.
    pub fn check_origins(&self) -> Result<(), PresetError> {
        match self.leaves().into_iter().find(|(path, _)| self.origin_of(path).is_none()) {
            None => Ok(()),
            Some((what, _)) => Err(PresetError::NoOrigin { name: self.name.clone(), what }),
        }
    }

    /// The origin by the longest beginning of a path.
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

    /// The machine as its file would be, with every default written out.
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
