//! What every operator of the engine has in common.

pub(super) mod streams;

use workahead_machine::pages::Pages;
use workahead_study::engine::{Answer, EngineError};

use super::crew::{Crew, Ran};
use super::how::How;

/// An operator with its data in place.
pub(super) trait Operator {
    /// Makes room for so many independent copies of the data, and so many outputs.
    fn prepare(&mut self, copies: usize, threads: usize) -> Result<(), EngineError>;

    /// Rows that probe, in each copy.
    fn rows(&self) -> usize;

    /// The answer of one copy, by an oracle that shares no code with the operator.
    fn expected(&self) -> Answer;

    /// Bytes of the structure that is probed.
    fn table_bytes(&self) -> usize;

    /// The lines that a probe must touch at random.
    fn touches(&self) -> Vec<Touch>;

    /// The pages it all lies on.
    fn pages(&self) -> Pages;

    /// Runs all rows.
    fn run(&mut self, how: &How, crew: &Crew) -> Result<Ran, EngineError>;
}

/// Cache lines touched at random in one structure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Touch {
    /// Size of the structure.
    pub(super) bytes: usize,
    /// Lines of it that a probe touches, on average.
    pub(super) lines: f64,
}

impl Touch {
    pub(super) fn random(bytes: usize, lines: f64) -> Self {
        Self { bytes, lines }
    }
}
