//! The engine `native`: operators on this machine's memory, by threads pinned to its CPUs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use workahead_counters::event::Privilege;
use workahead_engines::collector::{self, Collector};
use workahead_engines::configuration::CellConfiguration;
use workahead_engines::valgrind::{ValgrindRunner, no_command};
use workahead_machine::EvidenceTier;
use workahead_machine::limits::Limits;
use workahead_machine::machine::Machine;
use workahead_study::cell::Cell;
use workahead_study::engine::{Engine, EngineContext, EngineError, Need, Reason, Sample, Stop};
use workahead_study::instrument::CACHES;
use workahead_study::worker_process::Command;
use workahead_walks::isa::Detected;

use crate::execution::Execution;
use crate::operator::Operator;
use crate::prepared::CachedOperator;
use crate::run::RunResult;
use crate::shape::{OPERATORS, Shape};
use crate::size::Footprint;
use crate::worker_group::WorkerGroup;
use crate::{by_role, ceiling, interference, prepared, shape};

/// Memory of a run in addition to its data: output batches, stacks and the like.
pub const OVERHEAD_BYTES: u64 = 64 << 20;

/// The name that studies use.
pub(crate) const NAME: &str = "native";

/// The engine.
pub struct Native {
    pub(crate) machine: Machine,
    footprint: Footprint,
    /// The measured limits of the machine, if any.
    pub(crate) limits: Option<Limits>,
    pub(crate) prepared: CachedOperator<Data, WorkerGroup>,
    /// Collects counters and profiles, where a study asks for them.
    collector: Option<Collector>,
    /// The state directory: unused by walks, whose data is always rebuilt, but passed to worker
    /// processes.
    pub(crate) home: PathBuf,
    /// The valgrind runner, for studies that use it.
    pub(crate) valgrind: Option<ValgrindRunner>,
    /// The command that runs a single cell.
    pub(crate) command: Option<Command>,
}

/// The data of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Data {
    /// For an operator that runs on any machine.
    Operator(Shape),
    /// For measuring the speeds of this machine's threads.
    Interference(interference::Shape),
}

impl Data {
    fn bytes(&self, execution: &Execution) -> u64 {
        match self {
            Data::Operator(shape) => shape.bytes(execution),
            Data::Interference(shape) => shape.bytes(),
        }
    }

    fn make(&self) -> Result<Box<dyn Operator<WorkerGroup>>, EngineError> {
        match self {
            Data::Operator(shape) => shape.make(),
            Data::Interference(shape) => shape.make(),
        }
    }
}

impl Native {
    /// Opens the engine on the machine that this process runs on.
    ///
    /// # Errors
    /// If instrumentation is requested and not possible.
    pub fn open(context: &EngineContext) -> Result<Self, EngineError> {
        let machine = Machine::here();
        let limits = context.limits.clone();
        let footprint = Footprint::of(&machine, limits.as_ref());
        if context.instrumentation.is_some() && context.worker.is_none() {
            return Err(no_command(NAME));
        }
        Ok(Self {
            machine,
            footprint,
            limits,
            prepared: CachedOperator::default(),
            // The kernel's part of a walk is page faults, which are over before the measurement.
            collector: Collector::of(context, &[Privilege::User]),
            home: context.data_dir.clone(),
            valgrind: context.instrumentation.as_ref().map(ValgrindRunner::new).transpose()?,
            command: context.worker.clone(),
        })
    }

    pub(crate) fn read(&self, cell: &Cell) -> Result<(Data, Execution), EngineError> {
        let config = CellConfiguration::new(cell);
        shape::has_operator(&config)?;
        let known = OPERATORS.map(|(name, kind)| (name, Some(kind)));
        let all = [&known[..], &[("interference", None)]].concat();
        let (data, execution) = match config.choice("operator", None, &all)? {
            Some(kind) => {
                let (shape, execution) = Shape::read(kind, &config, &self.footprint)?;
                (Data::Operator(shape), execution)
            }
            None => {
                let shape = interference::Shape::read(&config)?;
                let execution = Execution::read(&config, &self.footprint)?;
                config.has(CACHES);
                (Data::Interference(shape), execution)
            }
        };
        let placement = config.text("placement", execution.placement)?;
        config.nothing_else()?;
        Ok((data, Execution { placement, ..execution }))
    }

    /// The limitation of a cell on this machine.
    fn limitation(&self, execution: &Execution) -> Option<Reason> {
        let (threads, cpus) = (execution.threads(), self.machine.allowed_cpus().len());
        let turns =
            (threads > cpus).then(|| format!("{threads} threads take turns on {cpus} CPUs"));
        turns.or_else(|| WorkerGroup::limitation(&self.machine, execution)).map(Reason::new)
    }

    fn sample(&mut self, execution: &Execution, ran: RunResult) -> Result<Sample, EngineError> {
        let operator = self.prepared.current()?;
        let mut measures: BTreeMap<String, f64> =
            ran.measures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        let mut say = |name: &str, value: f64| measures.insert(name.to_owned(), value);
        say("probes", operator.probes() as f64);
        say("table_bytes", operator.table_bytes() as f64);
        let lines_per_s =
            |bytes, threads, pages| self.limits.as_ref()?.lines_per_s(bytes, threads, pages);
        let (threads, pages) = (execution.threads(), operator.pages());
        say("threads", threads as f64);
        say("cpus", threads.min(self.machine.allowed_cpus().len()) as f64);
        let limit = ceiling::probes_per_s(&operator.touches(), threads, pages, &lines_per_s);
        if let Some(limit) = limit {
            say("limit_mtuples_per_s", limit / 1e6);
            say("limit_fraction", ran.probed as f64 / ran.wall_s / limit);
        }
        let RunResult { wall_s, cpu_s, probed, answer, .. } = ran;
        let cpu_s = Some(cpu_s);
        Ok(Sample { wall_s, cpu_s, tuples: probed as u64, answer, measures, ..Sample::default() })
    }
}

impl Default for Native {
    fn default() -> Self {
        let machine = Machine::here();
        Self {
            footprint: Footprint::of(&machine, None),
            machine,
            limits: None,
            prepared: CachedOperator::default(),
            collector: None,
            home: std::env::temp_dir(),
            valgrind: None,
            command: None,
        }
    }
}

impl Engine for Native {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> String {
        format!("{} ({} code)", env!("CARGO_PKG_VERSION"), Detected::best().name())
    }

    fn tier(&self) -> Option<(EvidenceTier, String)> {
        self.valgrind.as_ref().map(|_| ValgrindRunner::tier())
    }

    fn check(&self, cell: &Cell) -> Result<Need, EngineError> {
        let (shape, execution) = self.read(cell)?;
        self.check_instrumented(cell, &execution)?;
        let processes = if self.valgrind.is_some() { 2 } else { 1 };
        let memory_bytes = processes * (shape.bytes(&execution) + OVERHEAD_BYTES);
        let impossible = WorkerGroup::of(&self.machine, execution.placement).err().map(Reason::new);
        let throttle = execution.technique.throttle().filter(|throttle| !throttle.is_available());
        let impossible = impossible.or_else(|| {
            let name = throttle?.name();
            Some(Reason::new(format_args!("this CPU has no instruction `{name}` to wait by")))
        });
        Ok(Need { memory_bytes, limitation: self.limitation(&execution), impossible })
    }

    fn prepare(&mut self, cell: &Cell, stop: &Stop) -> Result<(), EngineError> {
        let (data, execution) = self.read(cell)?;
        let operator = self.prepared.make(data, Data::make, stop)?;
        operator.prepare(&execution, &WorkerGroup::of(&self.machine, execution.placement)?)
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> Result<Sample, EngineError> {
        let (data, execution) = self.read(cell)?;
        let group = WorkerGroup::of(&self.machine, execution.placement)?;
        let operator = self.prepared.of(&data)?;
        if stop.is_requested() {
            return Err(EngineError::Stopped);
        }
        if let Some(valgrind) = self.valgrind.take() {
            let sample = self.count(&valgrind, cell, stop);
            self.valgrind = Some(valgrind);
            return sample;
        }
        let rows = operator.probes();
        let name = format!("{:?}", cell.settings);
        let run = || operator.run(&execution, &group, 0..rows);
        let (ran, collected) = collector::around(&mut self.collector, &name, run);
        let ran = prepared::check_answer(operator, &execution, ran?)?;
        let mut sample = self.sample(&execution, ran)?;
        if let Some((collector, collected)) = self.collector.as_mut().zip(collected) {
            if let Some(counts) = &collected.counts {
                let roles = group.roles(&execution);
                sample.measures.extend(by_role::measures(counts, &sample, &roles));
            }
            collector.keep(&name, collected, &mut sample);
        }
        Ok(sample)
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.prepared.clear();
        Ok(())
    }
}
