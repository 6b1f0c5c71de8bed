//! The same operators on a modelled machine: a crew whose threads exist in the model only.
//!
//! Settings are those of [`modelled`](crate::modelled) and of [`native`](super); data lie on pages
//! of the model's size. Every figure is modelled: tier E.

use std::path::Path;
use std::sync::Mutex;

use workahead_machine::pages::PageBuffer;
use workahead_operators::materialise::Materialise;
use workahead_operators::technique::{self, Near, Technique};
use workahead_operators::walk::{Row, Rows, Sink, Walk};
use workahead_operators::work_ahead::{Direction, Wait};
use workahead_simulator::preset::Preset;
use workahead_simulator::walks::{Costs, Main, Orders, Recorder, Walked, Written, run_walks};
use workahead_study::cell::Cell;
use workahead_study::engine::{Answer, Engine as _, EngineError, Need, Sample, Stop};

use super::crew::{Crew, Ran, failed};
use super::how::{How, Threads};
use super::operator::Task;
use super::size::Footprint;
use super::{Kind, Native, Shape, oracle};
use crate::given::Given;

mod measures;

/// Cycles of a PAUSE: a default. Intel's manual calls it "a pre-defined delay" on a Pentium 4 and
/// names no figure; this is of the order that is told of it.
const PAUSE_CYCLES: u32 = 43;

/// A machine that operators are run on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Model {
    preset: Preset,
    placement: Placement,
}

/// Which CPUs threads get first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Placement {
    /// The threads of a core, then those of the next.
    #[default]
    Compact,
    /// A thread of each core, then the second of each.
    Scatter,
}

const PLACEMENTS: [(&str, Placement); 2] =
    [("compact", Placement::Compact), ("scatter", Placement::Scatter)];

const SIBLINGS: [(&str, bool); 2] = [("on", true), ("off", false)];

/// The beginning of settings that change the machine.
const CHANGES: &str = "model.";

impl Model {
    pub(crate) fn read(given: &Given<'_>) -> Result<Self, EngineError> {
        let name: String = given.text("machine", String::new())?;
        if name.is_empty() {
            let known: Vec<&str> = workahead_simulator::catalogue::names().collect();
            return Err(EngineError::Failed(format!(
                "the setting `machine` is missing: one of {}",
                known.join(", ")
            )));
        }
        let mut preset = Preset::named(&name).map_err(failed)?;
        for (path, value) in given.beginning(CHANGES) {
            let path = path.strip_prefix(CHANGES).unwrap_or(&path);
            preset = preset.with_override(&format!("{path}={value}")).map_err(failed)?;
        }
        if !given.choice("siblings", true, &SIBLINGS)? {
            preset = preset.without_siblings();
        }
        let placement = given.choice("placement", Placement::Compact, &PLACEMENTS)?;
        Ok(Self { preset, placement })
    }

    /// What sizes by name are beside.
    fn footprint(&self) -> Footprint {
        let bytes = |at: usize| self.preset.cache.get(at).map(|level| level.bytes as usize);
        let last = self.preset.cache.len().saturating_sub(1);
        let l2 = self.preset.cache.iter().find(|level| level.name == "L2");
        let llc_bytes = bytes(last).unwrap_or(1 << 20);
        Footprint { l2_bytes: l2.map_or(llc_bytes, |level| level.bytes as usize), llc_bytes }
    }

    /// The machine.
    pub(crate) fn preset(&self) -> &Preset {
        &self.preset
    }

    /// The CPU of each thread in turn.
    pub(crate) fn cpu(&self, thread: usize) -> usize {
        let (cores, threads) = (self.preset.cores as usize, self.preset.threads as usize);
        let thread = thread % (cores * threads);
        match self.placement {
            Placement::Compact => thread,
            Placement::Scatter => thread % cores * threads + thread / cores,
        }
    }

    /// Main threads and their helpers.
    fn mains(&self, how: &How) -> Result<Vec<Main>, EngineError> {
        let mains = how.threads.mains();
        let Technique::WorkAhead(options) = how.technique else {
            return Ok((0..mains).map(|at| Main { cpu: self.cpu(at), helper: None }).collect());
        };
        let orders = match options.helper {
            None => None,
            Some(helper) => {
                let spin = match helper.wait {
                    Wait::None => None,
                    Wait::Spin { pauses } => Some(pauses * PAUSE_CYCLES),
                    Wait::Sleep(_) => {
                        return Err(failed("a model has no operating system to wake a sleeper"));
                    }
                };
                Some(Orders { backward: helper.direction == Direction::Backward, spin })
            }
        };
        let cpus = |at: usize| match orders {
            None => (self.cpu(at), None),
            // A helper beside its main thread: the sibling, where there is one.
            Some(orders) => (self.cpu(2 * at), Some((self.cpu(2 * at + 1), orders))),
        };
        let main = |at| {
            let (cpu, helper) = cpus(at);
            Main { cpu, helper }
        };
        Ok((0..mains).map(main).collect())
    }
}

impl Task<'_> {
    /// Runs a walk on a modelled machine: `start` gives each main thread its walk and its sink.
    pub(super) fn run_modelled<'o, W, T>(
        &self,
        model: &Model,
        outputs: &'o mut [PageBuffer<T>],
        start: impl Fn(usize, &'o mut [T]) -> (W, Materialise<'o, T>) + Sync,
    ) -> Result<Ran, EngineError>
    where
        W: Walk,
        T: Send,
        Materialise<'o, T>: Sink<W::Hit>,
    {
        let How { technique, threads, .. } = *self.how;
        let mains = model.mains(self.how)?;
        let set_size = match technique {
            Technique::WorkAhead(options) => options.size,
            _ => 0,
        };
        let outputs: Vec<Mutex<Option<&mut [T]>>> =
            outputs.iter_mut().map(|output| Mutex::new(Some(&mut output[..]))).collect();
        let found = Mutex::new((Answer::default(), 0_usize));
        let walk = |thread: usize, recorder: Recorder| {
            let output = outputs[thread].lock().ok().and_then(|mut output| output.take());
            let output = output.expect("an output for every thread");
            let batch = (output.as_ptr().addr(), size_of::<T>(), output.len());
            let (mut walk, sink) = start(thread, output);
            let mut recorder = recorder.told(technique.near() != Near::None, set_size);
            let mut sink = Written::new(sink, recorder.clone(), batch);
            let mut rows = self.share(threads, thread);
            let probed = rows.left();
            technique::run_over(technique, &mut walk, &mut rows, &mut recorder, &mut sink);
            let sink = sink.finish();
            let answer = Answer { rows: sink.written() as u64, checksum: sink.checksum() };
            let mut found = found.lock().expect("no walk ended in the middle of an addition");
            oracle::add(&mut found.0, answer);
            found.1 += probed;
        };
        let walked = run_walks(&model.preset, (&mains, Costs::default()), walk).map_err(failed)?;
        let (answer, probed) = found.into_inner().map_err(failed)?;
        Ok(ran(model, &mains, &walked, (answer, probed)))
    }

    /// A main thread's rows. Dealt out beforehand: who is free first is not known while rows are
    /// recorded.
    fn share(&self, threads: Threads, thread: usize) -> Rows {
        match threads {
            Threads::Bi { threads, .. } => {
                Rows::strided(thread as Row, self.rows.end as Row, threads as Row)
            }
            Threads::One | Threads::Independent(_) => {
                Rows::range(self.rows.start as Row..self.rows.end as Row)
            }
        }
    }
}

fn ran(model: &Model, mains: &[Main], walked: &Walked, found: (Answer, usize)) -> Ran {
    let (answer, probed) = found;
    let seconds = |ticks| workahead_simulator::ticks::cycles(ticks) / (model.preset.ghz * 1e9);
    let busy = walked.ran.threads.iter().map(|(counts, _)| counts.ticks).sum();
    Ran {
        wall_s: seconds(walked.ran.ticks),
        cpu_s: seconds(busy),
        probed,
        answer,
        measures: measures::of(&model.preset, mains, walked, probed),
    }
}

/// The part of the engine that walks.
pub(crate) struct Walks {
    native: Native,
}

impl Walks {
    /// No data yet.
    fn new() -> Self {
        Self { native: Native::new() }
    }

    fn read(&self, cell: &Cell) -> Result<(Shape, How, Model), EngineError> {
        let given = Given::new(cell);
        let model = Model::read(&given)?;
        let footprint = model.footprint();
        let (kind, shape, how) = Native::read_given(&given, &footprint)?;
        if matches!(kind, Kind::Heterogeneous | Kind::Interference) {
            return Err(EngineError::Failed(
                "setting `operator`: `heterogeneous` and `interference` are timed while they run, \
                 which a model can't do: choose another"
                    .to_owned(),
            ));
        }
        if matches!(how.technique, Technique::DirectHelper { .. }) {
            return Err(EngineError::Failed(
                "setting `technique`: a model has no direct helper: choose `work-ahead`".to_owned(),
            ));
        }
        model.mains(&how)?;
        Ok((shape, how, model))
    }
}

impl Default for Walks {
    fn default() -> Self {
        Self::new()
    }
}

impl Walks {
    pub(crate) fn keep_in(&mut self, home: &Path) {
        self.native.keep_in(home);
    }

    pub(crate) fn check(&self, cell: &Cell) -> Result<Need, EngineError> {
        let (shape, how, model) = self.read(cell)?;
        let (threads, cpus) = (how.threads(), model.preset.cpus() as usize);
        let cannot = (threads > cpus).then(|| {
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
        let expected = oracle::times(operator.answer(rows), how.threads.copies());
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
