//! The threads of a cell: pinned, started together, timed, their results summed.
//!
//! ```text
//! two cores of two siblings   0,2 and 1,3       two mains   a main and its helper   two of each
//!   siblings-first            0 2 1 3           0 2         0 2                     0 2, 1 3
//!   cores-first               0 1 2 3           0 1         0 1                     0 2, 1 3
//! ```
//!
//! Threads of a pair are what the paper measures on one core (Zhou et al. 2005, §1: "different
//! logical processors"), so that siblings first means the two threads of a pair.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;
use workahead_machine::clock::{ElapsedTime, Moment};
use workahead_machine::control::placement::Placement as Policy;
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
    /// Whether CPUs that follow each other are siblings.
    paired: bool,
}

/// The CPUs of main threads and of their helpers, one each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seats {
    pub(crate) mains: Vec<usize>,
    pub(crate) helpers: Vec<usize>,
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
    /// The CPUs allowed to this process, in the order of a placement. Siblings first is cores first
    /// where no two CPUs are seen to share a core; [`limitation`](Self::limitation) says so.
    ///
    /// # Errors
    /// If the machine lacks what any other placement needs.
    pub(crate) fn of(machine: &Machine, placement: Policy) -> Result<Self, EngineError> {
        let allowed = machine.allowed_cpus().clone();
        let has_siblings = Policy::SiblingsFirst.order(machine).is_ok();
        let placement = match placement {
            Policy::SiblingsFirst if !has_siblings => Policy::CoresFirst,
            other => other,
        };
        let paired = placement == Policy::SiblingsFirst;
        let cpus = placement.order(machine).map_err(|lacks| EngineError::failed(lacks.0))?;
        Ok(Self { cpus, allowed, paired })
    }

    /// The limitation of a cell on this machine: not of siblings, where the placement wants them.
    pub(crate) fn limitation(machine: &Machine, execution: &Execution) -> Option<String> {
        let is_of_siblings =
            execution.placement == Policy::SiblingsFirst && execution.threads() > 1;
        let lacks = Policy::SiblingsFirst.order(machine).err().filter(|_| is_of_siblings)?;
        Some(format!("its threads run on cores of their own: {}", lacks.0))
    }

    /// Where the threads of a cell go.
    pub(crate) fn seats(&self, execution: &Execution) -> Seats {
        let mains = execution.threads.mains();
        let helpers = if execution.technique.has_helper() { mains } else { 0 };
        // More threads than CPUs take turns.
        let cpu = |at: usize| self.cpus[at % self.cpus.len()];
        // A helper is its main thread's sibling, or on a core behind those of all main threads.
        match self.paired && helpers > 0 {
            true => Seats {
                mains: (0..mains).map(|main| cpu(2 * main)).collect(),
                helpers: (0..helpers).map(|main| cpu(2 * main + 1)).collect(),
            },
            false => Seats {
                mains: (0..mains).map(cpu).collect(),
                helpers: (mains..mains + helpers).map(cpu).collect(),
            },
        }
    }

    /// The same CPUs from the `first` one on.
    pub(crate) fn from(&self, first: usize) -> Self {
        let mut group = self.clone();
        let len = group.cpus.len();
        group.cpus.rotate_left(first % len);
        group
    }

    /// Pins the calling thread to the first CPU.
    pub(crate) fn pin(&self) -> Result<pin::PinGuard, EngineError> {
        pin::to(self.cpus[0], &self.allowed).map_err(EngineError::failed)
    }

    /// The CPUs of main threads and of helpers. Counts of a CPU with both can't be attributed.
    pub(crate) fn roles(&self, execution: &Execution) -> Roles {
        let seats = self.seats(execution);
        let of = |cpus: &[usize]| -> BTreeSet<u32> {
            cpus.iter().filter_map(|cpu| u32::try_from(*cpu).ok()).collect()
        };
        let (main, helper) = (of(&seats.mains), of(&seats.helpers));
        let both: BTreeSet<u32> = main.intersection(&helper).copied().collect();
        Roles { main: &main - &both, helper: &helper - &both }
    }

    /// The CPU after the first; the first again on a machine of one.
    pub(crate) fn second(&self) -> usize {
        self.cpus[1 % self.cpus.len()]
    }

    /// Where a helper runs.
    pub(crate) fn beside(&self, helper_cpu: usize) -> Placement<'_> {
        Placement { helper_cpu, allowed: &self.allowed }
    }

    /// Runs all main threads over their shares of the rows.
    pub(crate) fn parts(
        &self,
        execution: &Execution,
        rows: Range<usize>,
        run: &(dyn Fn(usize, &mut dyn Iterator<Item = Rows>) -> PartResult + Sync),
    ) -> Result<RunResult, EngineError> {
        let all = Rows::range(rows.start as Row..rows.end as Row);
        let mut whole = std::iter::once(all);
        if execution.threads == Threads::One {
            let _pinned = self.pin()?;
            let start = Moment::now();
            let part = run(0, &mut whole);
            return sum([(part, start.elapsed())]);
        }
        let cpus = self.seats(execution).mains;
        let ran = match execution.threads {
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
        task.platform.parts(task.execution, task.rows.clone(), &|thread, shares| {
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
        // Each has CPUs of its own where there are enough.
        let enough = self.cpus.len() >= 2 * execution.threads();
        let apart = if enough { execution.threads() } else { 1 };
        let start = Moment::now();
        let ran = side_by_side(pair, |operator, place| {
            operator.run(&execution, &self.from(place * apart), 0..rows[place])
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
        let technique = self.execution.technique;
        let seats = self.platform.seats(self.execution);
        // Without a helper nobody is placed.
        let helper_cpu = seats.helpers.get(thread).unwrap_or(&seats.mains[thread]);
        let placement = self.platform.beside(*helper_cpu);
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
    parts: impl IntoIterator<Item = (Result<ThreadResult, EngineError>, ElapsedTime)>,
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

#[cfg(test)]
mod tests;
