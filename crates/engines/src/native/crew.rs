//! The threads that run a cell: pinned, started together, timed, their results counted.

use std::sync::Mutex;

use workahead_machine::clock::{Elapsed, Moment};
use workahead_machine::cpus::CpuSet;
use workahead_machine::machine::Machine;
use workahead_machine::pages::{AllocationError, PageBuffer, Pages};
use workahead_machine::pin;
use workahead_operators::isa::Isa;
use workahead_operators::materialise::Materialise;
use workahead_operators::technique;
use workahead_operators::threads::{Shares, together};
use workahead_operators::walk::{Row, Rows, Sink};
use workahead_operators::work_ahead::{Placement, Preloadable, Served};
use workahead_study::engine::{Answer, EngineError};

use super::how::{How, Threads};
use super::oracle;

/// Bytes of an output batch: written, read by whoever comes next, and written again, it should stay
/// in the second-level cache beside what the operator preloads there (Zhou et al., §4.2).
const BATCH_BYTES: usize = 128 << 10;

/// CPUs, in the order in which threads get them.
pub(super) struct Crew {
    cpus: Vec<usize>,
    allowed: CpuSet,
}

/// What a run gave, before it is checked.
#[derive(Debug, Clone, Default)]
pub(super) struct Ran {
    pub(super) wall_s: f64,
    pub(super) cpu_s: f64,
    /// Rows that were probed.
    pub(super) probed: usize,
    pub(super) answer: Answer,
    /// What the helpers did, together.
    pub(super) helper: Option<Helpers>,
    /// Anything else that was measured, by name with its unit.
    pub(super) measures: Vec<(&'static str, f64)>,
}

/// What helper threads did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Helpers {
    pub(super) entries_loaded: u64,
    pub(super) waits: u64,
    pub(super) cpu_s: f64,
}

/// One main thread's part.
struct Part {
    answer: Answer,
    probed: usize,
    served: Option<Served>,
}

impl Crew {
    /// The CPUs this process may use, best first.
    pub(super) fn of(machine: &Machine) -> Result<Self, EngineError> {
        let allowed = machine.allowed_cpus().clone();
        let cpus = machine.cpus_for(allowed.len()).map_err(failed)?;
        Ok(Self { cpus, allowed })
    }

    /// Buffers for the outputs of so many threads.
    pub(super) fn outputs<T: bytemuck::Zeroable>(
        threads: usize,
    ) -> Result<Vec<PageBuffer<T>>, AllocationError> {
        let rows = BATCH_BYTES / size_of::<T>();
        (0..threads).map(|_| PageBuffer::zeroed(rows, Pages::Huge)).collect()
    }

    /// CPUs of the main threads; more threads than CPUs take turns on them.
    fn mains(&self, threads: usize) -> Vec<usize> {
        self.cpus.iter().copied().cycle().take(threads).collect()
    }

    /// Where the helper of a main thread runs: on the CPUs that come after those of the mains.
    fn placement(&self, main: usize, mains: usize) -> Placement<'_> {
        Placement {
            helper_cpu: self.cpus[(mains + main) % self.cpus.len()],
            allowed: &self.allowed,
        }
    }

    /// Runs all rows of a walk, of which each thread gets its own from `walk_of`.
    pub(super) fn run<W, T>(
        &self,
        isa: impl Isa,
        how: &How,
        rows: usize,
        outputs: &mut [PageBuffer<T>],
        walk_of: impl Fn(usize) -> W + Sync,
    ) -> Result<Ran, EngineError>
    where
        W: Preloadable + Clone + Send,
        T: Send,
        for<'b> Materialise<'b, T>: Sink<W::Hit>,
    {
        let mains = how.threads.mains();
        assert!(outputs.len() >= mains, "an output for every thread");
        let all = rows as Row;
        let outputs: Vec<Mutex<&mut [T]>> =
            outputs.iter_mut().map(|output| Mutex::new(&mut output[..])).collect();
        let part = |thread: usize, shares: &mut dyn Iterator<Item = Rows>| {
            let mut output = outputs[thread].lock().expect("one thread per output");
            let mut sink = Materialise::new(&mut output);
            let mut walk = walk_of(thread);
            let placement = self.placement(thread, mains);
            let (mut probed, mut served) = (0, None);
            for mut share in shares {
                probed += share.left();
                served = technique::run(
                    how.technique,
                    isa,
                    &mut walk,
                    &mut share,
                    placement,
                    &mut sink,
                )?;
            }
            let answer = Answer { rows: sink.written() as u64, checksum: sink.checksum() };
            Ok(Part { answer, probed, served })
        };
        let whole = || std::iter::once(Rows::range(0..all));
        match how.threads {
            Threads::One => {
                let _pinned = pin::to(self.cpus[0], &self.allowed).map_err(failed)?;
                let start = Moment::now();
                let part = part(0, &mut whole());
                Ran::sum([(part, start.elapsed())])
            }
            Threads::Independent(threads) => {
                let cpus = self.mains(threads);
                let ran = together(&cpus, &self.allowed, |thread| part(thread, &mut whole()));
                Ran::sum(ran.map_err(failed)?.into_iter().map(|ran| (ran.result, ran.elapsed)))
            }
            Threads::Bi { threads, split } => {
                let cpus = self.mains(threads);
                let shares = Shares::new(split, all, threads as u32);
                let ran = together(&cpus, &self.allowed, |thread| {
                    part(thread, &mut shares.of(thread as u32))
                });
                Ran::sum(ran.map_err(failed)?.into_iter().map(|ran| (ran.result, ran.elapsed)))
            }
        }
    }
}

impl Ran {
    /// All threads: the slowest one's time, everyone's processor time.
    fn sum(
        parts: impl IntoIterator<Item = (Result<Part, workahead_machine::Error>, Elapsed)>,
    ) -> Result<Self, EngineError> {
        let mut sum = Self::default();
        for (part, elapsed) in parts {
            let part = part.map_err(failed)?;
            sum.wall_s = sum.wall_s.max(elapsed.wall_s);
            sum.cpu_s += elapsed.cpu_s;
            sum.probed += part.probed;
            oracle::add(&mut sum.answer, part.answer);
            if let Some(served) = part.served {
                let helper = sum.helper.get_or_insert_default();
                helper.entries_loaded += served.report.entries_loaded;
                helper.waits += served.report.waits;
                helper.cpu_s += served.elapsed.cpu_s;
                sum.cpu_s += served.elapsed.cpu_s;
            }
        }
        Ok(sum)
    }
}

/// An error of another crate as this engine's.
pub(super) fn failed(error: impl std::fmt::Display) -> EngineError {
    EngineError::Failed(error.to_string())
}
