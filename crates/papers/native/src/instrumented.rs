//! A walk under valgrind (evidence tier D), in a process of its own: the data is prepared, then the
//! walk runs alone on one thread.

use workahead_engines::valgrind::{
    ValgrindOptions, ValgrindRunner, WorkerProgram, no_command, no_model,
};
use workahead_study::cell::Cell;
use workahead_study::engine::{Answer, EngineError, Sample, Stop};
use workahead_study::instrument::CACHES;
use workahead_study::worker_process::{Request, Worker};

use crate::engine::{NAME, Native};
use crate::execution::Execution;
use crate::worker_group::WorkerGroup;

impl Native {
    /// Rejects executions with several threads, and caches that no model has.
    pub(crate) fn check_instrumented(
        &self,
        cell: &Cell,
        execution: &Execution,
    ) -> Result<(), EngineError> {
        let caches = cell.get(CACHES).map(ToString::to_string);
        let Some(valgrind) = &self.valgrind else {
            return caches.map_or(Ok(()), |_| Err(no_model()));
        };
        valgrind.tool(caches.as_deref())?;
        match execution.threads() {
            1 => Ok(()),
            _ => Err(EngineError::refused(
                "there is no second thread under valgrind, which runs one at a time: leave \
                 `threads` out, and helpers",
            )),
        }
    }

    /// One repetition of a prepared cell, with its answer checked.
    pub(crate) fn count(
        &mut self,
        valgrind: &ValgrindRunner,
        cell: &Cell,
        stop: &Stop,
    ) -> Result<Sample, EngineError> {
        let operator = self.prepared.current()?;
        let (probes, table_bytes) = (operator.probes(), operator.table_bytes());
        let expected = operator.answer(probes);
        let command = self.command.as_ref().ok_or_else(|| no_command(NAME))?;
        let request = Request {
            engine: NAME.to_owned(),
            cell: cell.clone(),
            home: self.home.clone(),
            limits: self.limits.clone(),
            runs: 0,
        };
        let program = WorkerProgram::new(command, request, expected);
        let caches = cell.get(CACHES).map(ToString::to_string);
        let (caches, start) = (caches.as_deref(), cell.protocol.start);
        let options = ValgrindOptions { caches, start, runs: 1, tuples: probes as u64 };
        let mut sample = valgrind.count(&program, options, stop)?;
        sample.answer = expected;
        sample.measures.insert("table_bytes".to_owned(), table_bytes as f64);
        Ok(sample)
    }
}

impl Worker for Native {
    fn run_once(&mut self, cell: &Cell) -> Result<Answer, EngineError> {
        let (data, execution) = self.read(cell)?;
        let group = WorkerGroup::of(&self.machine, execution.placement)?;
        let operator = self.prepared.of(&data)?;
        let rows = operator.probes();
        Ok(operator.run(&execution, &group, 0..rows)?.answer)
    }
}
