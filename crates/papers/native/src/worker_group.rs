//! The threads of a cell: pinned, started together, timed, their results summed.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;
use workahead_machine::clock::{Elapsed, Moment};
use workahead_machine::cpus::CpuSet;
use workahead_machine::machine::Machine;
use workahead_machine::pages::PageBuffer;
use workahead_machine::pin;
use workahead_study::engine::{Answer, EngineError};
use workahead_walks::isa::Isa;
use workahead_walks::materialise::Materialise;
use workahead_walks::technique;
use workahead_walks::threads::{Shares, together};
use workahead_walks::walk::{Row, Rows, Sink};
use workahead_walks::work_ahead::{HelperRun, Placement, Preloadable};

use crate::by_role::Roles;
use crate::execution::{Execution, Threads};
use crate::operator::{Pair, Platform, Task, side_by_side};
use crate::run::RunResult;
use crate::{merge, oracle};

/// Rows between two checks of the other operator in a race.
const ROWS_PER_CHECK: usize = 64 << 10;

/// CPUs in the order of their assignment to threads.
#[derive(Debug, Clone)]
pub(crate) struct WorkerGroup {
    cpus: Vec<usize>,
    allowed: CpuSet,
}

/// The result of one main thread, or the error that ended it.
type PartResult = Result<ThreadResult, EngineError>;

/// The result of one main thread.
pub(crate) struct ThreadResult {
    pub(crate) answer: Answer,
    pub(crate) probed: usize,
    pub(crate) served: Option<HelperRun>,
}

impl WorkerGroup {
    /// The CPUs allowed to this process, best first.
    pub(crate) fn of(machine: &Machine) -> Result<Self, EngineError> {
        let allowed = machine.allowed_cpus().clone();
        let cpus = machine.cpus_for(allowed.len()).map_err(EngineError::failed)?;
        Ok(Self { cpus, allowed })
    }

    /// The same CPUs from the `first` one on.
    pub(crate) fn from(&self, first: usize) -> Self {
        let mut group = self.clone();
        let len = group.cpus.len();
        group.cpus.rotate_left(first % len);
        group
    }

    /// Pins the calling thread to the first CPU.
    pub(crate) fn pin(&self) -> Result<pin::Pinned, EngineError> {
        pin::to(self.cpus[0], &self.allowed).map_err(EngineError::failed)
    }

    /// Placement of a main thread's helper: on the CPUs after those of the main threads.
    pub(crate) fn placement(&self, main: usize, mains: usize) -> Placement<'_> {
        Placement {
            helper_cpu: self.cpus[(mains + main) % self.cpus.len()],
            allowed: &self.allowed,
        }
    }

    /// The CPUs of main threads and of helpers. Counts of a CPU with both can't be attributed.
    pub(crate) fn roles(&self, execution: &Execution) -> Roles {
        let mains = execution.threads.mains();
        let number = |thread: usize| u32::try_from(self.cpus[thread % self.cpus.len()]).ok();
        let of = |threads: Range<usize>| threads.filter_map(number).collect::<BTreeSet<u32>>();
        let helpers = if execution.technique.has_helper() { mains } else { 0 };
        let (main, helper) = (of(0..mains), of(mains..mains + helpers));
        let both: BTreeSet<u32> = main.intersection(&helper).copied().collect();
        Roles { main: &main - &both, helper: &helper - &both }
    }

    /// Runs all main threads over their shares of the rows.
    pub(crate) fn parts(
        &self,
        threads: Threads,
        rows: Range<usize>,
        run: &(dyn Fn(usize, &mut dyn Iterator<Item = Rows>) -> PartResult + Sync),
    ) -> Result<RunResult, EngineError> {
        let all = Rows::range(rows.start as Row..rows.end as Row);
        let mut whole = std::iter::once(all);
        if threads == Threads::One {
            let _pinned = self.pin()?;
            let start = Moment::now();
            let part = run(0, &mut whole);
            return sum([(part, start.elapsed())]);
        }
        // More threads than CPUs take turns.
        let cpus: Vec<usize> = self.cpus.iter().copied().cycle().take(threads.mains()).collect();
        let ran = match threads {
            Threads::Bi { threads, split } => {
                assert_eq!(rows.start, 0, "rows are dealt out from the first");
                let shares = Shares::new(split, rows.end as Row, threads as u32);
                together(&cpus, &self.allowed, |thread| run(thread, &mut shares.of(thread as u32)))
            }
            Threads::Independent(_) | Threads::One => {
                together(&cpus, &self.allowed, |thread| run(thread, &mut std::iter::once(all)))
            }
        };
        sum(ran.map_err(EngineError::failed)?.into_iter().map(|ran| (ran.result, ran.elapsed)))
    }
}

impl Platform for WorkerGroup {
    /// There is only this machine.
    type Machine = ();

    fn machine(&self) {}

    fn run<'o, W, T>(
        task: &Task<'_, Self>,
        isa: impl Isa,
        outputs: &'o mut [PageBuffer<T>],
        start: impl Fn(usize, &'o mut [T]) -> (W, Materialise<'o, T>) + Sync,
    ) -> Result<RunResult, EngineError>
    where
        W: Preloadable + Clone + Send,
        T: Send,
        Materialise<'o, T>: Sink<W::Hit>,
    {
        let outputs: Vec<_> =
            outputs.iter_mut().map(|output| Mutex::new(Some(&mut output[..]))).collect();
        task.platform.parts(task.execution.threads, task.rows.clone(), &|thread, shares| {
            let output = outputs[thread].lock().ok().and_then(|mut output| output.take());
            let (mut walk, mut sink) = start(thread, output.expect("an output for every thread"));
            let (probed, served) = task.drive(isa, thread, &mut walk, shares, &mut sink)?;
            let answer = Answer { rows: sink.written() as u64, checksum: sink.checksum() };
            Ok(ThreadResult { answer, probed, served })
        })
    }

    fn run_whole<W, T>(
        task: &Task<'_, Self>,
        isa: impl Isa,
        rows_out: usize,
        walk_of: impl Fn(usize) -> W + Sync,
    ) -> Result<RunResult, EngineError>
    where
        W: Preloadable + Clone + Send,
        T: Pod + Send,
        for<'o> Materialise<'o, T>: Sink<W::Hit>,
    {
        merge::run(task, isa, rows_out, walk_of)
    }

    fn race(&self, pair: &mut Pair<Self>) -> Result<[usize; 2], EngineError> {
        let execution = Execution::default();
        let stop = AtomicBool::new(false);
        let done = side_by_side(pair, |operator, place| {
            let (group, rows) = (self.from(place), operator.probes());
            let mut done = 0;
            while done < rows && !stop.load(Ordering::Relaxed) {
                let next = rows.min(done + ROWS_PER_CHECK);
                operator.run(&execution, &group, done..next)?;
                done = next;
            }
            stop.store(true, Ordering::Relaxed);
            Ok(done)
        });
        let [first, second] = done;
        Ok([first?, second?])
    }

    fn run_pair(
        &self,
        execution: &Execution,
        pair: &mut Pair<Self>,
        rows: [usize; 2],
    ) -> Result<RunResult, EngineError> {
        let execution = execution.alone();
        let start = Moment::now();
        let ran = side_by_side(pair, |operator, place| {
            operator.run(&execution, &self.from(place), 0..rows[place])
        });
        let wall_s = start.wall_s();
        let [first, second] = ran;
        Ok(RunResult { wall_s, ..first?.then(second?) })
    }

    fn applies_to_both(_: &str) -> bool {
        true
    }
}

impl Task<'_, WorkerGroup> {
    /// Runs a main thread's rows, share by share; returns their number, and the work of its helper.
    pub(crate) fn drive<W: Preloadable + Clone + Send>(
        &self,
        isa: impl Isa,
        thread: usize,
        walk: &mut W,
        shares: &mut dyn Iterator<Item = Rows>,
        sink: &mut impl Sink<W::Hit>,
    ) -> Result<(usize, Option<HelperRun>), EngineError> {
        let Execution { technique, threads, .. } = *self.execution;
        let placement = self.platform.placement(thread, threads.mains());
        let (mut probed, mut served) = (0, None);
        for mut rows in shares {
            probed += rows.left();
            served = technique::run(technique, isa, walk, &mut rows, placement, sink)
                .map_err(EngineError::failed)?;
        }
        Ok((probed, served))
    }
}

/// The sum over threads, with the wall time of the slowest.
fn sum(
    parts: impl IntoIterator<Item = (Result<ThreadResult, EngineError>, Elapsed)>,
) -> Result<RunResult, EngineError> {
    let mut sum = RunResult::default();
    let (mut entries, mut waits, mut helper_cpu_s, mut helped) = (0, 0, 0.0, false);
    for (part, elapsed) in parts {
        let part = part?;
        sum.wall_s = sum.wall_s.max(elapsed.wall_s);
        sum.cpu_s += elapsed.cpu_s;
        sum.probed += part.probed;
        oracle::add(&mut sum.answer, part.answer);
        if let Some(served) = part.served {
            helped = true;
            entries += served.report.entries_loaded;
            waits += served.report.waits;
            helper_cpu_s += served.elapsed.cpu_s;
        }
    }
    if helped {
        sum.cpu_s += helper_cpu_s;
        sum.measures.push(("helper_cpu_s", helper_cpu_s));
        sum.measures.push(("helper_entries", entries as f64));
        sum.measures.push(("helper_waits", waits as f64));
    }
    Ok(sum)
}
