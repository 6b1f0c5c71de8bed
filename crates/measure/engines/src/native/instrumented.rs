//! A walk below valgrind (evidence tier D), in a process of our own: data in place, then the walk
//! alone, on one thread.

use workahead_study::cell::Cell;
use workahead_study::engine::{Answer, EngineError, Sample, Stop};
use workahead_study::inside::Worker;
use workahead_study::instrument::CACHES;

use super::how::How;
use super::{Native, Shape, crew::Crew, crew::failed};
use crate::below::{self, Below, Inside, no_command, no_model};

impl Native {
    /// Refuses what one thread can't do, and caches that no model has.
    pub(super) fn check_below(&self, cell: &Cell, how: &How) -> Result<(), EngineError> {
        let caches = cell.get(CACHES).map(ToString::to_string);
        let Some(below) = &self.below else {
            return caches.map_or(Ok(()), |_| Err(no_model()));
        };
        below.tool(caches.as_deref())?;
        match how.threads() {
            1 => Ok(()),
            _ => Err(EngineError::Failed(
                "there is no second thread below valgrind, which runs one at a time: leave \
                 `threads` out, and helpers"
                    .to_owned(),
            )),
        }
    }

    /// One repetition of a cell that is prepared: its answer here is the oracle's.
    pub(super) fn below(
        &mut self,
        below: &Below,
        cell: &Cell,
        stop: &Stop,
    ) -> Result<Sample, EngineError> {
        let Some((_, operator)) = &self.made else { return Err(unprepared()) };
        let (probes, table_bytes) = (operator.probes(), operator.table_bytes());
        let expected = operator.answer(probes);
        let command = self.command.as_ref().ok_or_else(|| no_command("native"))?;
        let from = (self.home.as_path(), self.limits.as_ref());
        let inside = Inside::new(("native", command), cell, from, expected);
        let caches = cell.get(CACHES).map(ToString::to_string);
        let (caches, start) = (caches.as_deref(), cell.protocol.start);
        let how = below::How { caches, start, runs: 1, tuples: probes as u64 };
        let mut sample = below.count(&inside, how, stop)?;
        sample.answer = expected;
        sample.measures.insert("table_bytes".to_owned(), table_bytes as f64);
        Ok(sample)
    }
}

impl Worker for Native {
    fn run_once(&mut self, cell: &Cell) -> Result<Answer, EngineError> {
        let (shape, how): (Shape, How) = self.read(cell)?;
        let crew = Crew::of(&self.machine)?;
        let made = self.made.as_mut().filter(|(made, _)| *made == shape);
        let (_, operator) = made.ok_or_else(unprepared)?;
        let rows = operator.probes();
        Ok(operator.run(&how, &crew, 0..rows)?.answer)
    }
}

fn unprepared() -> EngineError {
    failed("the data of this cell was not prepared")
}
