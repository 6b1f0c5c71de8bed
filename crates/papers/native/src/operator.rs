//! Operators (data, copies, outputs, oracle), and the platform they run on.

pub(crate) mod streams;

use std::cell::Cell;
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_study::engine::{Answer, EngineError};
use workahead_walks::isa::Isa;
use workahead_walks::materialise::Materialise;
use workahead_walks::walk::Sink;
use workahead_walks::work_ahead::Preloadable;

use crate::execution::Execution;
use crate::run::RunResult;

/// Bytes of an output batch. It is written, read by the next operator, and written again, so it
/// should fit the second-level cache with the operator's preloaded lines (Zhou et al., §4.2).
const BATCH_BYTES: usize = 128 << 10;

/// A machine that operators run on: this one, or a modelled one.
///
/// An operator is written once for all platforms, which decide the distribution of rows to threads
/// and the cost of a walk's steps.
pub trait Platform: Sized + Send + Sync + 'static {
    /// Identity of a machine: results of one don't hold for another.
    type Machine: Clone + PartialEq + Send;

    /// The machine.
    fn machine(&self) -> Self::Machine;

    /// Runs a walk: `start` gives each main thread its walk and its sink.
    ///
    /// # Errors
    /// If threads can't be placed, or the platform doesn't support the technique.
    fn run<'o, W, T>(
        task: &Task<'_, Self>,
        isa: impl Isa,
        outputs: &'o mut [PageBuffer<T>],
        start: impl Fn(usize, &'o mut [T]) -> (W, Materialise<'o, T>) + Sync,
    ) -> Result<RunResult, EngineError>
    where
        W: Preloadable + Clone + Send,
        T: Send,
        Materialise<'o, T>: Sink<W::Hit>;

    /// Runs a walk with whole outputs, `rows_out` rows altogether, then merges and orders them.
    ///
    /// # Errors
    /// As [`run`](Self::run), or if merging is not modelled.
    fn run_whole<W, T>(
        task: &Task<'_, Self>,
        isa: impl Isa,
        rows_out: usize,
        walk_of: impl Fn(usize) -> W + Sync,
    ) -> Result<RunResult, EngineError>
    where
        W: Preloadable + Clone + Send,
        T: Pod + Send,
        for<'o> Materialise<'o, T>: Sink<W::Hit>;

    /// Runs two operators side by side until one has finished; returns the rows that each has done
    /// by then.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    fn race(&self, pair: &mut Pair<Self>) -> Result<[usize; 2], EngineError>;

    /// Runs `rows` of two operators side by side, a thread each.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    fn run_pair(
        &self,
        execution: &Execution,
        pair: &mut Pair<Self>,
        rows: [usize; 2],
    ) -> Result<RunResult, EngineError>;

    /// Whether a measure of two operators, run one after the other, applies to both together.
    fn applies_to_both(measure: &str) -> bool;
}

/// Two operators that run side by side.
pub type Pair<M> = [Box<dyn Operator<M>>; 2];

/// Runs a task on each operator, in a thread each.
pub fn side_by_side<M: Platform, R: Send>(
    pair: &mut Pair<M>,
    task: impl Fn(&mut dyn Operator<M>, usize) -> Result<R, EngineError> + Sync,
) -> [Result<R, EngineError>; 2] {
    let [first, second] = pair;
    let task = &task;
    std::thread::scope(|scope| {
        let first = scope.spawn(move || task(first.as_mut(), 0));
        let second = task(second.as_mut(), 1);
        let first = first.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        [first, second]
    })
}

/// An operator with its data.
pub trait Operator<M: Platform>: Send {
    /// Allocates the copies of the data and the outputs.
    fn prepare(&mut self, execution: &Execution, platform: &M) -> Result<(), EngineError>;

    /// Number of probing rows of each copy.
    fn probes(&self) -> usize;

    /// The answer of the first `rows` rows of one copy, by an oracle that shares no code with the
    /// operator.
    fn answer(&self, rows: usize) -> Answer;

    /// Bytes of the probed structure.
    fn table_bytes(&self) -> usize;

    /// The lines that a probe accesses at random.
    fn touches(&self) -> Vec<Touch>;

    /// Page size of all its memory.
    fn pages(&self) -> Pages;

    /// Whether independent threads share one amount of work, each with an operator of its own,
    /// instead of doing it once each.
    fn shares_work(&self) -> bool {
        false
    }

    /// Runs a part of the rows.
    fn run(
        &mut self,
        execution: &Execution,
        platform: &M,
        rows: Range<usize>,
    ) -> Result<RunResult, EngineError>;
}

/// The operator-specific part of an operator; [`PreparedOperator`] has the common part.
pub(crate) trait Data: Send + Sized {
    /// The data of an independent thread.
    type Copy: Send + Sync;
    /// A row of the output.
    type Out: Zeroable + Copy + Send + Sync;

    fn copy(&self) -> Result<Self::Copy, EngineError>;
    fn probes(&self) -> usize;
    fn answer(&self, rows: usize) -> Answer;
    fn table_bytes(copy: &Self::Copy) -> usize;
    /// Accessed lines, with `hits` result rows per probing row.
    fn touches(&self, copy: &Self::Copy, hits: f64) -> Vec<Touch>;
    fn pages(&self) -> Pages;

    /// Rows of an output; by default a batch that stays in cache.
    fn output_rows(&self) -> usize {
        BATCH_BYTES / size_of::<Self::Out>()
    }

    fn run<M: Platform>(
        &self,
        copies: &[Self::Copy],
        outputs: &mut [PageBuffer<Self::Out>],
        task: Task<'_, M>,
    ) -> Result<RunResult, EngineError>;
}

/// Rows of a run, with its execution and machine.
pub struct Task<'t, M> {
    /// Technique and threads.
    pub execution: &'t Execution,
    /// The machine.
    pub platform: &'t M,
    /// The probing rows.
    pub rows: Range<usize>,
}

impl<M: Platform> Task<'_, M> {
    /// Runs a walk, one per thread from `walk_of`, with results in batches.
    ///
    /// # Errors
    /// As [`Platform::run`].
    pub(crate) fn run<W, T>(
        &self,
        isa: impl Isa,
        outputs: &mut [PageBuffer<T>],
        walk_of: impl Fn(usize) -> W + Sync,
    ) -> Result<RunResult, EngineError>
    where
        W: Preloadable + Clone + Send,
        T: Send,
        for<'o> Materialise<'o, T>: Sink<W::Hit>,
    {
        M::run(self, isa, outputs, |thread, output| (walk_of(thread), Materialise::new(output)))
    }
}

/// An operator with its data, copies and outputs.
pub(crate) struct PreparedOperator<D: Data> {
    data: D,
    copies: Vec<D::Copy>,
    outputs: Vec<PageBuffer<D::Out>>,
    /// The oracle's last answer: the same for every run of a block.
    last_answer: Cell<Option<(usize, Answer)>>,
}

impl<D: Data> PreparedOperator<D> {
    pub(crate) fn of(data: D) -> Self {
        Self { data, copies: Vec::new(), outputs: Vec::new(), last_answer: Cell::new(None) }
    }

    fn oracle_answer(&self, rows: usize) -> Answer {
        match self.last_answer.get() {
            Some((answered, answer)) if answered == rows => answer,
            _ => {
                let answer = self.data.answer(rows);
                self.last_answer.set(Some((rows, answer)));
                answer
            }
        }
    }
}

impl<M: Platform, D: Data> Operator<M> for PreparedOperator<D> {
    fn prepare(&mut self, execution: &Execution, _: &M) -> Result<(), EngineError> {
        while self.copies.len() < execution.threads.copies() {
            self.copies.push(self.data.copy()?);
        }
        while self.outputs.len() < execution.threads.mains() {
            let output = PageBuffer::zeroed(self.data.output_rows(), self.data.pages());
            self.outputs.push(output.map_err(EngineError::failed)?);
        }
        Ok(())
    }

    fn probes(&self) -> usize {
        self.data.probes()
    }

    fn answer(&self, rows: usize) -> Answer {
        self.oracle_answer(rows)
    }

    fn table_bytes(&self) -> usize {
        self.copies.first().map_or(0, D::table_bytes)
    }

    fn touches(&self) -> Vec<Touch> {
        let Some(copy) = self.copies.first() else { return Vec::new() };
        let probes = self.data.probes();
        self.data.touches(copy, self.oracle_answer(probes).rows as f64 / probes as f64)
    }

    fn pages(&self) -> Pages {
        self.data.pages()
    }

    fn run(
        &mut self,
        execution: &Execution,
        platform: &M,
        rows: Range<usize>,
    ) -> Result<RunResult, EngineError> {
        let Self { data, copies, outputs, .. } = self;
        // Another cell may have needed larger outputs.
        let copies = &copies[..execution.threads.copies()];
        data.run(copies, outputs, Task { execution, platform, rows })
    }
}

/// Cache lines of one structure accessed at random.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Touch {
    /// Size of the structure.
    pub bytes: usize,
    /// Lines that a probe accesses, on average.
    pub lines: f64,
}

impl Touch {
    pub(crate) fn random(bytes: usize, lines: f64) -> Self {
        Self { bytes, lines }
    }

    /// Scaled by a share of all probes.
    pub(crate) fn weighted(self, share: f64) -> Self {
        Self { lines: self.lines * share, ..self }
    }
}
