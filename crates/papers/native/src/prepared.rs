//! The data of one cell in place, for the runs of its block.

use workahead_study::engine::{EngineError, Stop};

use crate::execution::Execution;
use crate::operator::{Operator, Platform};
use crate::oracle;
use crate::run::RunResult;

/// An operator with the description `S` that its data was made by; none at first.
pub struct Prepared<S, M>(Option<(S, Box<dyn Operator<M>>)>);

impl<S, M> Default for Prepared<S, M> {
    fn default() -> Self {
        Self(None)
    }
}

impl<S: PartialEq, M: Platform> Prepared<S, M> {
    /// The operator of a description: the one that is there, or made now.
    ///
    /// # Errors
    /// When it can't be made, or someone asked to stop.
    pub fn make(
        &mut self,
        shape: S,
        make: impl FnOnce(&S) -> Result<Box<dyn Operator<M>>, EngineError>,
        stop: &Stop,
    ) -> Result<&mut dyn Operator<M>, EngineError> {
        if stop.asked() {
            return Err(EngineError::Stopped);
        }
        if self.0.as_ref().is_none_or(|(made, _)| *made != shape) {
            // The old data goes first: both together may not fit.
            self.0 = None;
            let operator = make(&shape)?;
            self.0 = Some((shape, operator));
        }
        self.current()
    }

    /// The operator that is there.
    ///
    /// # Errors
    /// When none was made.
    pub fn current(&mut self) -> Result<&mut dyn Operator<M>, EngineError> {
        match &mut self.0 {
            Some((_, operator)) => Ok(operator.as_mut()),
            None => Err(unprepared()),
        }
    }

    /// The operator of this description.
    ///
    /// # Errors
    /// When another one was made last, or none.
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

/// Refuses a run of all rows whose answer is not the oracle's.
///
/// # Errors
/// When it isn't.
pub fn checked<M: Platform>(
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
