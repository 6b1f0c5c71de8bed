//! An operator's walks, recorded for the model as they run.

use std::sync::Mutex;

use bytemuck::Pod;
use workahead_machine::pages::PageBuffer;
use workahead_native::execution::{Execution, Threads};
use workahead_native::operator::{Pair, Platform, Task, side_by_side};
use workahead_native::oracle;
use workahead_native::run::RunResult;
use workahead_simulator::walks::{
    BatchLayout, BatchSink, CoRunners, Main, Recorder, RunEnd, WalkThread, WalksResult, run_walks,
};
use workahead_study::engine::{Answer, EngineError, Stop};
use workahead_walks::isa::Isa;
use workahead_walks::materialise::Materialise;
use workahead_walks::technique::{self, Technique};
use workahead_walks::walk::{Row, Rows, Sink, Walk};
use workahead_walks::work_ahead::{Preloadable, ROWS_A_CHECK};

use super::measures;
use super::model::Model;
use super::pair::SharedMachine;
use crate::queues::Loops;

/// A modelled machine that an operator's walks are recorded for.
#[derive(Debug, Clone)]
pub(super) struct ModelPlatform {
    model: Model,
    /// Whether walks and their model are to end early.
    stop: Stop,
    /// The shared machine, if another operator runs on it too.
    shared_machine: Option<SharedMachine>,
}

impl ModelPlatform {
    pub(super) fn new(model: Model, stop: Stop) -> Self {
        Self { model, stop, shared_machine: None }
    }

    pub(super) fn model(&self) -> &Model {
        &self.model
    }

    /// Runs both operators on this machine, each at most for the given rows. Returns the result
    /// and, in a race, the rows that each has done.
    fn run_both(
        &self,
        execution: &Execution,
        pair: &mut Pair<Self>,
        rows: [usize; 2],
        until: RunEnd,
    ) -> Result<(RunResult, [usize; 2]), EngineError> {
        let alone = execution.alone();
        let (ran, timed) = self.model.time_together(execution, until, &self.stop, |beside| {
            side_by_side(pair, |operator, place| {
                let shared_machine = Some(beside(place));
                let platform = Self { shared_machine, ..self.clone() };
                operator.run(&alone, &platform, 0..rows[place])
            })
        })?;
        let [first, second] = ran;
        let mut done = timed.rows();
        let done = [0; 2].map(|none| done.next().unwrap_or(none));
        Ok((timed.of(first?.then(second?)), done))
    }

    /// Times the walks of all threads, which add what they find to `found`.
    fn time(
        &self,
        execution: &Execution,
        walk: &(dyn Fn(WalkThread, Recorder) + Sync),
        found: &Mutex<RunResult>,
    ) -> Result<RunResult, EngineError> {
        let take = || found.lock().map(|mut found| std::mem::take(&mut *found));
        if let Some(shared_machine) = &self.shared_machine {
            // It times them.
            shared_machine.walk(|recorder| walk(WalkThread::Main(0), recorder));
            return take().map_err(EngineError::failed);
        }
        let model = &self.model;
        let mains = model.mains(execution)?;
        let (co_runners, loops) = model.co_runners();
        let walked = run_walks(model.preset(), &mains, co_runners, self.stop.flag(), walk)
            .map_err(EngineError::failed)?;
        if self.stop.is_requested() {
            return Err(EngineError::Stopped);
        }
        let found = take().map_err(EngineError::failed)?;
        let probed = found.probed as u64;
        let mut ran = model.timed(found, &mains, &walked);
        let shared = loops.and_then(|loops| loops.shared(measures::count(&mains), &walked));
        let measures = shared.iter().flat_map(|shared| shared.measures(model.preset(), probed));
        ran.measures.extend(measures.filter(|(_, value)| value.is_finite()));
        Ok(ran)
    }
}

/// The error for `results = "whole"`.
pub(super) fn merging_refused() -> EngineError {
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
        let threads = task.execution.threads;
        let starts: Vec<Start<W, T>> = outputs
            .iter_mut()
            .take(threads.mains())
            .enumerate()
            .map(|(thread, output)| {
                let batch = BatchLayout {
                    address: output.as_ptr().addr(),
                    row_bytes: size_of::<T>(),
                    rows: output.len(),
                };
                let (walk, sink) = start(thread, output);
                Start {
                    direct_helper: once(walk.clone()),
                    main: once(MainStart { walk, sink, batch }),
                }
            })
            .collect();
        let found = Mutex::new(RunResult::default());
        let walk = |role: WalkThread, recorder: Recorder| {
            let (WalkThread::Main(thread) | WalkThread::DirectHelper(thread)) = role;
            let (start, rows) = (&starts[thread % starts.len()], share(task, thread));
            let recorder = recorder.with_technique(task.execution.technique);
            match role {
                WalkThread::DirectHelper(_) => {
                    let rows = rows.take_while(|_| !task.platform.stop.is_requested());
                    run_direct_helper(taken(&start.direct_helper), rows, recorder)
                }
                WalkThread::Main(_) => {
                    let probed = rows.left();
                    let answer = run_main(task, taken(&start.main), rows, recorder);
                    let mut found = found.lock().expect("no walk ended during an addition");
                    oracle::add(&mut found.answer, answer);
                    found.probed += probed;
                }
            }
        };
        task.platform.time(task.execution, &walk, &found)
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
        Err(merging_refused())
    }

    fn race(&self, pair: &mut Pair<Self>) -> Result<[usize; 2], EngineError> {
        let all = [0, 1].map(|place: usize| pair[place].probes());
        let (_, done) = self.run_both(&Execution::default(), pair, all, RunEnd::First)?;
        Ok(done)
    }

    fn run_pair(
        &self,
        execution: &Execution,
        pair: &mut Pair<Self>,
        rows: [usize; 2],
    ) -> Result<RunResult, EngineError> {
        Ok(self.run_both(execution, pair, rows, RunEnd::All)?.0)
    }

    /// Shares of two times can't be attributed to either operator.
    fn applies_to_both(measure: &str) -> bool {
        measure.contains("_per_tuple") || measure.starts_with("helper")
    }
}

/// A sink that is full once the run is stopped, so that schedules leave the rest of the rows: the
/// answer is not used then. A work-ahead set doesn't look at it, and is posted to by every row.
struct UntilStopped<'s, S> {
    sink: S,
    stop: &'s Stop,
}

impl<H, S: Sink<H>> Sink<H> for UntilStopped<'_, S> {
    #[inline]
    fn emit(&mut self, row: Row, hit: H) {
        self.sink.emit(row, hit);
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.stop.is_requested() || self.sink.is_full()
    }
}

/// A main thread's walk, over all of its rows.
fn run_main<'o, W: Walk, T>(
    task: &Task<'_, ModelPlatform>,
    start: MainStart<'o, W, T>,
    mut rows: Rows,
    mut recorder: Recorder,
) -> Answer
where
    Materialise<'o, T>: Sink<W::Hit>,
{
    let MainStart { mut walk, sink, batch } = start;
    let technique = task.execution.technique;
    let sink = BatchSink::new(sink, recorder.clone(), batch);
    let mut sink = UntilStopped { sink, stop: &task.platform.stop };
    let direct = matches!(technique, Technique::DirectHelper { .. });
    if direct || task.platform.shared_machine.as_ref().is_some_and(SharedMachine::counts_rows) {
        while rows.left() > 0 {
            let mut some = rows.take_rows(ROWS_A_CHECK);
            let done = some.left() as Row;
            technique::run_over(technique, &mut walk, &mut some, &mut recorder, &mut sink);
            if direct { recorder.report_to_helper(done) } else { recorder.report(done) }
        }
    } else {
        technique::run_over(technique, &mut walk, &mut rows, &mut recorder, &mut sink);
    }
    let sink = sink.sink.finish();
    Answer { rows: sink.written() as u64, checksum: sink.checksum() }
}

/// A main thread's rows, assigned beforehand: which thread is free first is not known while
/// recording.
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

/// The walk of a main thread and its destination.
struct MainStart<'o, W, T> {
    walk: W,
    sink: Materialise<'o, T>,
    batch: BatchLayout,
}

/// The walks of a main thread and its direct helper.
struct Start<'o, W, T> {
    main: TakenOnce<MainStart<'o, W, T>>,
    direct_helper: TakenOnce<W>,
}

/// A value that one thread takes.
type TakenOnce<T> = Mutex<Option<T>>;

fn once<T>(one: T) -> TakenOnce<T> {
    Mutex::new(Some(one))
}

fn taken<T>(once: &TakenOnce<T>) -> T {
    let taken = once.lock().ok().and_then(|mut one| one.take());
    taken.expect("each thread takes its own")
}

/// A direct helper: starts each row to get its references, and loads them (S4.25).
fn run_direct_helper<W: Walk>(
    mut walk: W,
    rows: impl Iterator<Item = Row>,
    mut recorder: Recorder,
) {
    for row in rows {
        let (_, asks) = walk.start(row, &mut recorder);
        recorder.preload(&asks);
        recorder.report(1);
    }
}

impl Model {
    /// The other tasks on the CPUs.
    fn co_runners(&self) -> (CoRunners, Option<Loops>) {
        match &self.sharing {
            None => (CoRunners::None, None),
            Some(sharing) => {
                let (co_runners, loops) = sharing.co_runners(&self.machine, self.working_set_bytes);
                (co_runners, Some(loops))
            }
        }
    }

    /// A run with its time and measures on this machine.
    pub(super) fn timed(&self, ran: RunResult, mains: &[Main], walked: &WalksResult) -> RunResult {
        let seconds = |ticks| workahead_simulator::ticks::cycles(ticks) / (self.preset().ghz * 1e9);
        let threads = walked.run.threads.iter().take(measures::count(mains));
        let busy = threads.map(|thread| thread.counts.ticks).sum();
        RunResult {
            wall_s: seconds(walked.run.ticks),
            cpu_s: seconds(busy),
            measures: measures::of(self.preset(), mains, walked, ran.probed),
            ..ran
        }
    }
}
