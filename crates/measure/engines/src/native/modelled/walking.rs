//! An operator's walks, recorded for the model as they run.

use std::sync::Mutex;

use workahead_machine::pages::PageBuffer;
use workahead_simulator::walks::{Among, Costs, Main, Part, Recorder, Walked, Written, run_walks};
use workahead_study::engine::{Answer, EngineError};
use workahead_walks::materialise::Materialise;
use workahead_walks::technique::{self, Technique};
use workahead_walks::walk::{Row, Rows, Sink, Walk};
use workahead_walks::work_ahead::ROWS_A_CHECK;

use super::{Beside, Model, measures};
use crate::modelled::queues::Loops;
use crate::native::crew::{Ran, failed};
use crate::native::how::Threads;
use crate::native::operator::Task;
use crate::native::oracle;

impl Task<'_> {
    /// Runs a walk on a modelled machine: `start` gives each main thread its walk and its sink.
    pub(in crate::native) fn run_modelled<'o, W, T>(
        &self,
        model: &Model,
        outputs: &'o mut [PageBuffer<T>],
        start: impl Fn(usize, &'o mut [T]) -> (W, Materialise<'o, T>) + Sync,
    ) -> Result<Ran, EngineError>
    where
        W: Walk + Clone + Send,
        T: Send,
        Materialise<'o, T>: Sink<W::Hit>,
    {
        let threads = self.how.threads;
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
            let (start, rows) = (&starts[thread % starts.len()], self.share(threads, thread));
            let recorder = recorder.told(self.how.technique);
            match part {
                Part::Ahead(_) => run_ahead(taken(&start.ahead), rows, recorder),
                Part::Main(_) => {
                    let probed = rows.left();
                    let answer = self.run_main(taken(&start.main), rows, recorder);
                    let mut found = found.lock().expect("no walk ended during an addition");
                    oracle::add(&mut found.0, answer);
                    found.1 += probed;
                }
            }
        };
        let walked = match &self.crew.beside {
            Some(beside) => {
                beside.walk(|recorder| walk(Part::Main(0), recorder));
                None
            }
            None => {
                let mains = model.mains(self.how)?;
                let (among, loops) = model.among();
                let costs = Costs::default();
                let walked = run_walks(&model.preset, (&mains, costs), among, walk);
                Some((mains, walked.map_err(failed)?, loops))
            }
        };
        let (answer, probed) = found.into_inner().map_err(failed)?;
        let ran = Ran { answer, probed, ..Ran::default() };
        Ok(match walked {
            Some((mains, walked, loops)) => {
                let mut ran = model.timed(ran, &mains, &walked);
                let shared = loops.and_then(|loops| loops.shared(measures::count(&mains), &walked));
                let said =
                    shared.iter().flat_map(|shared| shared.measures(&model.preset, probed as u64));
                ran.measures.extend(said.filter(|(_, value)| value.is_finite()));
                ran
            }
            // It is timed where all of them meet.
            None => ran,
        })
    }

    /// A main thread's walk, over all of its rows.
    fn run_main<'o, W: Walk, T>(
        &self,
        (mut walk, sink, batch): (W, Materialise<'o, T>, Batch),
        mut rows: Rows,
        mut recorder: Recorder,
    ) -> Answer
    where
        Materialise<'o, T>: Sink<W::Hit>,
    {
        let technique = self.how.technique;
        let mut sink = Written::new(sink, recorder.clone(), batch);
        let direct = matches!(technique, Technique::DirectHelper { .. });
        if direct || self.crew.beside.as_ref().is_some_and(Beside::counts_rows) {
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
                let (among, loops) = sharing.among(self, self.working_set_bytes);
                (among, Some(loops))
            }
        }
    }

    /// What a run took on this machine.
    pub(super) fn timed(&self, ran: Ran, mains: &[Main], walked: &Walked) -> Ran {
        let seconds = |ticks| workahead_simulator::ticks::cycles(ticks) / (self.preset.ghz * 1e9);
        let threads = walked.ran.threads.iter().take(measures::count(mains));
        let busy = threads.map(|(counts, _)| counts.ticks).sum();
        Ran {
            wall_s: seconds(walked.ran.ticks),
            cpu_s: seconds(busy),
            measures: measures::of(&self.preset, mains, walked, ran.probed),
            ..ran
        }
    }
}
