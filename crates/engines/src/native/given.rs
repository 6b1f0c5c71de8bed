//! The settings of a cell, read one by one; what was never asked for is a misspelling.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use workahead_study::cell::Cell;
use workahead_study::engine::EngineError;

/// What the runner adds to a cell's settings.
const OF_THE_RUNNER: &str = "case";

/// A cell being read.
pub(super) struct Given<'c> {
    cell: &'c Cell,
    known: RefCell<Vec<&'static str>>,
}

impl<'c> Given<'c> {
    pub(super) fn new(cell: &'c Cell) -> Self {
        Self { cell, known: RefCell::new(vec![OF_THE_RUNNER]) }
    }

    /// Seed of the data.
    pub(super) fn seed(&self) -> u64 {
        self.cell.seed
    }

    /// Whether the cell says anything about it.
    pub(super) fn has(&self, key: &'static str) -> bool {
        self.known.borrow_mut().push(key);
        self.cell.get(key).is_some()
    }

    /// The value in words, read as `T`; `usual` when the cell says nothing.
    pub(super) fn text<T>(&self, key: &'static str, usual: T) -> Result<T, EngineError>
    where
        T: FromStr<Err: Display>,
    {
        if !self.has(key) {
            return Ok(usual);
        }
        let words = self.cell.get(key).map(ToString::to_string).unwrap_or_default();
        words.parse().map_err(|error| EngineError::Failed(format!("setting `{key}`: {error}")))
    }

    /// A whole number within bounds.
    pub(super) fn number(
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
    pub(super) fn real(
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
    pub(super) fn choice<T: Copy>(
        &self,
        key: &'static str,
        usual: T,
        choices: &[(&str, T)],
    ) -> Result<T, EngineError> {
        if !self.has(key) {
            return Ok(usual);
        }
        let given = self.cell.get(key).map(ToString::to_string).unwrap_or_default();
        match choices.iter().find(|choice| choice.0 == given) {
            Some(choice) => Ok(choice.1),
            None => Err(EngineError::unknown(key, &given, choices.iter().map(|choice| choice.0))),
        }
    }

    /// Refuses what was never asked for.
    pub(super) fn nothing_else(&self) -> Result<(), EngineError> {
        let known = self.known.borrow();
        match self.cell.settings.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(unknown) => {
                let offered = known.iter().copied().filter(|key| *key != OF_THE_RUNNER);
                Err(EngineError::unknown("setting", unknown, offered))
            }
        }
    }

    fn wrong(&self, key: &str, wanted: &str) -> EngineError {
        let given = self.cell.get(key).map(ToString::to_string).unwrap_or_default();
        EngineError::Failed(format!("setting `{key}`: `{given}` is not {wanted}"))
    }
}
