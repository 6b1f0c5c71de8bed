//! The threads that run a cell: pinned, started together, timed, their results counted.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Mutex;

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
use workahead_walks::work_ahead::{Placement, Preloadable, Served};

use super::how::{How, Threads};
use super::modelled::{Beside, Model};
use super::operator::Task;
use super::oracle;
use crate::watcher::by_role::Roles;

/// Bytes of an output batch: written, read by whoever comes next, and written again, it should stay
/// in the second-level cache beside what the operator preloads there (Zhou et al., §4.2).
pub(super) const BATCH_BYTES: usize = 128 << 10;

/// CPUs, in the order in which threads get them.
#[derive(Debug, Clone)]
pub(super) struct Crew {
    cpus: Vec<usize>,
    allowed: CpuSet,
    /// The machine that its threads exist on, if that is not this one.
    pub(super) model: Option<Model>,
    /// Whom they share that machine with, if anyone.
    pub(super) beside: Option<Beside>,
}

/// What a run gave, before it is checked.
#[derive(Debug, Clone, Default)]
pub(super) struct Ran {
    pub(super) wall_s: f64,
    pub(super) cpu_s: f64,
    /// Rows that were probed.
    pub(super) probed: usize,
    pub(super) answer: Answer,
    /// Anything else that was measured, by name with its unit.
    pub(super) measures: Vec<(&'static str, f64)>,
}

/// One main thread's part.
pub(super) struct Part {
    pub(super) answer: Answer,
    pub(super) probed: usize,
    pub(super) served: Option<Served>,
}

impl Crew {
    /// The CPUs this process may use, best first.
    pub(super) fn of(machine: &Machine) -> Result<Self, EngineError> {
        let allowed = machine.allowed_cpus().clone();
        let cpus = machine.cpus_for(allowed.len()).map_err(failed)?;
        Ok(Self { cpus, allowed, model: None, beside: None })
    }

    /// The same on a modelled machine.
    pub(super) fn on(mut self, model: Model) -> Self {
        self.model = Some(model);
        self
    }

    /// The same on a modelled machine that another operator runs on, too.
    pub(super) fn beside(&self, beside: Beside) -> Self {
        Self { beside: Some(beside), ..self.clone() }
    }

    /// The same CPUs, handed out from the `first` one on.
    pub(super) fn from(&self, first: usize) -> Self {
        let mut crew = self.clone();
        let len = crew.cpus.len();
        crew.cpus.rotate_left(first % len);
        crew
    }

    /// Pins the calling thread to the first CPU.
    pub(super) fn pin(&self) -> Result<pin::Pinned, EngineError> {
        pin::to(self.cpus[0], &self.allowed).map_err(failed)
    }

    /// Where the helper of a main thread runs: on the CPUs that come after those of the mains.
    pub(super) fn placement(&self, main: usize, mains: usize) -> Placement<'_> {
        Placement {
            helper_cpu: self.cpus[(mains + main) % self.cpus.len()],
            allowed: &self.allowed,
        }
    }

    /// The CPUs of main threads and of helpers. A CPU that has both tells nothing of either.
    pub(super) fn roles(&self, how: &How) -> Roles {
        let mains = how.threads.mains();
        let number = |thread: usize| u32::try_from(self.cpus[thread % self.cpus.len()]).ok();
        let of = |threads: Range<usize>| threads.filter_map(number).collect::<BTreeSet<u32>>();
        let helpers = if how.technique.has_helper() { mains } else { 0 };
        let (main, helper) = (of(0..mains), of(mains..mains + helpers));
        let both: BTreeSet<u32> = main.intersection(&helper).copied().collect();
        Roles { main: &main - &both, helper: &helper - &both }
    }

    /// Runs every main thread's part over its shares of the rows.
    pub(super) fn parts(
        &self,
        threads: Threads,
        rows: Range<usize>,
        part: impl Fn(usize, &mut dyn Iterator<Item = Rows>) -> Result<Part, EngineError> + Sync,
    ) -> Result<Ran, EngineError> {
        let all = Rows::range(rows.start as Row..rows.end as Row);
        let mut whole = std::iter::once(all);
        if threads == Threads::One {
            let _pinned = self.pin()?;
            let start = Moment::now();
            let part = part(0, &mut whole);
            return Ran::sum([(part, start.elapsed())]);
        }
        // More threads than CPUs take turns on them.
        let cpus: Vec<usize> = self.cpus.iter().copied().cycle().take(threads.mains()).collect();
        let ran = match threads {
            Threads::Bi { threads, split } => {
                assert_eq!(rows.start, 0, "rows are dealt out from the first");
                let shares = Shares::new(split, rows.end as Row, threads as u32);
                together(&cpus, &self.allowed, |thread| part(thread, &mut shares.of(thread as u32)))
            }
            Threads::Independent(_) | Threads::One => {
                together(&cpus, &self.allowed, |thread| part(thread, &mut std::iter::once(all)))
            }
        };
        Ran::sum(ran.map_err(failed)?.into_iter().map(|ran| (ran.result, ran.elapsed)))
    }
}

impl Task<'_> {
    /// Runs a walk, of which each thread gets its own from `walk_of`, the result going to batches.
    pub(super) fn run<W, T>(
        &self,
        isa: impl Isa,
        outputs: &mut [PageBuffer<T>],
        walk_of: impl Fn(usize) -> W + Sync,
    ) -> Result<Ran, EngineError>
    where
        W: Preloadable + Clone + Send,
        T: Send,
        for<'o> Materialise<'o, T>: Sink<W::Hit>,
    {
        self.run_into(isa, outputs, |thread, output| (walk_of(thread), Materialise::new(output)))
    }

    /// The same for walks that know where their output lies: `start` gives walk and sink.
    pub(super) fn run_into<'o, W, T>(
        &self,
        isa: impl Isa,
        outputs: &'o mut [PageBuffer<T>],
        start: impl Fn(usize, &'o mut [T]) -> (W, Materialise<'o, T>) + Sync,
    ) -> Result<Ran, EngineError>
    where
        W: Preloadable + Clone + Send,
        T: Send,
        Materialise<'o, T>: Sink<W::Hit>,
    {
        if let Some(model) = &self.crew.model {
            return self.run_modelled(model, outputs, start);
        }
        let outputs: Vec<_> =
            outputs.iter_mut().map(|output| Mutex::new(Some(&mut output[..]))).collect();
        self.crew.parts(self.how.threads, self.rows.clone(), |thread, shares| {
            let output = outputs[thread].lock().ok().and_then(|mut output| output.take());
            let (mut walk, mut sink) = start(thread, output.expect("an output for every thread"));
            let (probed, served) = self.drive((isa, thread), &mut walk, shares, &mut sink)?;
            let answer = Answer { rows: sink.written() as u64, checksum: sink.checksum() };
            Ok(Part { answer, probed, served })
        })
    }

    /// A main thread's rows, share by share: how many, and what its helper did.
    pub(super) fn drive<W: Preloadable + Clone + Send>(
        &self,
        (isa, thread): (impl Isa, usize),
        walk: &mut W,
        shares: &mut dyn Iterator<Item = Rows>,
        sink: &mut impl Sink<W::Hit>,
    ) -> Result<(usize, Option<Served>), EngineError> {
        let How { technique, threads, .. } = *self.how;
        let placement = self.crew.placement(thread, threads.mains());
        let (mut probed, mut served) = (0, None);
        for mut rows in shares {
            probed += rows.left();
            served =
                technique::run(technique, isa, walk, &mut rows, placement, sink).map_err(failed)?;
        }
        Ok((probed, served))
    }
}

impl Ran {
    /// This, and after it another.
    pub(super) fn then(mut self, after: Self) -> Self {
        let share = after.probed as f64 / (self.probed + after.probed).max(1) as f64;
        self.wall_s += after.wall_s;
        self.cpu_s += after.cpu_s;
        self.probed += after.probed;
        oracle::add(&mut self.answer, after.answer);
        for (name, value) in after.measures {
            match self.measures.iter_mut().find(|measure| measure.0 == name) {
                // Of each row: of the mean row.
                Some((_, mean)) if name.contains("_per_tuple") => *mean += share * (value - *mean),
                Some((_, sum)) => *sum += value,
                None => self.measures.push((name, value)),
            }
        }
        self
    }

    /// All threads: the slowest one's time, everyone's processor time.
    fn sum(
        parts: impl IntoIterator<Item = (Result<Part, EngineError>, Elapsed)>,
    ) -> Result<Self, EngineError> {
        let mut sum = Self::default();
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
}

/// An error of another crate as this engine's.
pub(super) fn failed(error: impl std::fmt::Display) -> EngineError {
    EngineError::Failed(error.to_string())
}
