//! An operator's walks, recorded for the model as they run.

use std::sync::Mutex;

use bytemuck::Pod;
use workahead_machine::pages::PageBuffer;
use workahead_native::execution::{Execution, Threads};
use workahead_native::operator::{Pair, Platform, Task, side_by_side};
use workahead_native::oracle;
use workahead_native::run::RunResult;
use workahead_simulator::walks::{
    Among, Costs, Main, Part, Recorder, Until, Walked, Written, run_walks,
};
use workahead_study::engine::{Answer, EngineError};
use workahead_walks::isa::Isa;
use workahead_walks::materialise::Materialise;
use workahead_walks::technique::{self, Technique};
use workahead_walks::walk::{Row, Rows, Sink, Walk};
use workahead_walks::work_ahead::{Preloadable, ROWS_A_CHECK};

use super::measures;
use super::model::Model;
use super::pair::Beside;
use crate::queues::Loops;

/// A modelled machine that an operator's walks are recorded for.
#[derive(Debug, Clone)]
pub(super) struct ModelPlatform {
    model: Model,
    /// Where its recording goes, if it shares that machine with another operator.
    beside: Option<Beside>,
}

impl ModelPlatform {
    pub(super) fn new(model: Model) -> Self {
        Self { model, beside: None }
    }

    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    /// Runs both operators on this machine, so many rows of each at most: what it took, and how
    /// many rows each has done, if that is asked for.
    fn run_both(
        &self,
        execution: &Execution,
        pair: &mut Pair<Self>,
        rows: [usize; 2],
        until: Until,
    ) -> Result<(RunResult, [usize; 2]), EngineError> {
        let alone = execution.alone();
        let (ran, timed) = self.model.time_together(execution, until, |beside| {
            side_by_side(pair, |operator, place| {
                let platform = Self { beside: Some(beside(place)), model: self.model.clone() };
                operator.run(&alone, &platform, 0..rows[place])
            })
        })?;
        let [first, second] = ran;
        let mut done = timed.rows();
        let done = [0; 2].map(|none| done.next().unwrap_or(none));
        Ok((timed.of(first?.then(second?)), done))
    }
}

/// Why a whole result is refused.
pub(super) fn merging() -> EngineError {
    EngineError::setting("results", "merging is not modelled: leave out `results = \"whole\"`")
}

impl Platform for ModelPlatform {
    type Machine = Model;

    fn machine(&self) -> Model {
        self.model.clone()
    }

    fn run<'o, W, T>(
        task: &Task<'_, Self>,
        _: impl Isa,
        outputs: &'o mut [PageBuffer<T>],
        start: impl Fn(usize, &'o mut [T]) -> (W, Materialise<'o, T>) + Sync,
    ) -> Result<RunResult, EngineError>
    where
        W: Preloadable + Clone + Send,
        T: Send,
        Materialise<'o, T>: Sink<W::Hit>,
    {
        let model = &task.platform.model;
        let threads = task.execution.threads;
        let starts: Vec<Start<W, T>> = outputs
            .iter_mut()
            .take(threads.mains())
            .enumerate()
            .map(|(thread, output)| {
                let batch = (output.as_ptr().addr(), size_of::<T>(), output.len());
                let (walk, sink) = start(thread, output);
                Start { ahead: once(walk.clone()), main: once((walk, sink, batch)) }
            })
            .collect();
        let found = Mutex::new((Answer::default(), 0_usize));
        let walk = |part: Part, recorder: Recorder| {
            let (Part::Main(thread) | Part::Ahead(thread)) = part;
            let (start, rows) = (&starts[thread % starts.len()], share(task, thread));
            let recorder = recorder.told(task.execution.technique);
            match part {
                Part::Ahead(_) => run_ahead(taken(&start.ahead), rows, recorder),
                Part::Main(_) => {
                    let probed = rows.left();
                    let answer = run_main(task, taken(&start.main), rows, recorder);
                    let mut found = found.lock().expect("no walk ended during an addition");
                    oracle::add(&mut found.0, answer);
                    found.1 += probed;
                }
            }
        };
        let walked = match &task.platform.beside {
            Some(beside) => {
                beside.walk(|recorder| walk(Part::Main(0), recorder));
                None
            }
            None => {
                let mains = model.mains(task.execution)?;
                let (among, loops) = model.among();
                let costs = Costs::default();
                let walked = run_walks(model.preset(), (&mains, costs), among, walk);
                Some((mains, walked.map_err(EngineError::failed)?, loops))
            }
        };
        let (answer, probed) = found.into_inner().map_err(EngineError::failed)?;
        let ran = RunResult { answer, probed, ..RunResult::default() };
        Ok(match walked {
            Some((mains, walked, loops)) => {
                let mut ran = model.timed(ran, &mains, &walked);
                let shared = loops.and_then(|loops| loops.shared(measures::count(&mains), &walked));
                let said =
                    shared.iter().flat_map(|shared| shared.measures(model.preset(), probed as u64));
                ran.measures.extend(said.filter(|(_, value)| value.is_finite()));
                ran
            }
            // It is timed where all of them meet.
            None => ran,
        })
    }

    fn run_whole<W, T>(
        _: &Task<'_, Self>,
        _: impl Isa,
        _: usize,
        _: impl Fn(usize) -> W + Sync,
    ) -> Result<RunResult, EngineError>
    where
        W: Preloadable + Clone + Send,
        T: Pod + Send,
        for<'o> Materialise<'o, T>: Sink<W::Hit>,
    {
        Err(merging())
    }

    fn race(&self, pair: &mut Pair<Self>) -> Result<[usize; 2], EngineError> {
        let all = [0, 1].map(|place: usize| pair[place].probes());
        let (_, done) = self.run_both(&Execution::default(), pair, all, Until::First)?;
        Ok(done)
    }

    fn run_pair(
        &self,
        execution: &Execution,
        pair: &mut Pair<Self>,
        rows: [usize; 2],
    ) -> Result<RunResult, EngineError> {
        Ok(self.run_both(execution, pair, rows, Until::All)?.0)
    }

    /// What is a share of two times is a share of neither.
    fn is_of_both(measure: &str) -> bool {
        measure.contains("_per_tuple") || measure.starts_with("helper")
    }
}

/// A main thread's walk, over all of its rows.
fn run_main<'o, W: Walk, T>(
    task: &Task<'_, ModelPlatform>,
    (mut walk, sink, batch): (W, Materialise<'o, T>, Batch),
    mut rows: Rows,
    mut recorder: Recorder,
) -> Answer
where
    Materialise<'o, T>: Sink<W::Hit>,
{
    let technique = task.execution.technique;
    let mut sink = Written::new(sink, recorder.clone(), batch);
    let direct = matches!(technique, Technique::DirectHelper { .. });
    if direct || task.platform.beside.as_ref().is_some_and(Beside::counts_rows) {
        while rows.left() > 0 {
            let mut some = rows.take_rows(ROWS_A_CHECK);
            let done = some.left() as Row;
            technique::run_over(technique, &mut walk, &mut some, &mut recorder, &mut sink);
            if direct { recorder.tells(done) } else { recorder.passes(done) }
        }
    } else {
        technique::run_over(technique, &mut walk, &mut rows, &mut recorder, &mut sink);
    }
    let sink = sink.finish();
    Answer { rows: sink.written() as u64, checksum: sink.checksum() }
}

/// A main thread's rows. Dealt out beforehand: who is free first is not known while rows are
/// recorded.
fn share(task: &Task<'_, ModelPlatform>, thread: usize) -> Rows {
    match task.execution.threads {
        Threads::Bi { threads, .. } => {
            Rows::strided(thread as Row, task.rows.end as Row, threads as Row)
        }
        Threads::One | Threads::Independent(_) => {
            Rows::range(task.rows.start as Row..task.rows.end as Row)
        }
    }
}

/// What a main thread begins with, and its direct helper.
struct Start<'o, W, T> {
    main: Once<(W, Materialise<'o, T>, Batch)>,
    ahead: Once<W>,
}

/// Where hits are written: address, bytes of a row, rows.
type Batch = (usize, usize, usize);

/// Something that one thread takes.
type Once<T> = Mutex<Option<T>>;

fn once<T>(one: T) -> Once<T> {
    Mutex::new(Some(one))
}

fn taken<T>(once: &Once<T>) -> T {
    let taken = once.lock().ok().and_then(|mut one| one.take());
    taken.expect("each thread takes its own")
}

/// A direct helper: starts each row to learn its places, and loads them (S4.25).
fn run_ahead<W: Walk>(mut walk: W, rows: Rows, mut recorder: Recorder) {
    for row in rows {
        let (_, asks) = walk.start(row, &mut recorder);
        recorder.preload(&asks);
        recorder.passes(1);
    }
}

impl Model {
    /// Who else has the CPUs.
    fn among(&self) -> (Among, Option<Loops>) {
        match &self.sharing {
            None => (Among::Nobody, None),
            Some(sharing) => {
                let (among, loops) = sharing.among(&self.machine, self.working_set_bytes);
                (among, Some(loops))
            }
        }
    }

    /// What a run took on this machine.
    pub(super) fn timed(&self, ran: RunResult, mains: &[Main], walked: &Walked) -> RunResult {
        let seconds = |ticks| workahead_simulator::ticks::cycles(ticks) / (self.preset().ghz * 1e9);
        let threads = walked.ran.threads.iter().take(measures::count(mains));
        let busy = threads.map(|(counts, _)| counts.ticks).sum();
        RunResult {
            wall_s: seconds(walked.ran.ticks),
            cpu_s: seconds(busy),
            measures: measures::of(self.preset(), mains, walked, ran.probed),
            ..ran
        }
    }
}
