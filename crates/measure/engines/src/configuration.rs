//! The settings of a cell, read one by one; a setting that is never read is a misspelling.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use workahead_study::cell::Cell;
use workahead_study::engine::EngineError;
use workahead_study::setting::Setting;

/// The setting that the runner adds to cells.
const OF_THE_RUNNER: &str = "case";

/// A cell being read.
pub struct CellConfiguration<'c> {
    cell: &'c Cell,
    known: RefCell<Vec<&'static str>>,
    /// Prefixes of names whose rest is free.
    beginnings: RefCell<Vec<&'static str>>,
}

impl<'c> CellConfiguration<'c> {
    /// A cell of which no setting is read yet.
    #[must_use]
    pub fn new(cell: &'c Cell) -> Self {
        let known = RefCell::new(vec![OF_THE_RUNNER]);
        Self { cell, known, beginnings: RefCell::default() }
    }

    /// Seed of the data.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.cell.seed
    }

    /// Whether the cell has the setting.
    pub fn has(&self, key: &'static str) -> bool {
        self.known.borrow_mut().push(key);
        self.cell.get(key).is_some()
    }

    /// The value parsed as `T`; `usual` when the cell has none.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn text<T>(&self, key: &'static str, usual: T) -> Result<T, EngineError>
    where
        T: FromStr<Err: Display>,
    {
        if !self.has(key) {
            return Ok(usual);
        }
        let words = self.cell.get(key).map(ToString::to_string).unwrap_or_default();
        words.parse().map_err(|error| EngineError::setting(key, error))
    }

    /// A whole number within bounds.
    ///
    /// # Errors
    /// When it is not a number, or out of bounds.
    pub fn number(
        &self,
        key: &'static str,
        usual: usize,
        bounds: RangeInclusive<usize>,
    ) -> Result<usize, EngineError> {
        if !self.has(key) {
            return Ok(usual);
        }
        let number = self.cell.integer(key).and_then(|number| usize::try_from(number).ok());
        number.filter(|number| bounds.contains(number)).ok_or_else(|| {
            self.wrong(key, &format!("a whole number from {} to {}", bounds.start(), bounds.end()))
        })
    }

    /// A number within bounds, whole or not.
    ///
    /// # Errors
    /// When it is not a number, or out of bounds.
    pub fn real(
        &self,
        key: &'static str,
        usual: f64,
        bounds: RangeInclusive<f64>,
    ) -> Result<f64, EngineError> {
        if !self.has(key) {
            return Ok(usual);
        }
        let number = self.cell.get(key).and_then(|setting| setting.as_number());
        number.filter(|number| bounds.contains(number)).ok_or_else(|| {
            self.wrong(key, &format!("a number from {} to {}", bounds.start(), bounds.end()))
        })
    }

    /// One of a few words.
    ///
    /// # Errors
    /// When it is another word.
    pub fn choice<T: Copy>(
        &self,
        key: &'static str,
        usual: T,
        choices: &[(&str, T)],
    ) -> Result<T, EngineError> {
        if !self.has(key) {
            return Ok(usual);
        }
        let config = self.cell.get(key).map(ToString::to_string).unwrap_or_default();
        match choices.iter().find(|choice| choice.0 == config) {
            Some(choice) => Ok(choice.1),
            None => Err(EngineError::unknown(key, &config, choices.iter().map(|choice| choice.0))),
        }
    }

    /// All settings with this prefix, by the rest of their names.
    pub fn beginning(&self, beginning: &'static str) -> BTreeMap<String, String> {
        self.beginnings.borrow_mut().push(beginning);
        let rest = |(name, value): (&String, &Setting)| {
            Some((name.strip_prefix(beginning)?.to_owned(), value.to_string()))
        };
        self.cell.settings.iter().filter_map(rest).collect()
    }

    /// Refuses settings that were never read.
    ///
    /// # Errors
    /// When the cell has such a setting.
    pub fn nothing_else(&self) -> Result<(), EngineError> {
        let known = self.known.borrow();
        let beginnings = self.beginnings.borrow();
        let is_known = |key: &str| {
            known.contains(&key) || beginnings.iter().any(|beginning| key.starts_with(beginning))
        };
        match self.cell.settings.keys().find(|key| !is_known(key)) {
            None => Ok(()),
            Some(unknown) => {
                let offered = known.iter().copied().filter(|key| *key != OF_THE_RUNNER);
                Err(EngineError::unknown("setting", unknown, offered))
            }
        }
    }

    fn wrong(&self, key: &str, wanted: &str) -> EngineError {
        let config = self.cell.get(key).map(ToString::to_string).unwrap_or_default();
        EngineError::setting(key, format!("`{config}` is not {wanted}"))
    }
}
