//! The same operators on a modelled machine: a crew whose threads exist in the model only.
//!
//! Settings are those of [`modelled`](crate::modelled) and of [`native`](super), and
//!
//! | key | values |
//! |---|---|
//! | `set` | `software`, or `hardware` for a work-ahead set that the machine itself serves (L4.1) |
//! | `scheduler` | who shares the CPUs with loops, with the settings of [`queues`]: main threads and helpers are siblings of one address space (LX.1) |
//!
//! Data lie on pages of the model's size. Every figure is modelled: tier E.

mod beside;
mod measures;
mod model;
#[cfg(test)]
mod tests;
mod walking;

use workahead_study::cell::Cell;
use workahead_study::engine::{Engine as _, EngineError, Need, Sample, Stop};

use super::crew::{Crew, failed};
use super::how::{How, Results};
use super::{Kind, Native, Shape, oracle};
use crate::given::Given;

pub(super) use beside::Beside;
pub(crate) use model::Model;

/// The part of the engine that walks.
pub(crate) struct Walks {
    native: Native,
}

impl Walks {
    /// No data yet.
    fn new() -> Self {
        Self { native: Native::default() }
    }

    fn read(&self, cell: &Cell) -> Result<(Shape, How, Model), EngineError> {
        let given = Given::new(cell);
        let mut model = Model::read_of_walks(&given)?;
        let footprint = model.footprint();
        let (kind, shape, how) = Native::read_given(&given, &footprint)?;
        if matches!(kind, Kind::Interference) {
            return Err(failed(
                "setting `operator`: `interference` measures how fast this machine's threads are, \
                 which a model is told: choose another",
            ));
        }
        if how.results == Results::Whole {
            return Err(failed(
                "setting `results`: merging is not modelled: leave out `results = \"whole\"`",
            ));
        }
        model.mains(&how)?;
        model.working_set_bytes = shape.bytes(&how);
        Ok((shape, how, model))
    }
}

impl Default for Walks {
    fn default() -> Self {
        Self::new()
    }
}

impl Walks {
    pub(crate) fn check(&self, cell: &Cell) -> Result<Need, EngineError> {
        let (shape, how, model) = self.read(cell)?;
        let (threads, cpus) = (how.threads(), model.preset.cpus() as usize);
        let cannot = (threads > cpus && model.sharing.is_none()).then(|| {
            format!("{threads} threads take turns on {cpus} CPUs of {}", model.preset.name)
        });
        let memory_bytes = shape.bytes(&how) + super::BESIDE_BYTES;
        Ok(Need { memory_bytes, cannot, impossible: None })
    }

    pub(crate) fn prepare(&mut self, cell: &Cell, stop: &Stop) -> Result<(), EngineError> {
        let (shape, how, model) = self.read(cell)?;
        self.native.make(shape, stop)?;
        let crew = Crew::of(&self.native.machine)?.on(model);
        let Some((_, operator)) = &mut self.native.made else { unreachable!("made just now") };
        operator.prepare(&how, &crew)
    }

    pub(crate) fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError> {
        let (shape, how, model) = self.read(cell)?;
        let crew = Crew::of(&self.native.machine)?.on(model);
        let Some((_, operator)) = self.native.made.as_mut().filter(|(made, _)| *made == shape)
        else {
            return Err(failed("the data of this cell was not prepared"));
        };
        if stop.asked() {
            return Err(EngineError::Stopped);
        }
        let rows = operator.probes();
        let ran = operator.run(&how, &crew, 0..rows)?;
        let copies = if operator.shares_work() { 1 } else { how.threads.copies() };
        let expected = oracle::times(operator.answer(rows), copies);
        if ran.answer != expected {
            return Err(EngineError::WrongAnswer { got: ran.answer, expected });
        }
        let measures = ran.measures.iter().map(|(name, value)| ((*name).to_owned(), *value));
        Ok(Sample {
            wall_s: ran.wall_s,
            cpu_s: Some(ran.cpu_s),
            tuples: ran.probed as u64,
            answer: ran.answer,
            measures: measures.collect(),
            ..Sample::default()
        })
    }

    pub(crate) fn finish(&mut self) -> Result<(), EngineError> {
        self.native.finish()
    }
}
