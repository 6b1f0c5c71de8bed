//! The prepared data of one cell, for the runs of its block.

use workahead_study::engine::{EngineError, Stop};

use crate::execution::Execution;
use crate::operator::{Operator, Platform};
use crate::oracle;
use crate::run::RunResult;

/// An operator with the description `S` of its data; none at first.
pub struct CachedOperator<S, M>(Option<(S, Box<dyn Operator<M>>)>);

impl<S, M> Default for CachedOperator<S, M> {
    fn default() -> Self {
        Self(None)
    }
}

impl<S: PartialEq, M: Platform> CachedOperator<S, M> {
    /// The operator of a description, built if it is not the current one.
    ///
    /// # Errors
    /// If it can't be built, or the user stopped.
    pub fn make(
        &mut self,
        shape: S,
        make: impl FnOnce(&S) -> Result<Box<dyn Operator<M>>, EngineError>,
        stop: &Stop,
    ) -> Result<&mut dyn Operator<M>, EngineError> {
        if stop.is_requested() {
            return Err(EngineError::Stopped);
        }
        if self.0.as_ref().is_none_or(|(made, _)| *made != shape) {
            // The old data is dropped first: both together may not fit.
            self.0 = None;
            let operator = make(&shape)?;
            self.0 = Some((shape, operator));
        }
        self.current()
    }

    /// The current operator.
    ///
    /// # Errors
    /// If there is none.
    pub fn current(&mut self) -> Result<&mut dyn Operator<M>, EngineError> {
        match &mut self.0 {
            Some((_, operator)) => Ok(operator.as_mut()),
            None => Err(unprepared()),
        }
    }

    /// The operator of this description.
    ///
    /// # Errors
    /// If the current one is another, or there is none.
    pub fn of(&mut self, shape: &S) -> Result<&mut dyn Operator<M>, EngineError> {
        match &mut self.0 {
            Some((made, operator)) if made == shape => Ok(operator.as_mut()),
            _ => Err(unprepared()),
        }
    }

    /// Drops it.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

/// Checks the answer of a run of all rows against the oracle's.
///
/// # Errors
/// If they differ.
pub fn check_answer<M: Platform>(
    operator: &dyn Operator<M>,
    execution: &Execution,
    result: RunResult,
) -> Result<RunResult, EngineError> {
    let copies = if operator.shares_work() { 1 } else { execution.threads.copies() };
    let expected = oracle::times(operator.answer(operator.probes()), copies);
    match result.answer == expected {
        true => Ok(result),
        false => Err(EngineError::WrongAnswer { got: result.answer, expected }),
    }
}

fn unprepared() -> EngineError {
    EngineError::failed("the data of this cell was not prepared")
}
