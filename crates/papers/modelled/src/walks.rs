//! Operators on a modelled machine, whose threads exist in the model only.
//!
//! Settings are those of [the engine](crate) and of [`workahead_native`], and
//!
//! | key | values |
//! |---|---|
//! | `set` | `software`, or `hardware` for a work-ahead set served by the machine itself (L4.1) |
//! | `scheduler` | shares the CPUs with loops, with the settings of [`queues`](crate::queues): main threads and helpers are threads of one address space (LX.1) |
//!
//! Data lie on pages of the model's size. Every figure is modelled: tier E.

mod measures;
mod model;
mod pair;
mod platform;
#[cfg(test)]
mod tests;

use workahead_engines::configuration::CellConfiguration;
use workahead_native::engine::OVERHEAD_BYTES;
use workahead_native::execution::{Execution, Results, Threads};
use workahead_native::prepared::{self, CachedOperator};
use workahead_native::shape::{self, OPERATORS, Shape};
use workahead_study::cell::Cell;
use workahead_study::engine::{EngineError, Need, Reason, Sample, Stop};
use workahead_walks::threads::Split;

use model::Model;
use platform::ModelPlatform;

/// The part of the engine that runs walks.
#[derive(Default)]
pub(crate) struct Walks {
    prepared: CachedOperator<Shape, ModelPlatform>,
}

fn read(cell: &Cell, stop: &Stop) -> Result<(Shape, Execution, ModelPlatform), EngineError> {
    let config = CellConfiguration::new(cell);
    let mut model = Model::read(&config)?;
    shape::has_operator(&config)?;
    if cell.text("operator") == Some("interference") {
        return Err(EngineError::setting(
            "operator",
            "`interference` measures how fast this machine's threads are, \
             which a model has as parameters: choose another",
        ));
    }
    let kind = config.choice("operator", OPERATORS[0].1, &OPERATORS)?;
    let (shape, execution) = Shape::read(kind, &config, &model.machine.footprint())?;
    config.nothing_else()?;
    if execution.results == Results::Whole {
        return Err(platform::merging_refused());
    }
    if matches!(execution.threads, Threads::Bi { split: Split::Morsels { .. }, .. }) {
        return Err(EngineError::setting(
            "threads",
            "which thread is free first is not known beforehand: leave out `split=morsels`",
        ));
    }
    model.mains(&execution)?;
    model.working_set_bytes = shape.bytes(&execution);
    Ok((shape, execution, ModelPlatform::new(model, stop.clone())))
}

impl Walks {
    pub(crate) fn check(&self, cell: &Cell) -> Result<Need, EngineError> {
        let (shape, execution, platform) = read(cell, &Stop::new())?;
        let model = platform.model();
        let (threads, cpus) = (execution.threads(), model.preset().cpus() as usize);
        let limitation = (threads > cpus && model.sharing.is_none()).then(|| {
            let name = &model.preset().name;
            Reason::new(format_args!("{threads} threads take turns on {cpus} CPUs of {name}"))
        });
        let memory_bytes = shape.bytes(&execution) + OVERHEAD_BYTES;
        let memory_bytes = memory_bytes.saturating_add(model.preset().state_bytes());
        Ok(Need { memory_bytes, limitation, impossible: None })
    }

    pub(crate) fn prepare(&mut self, cell: &Cell, stop: &Stop) -> Result<(), EngineError> {
        let (shape, execution, platform) = read(cell, stop)?;
        self.prepared.make(shape, Shape::make, stop)?.prepare(&execution, &platform)
    }

    pub(crate) fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError> {
        let (shape, execution, platform) = read(cell, stop)?;
        let operator = self.prepared.of(&shape)?;
        if stop.is_requested() {
            return Err(EngineError::Stopped);
        }
        let rows = operator.probes();
        let ran = operator.run(&execution, &platform, 0..rows)?;
        let ran = prepared::check_answer(operator, &execution, ran)?;
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

    pub(crate) fn finish(&mut self) {
        self.prepared.clear();
    }
}
