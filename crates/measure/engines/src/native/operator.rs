//! What every operator of the engine has in common: data, copies of it, outputs, an oracle.

pub(super) mod streams;

use std::cell::Cell;
use std::ops::Range;

use bytemuck::Zeroable;
use workahead_machine::pages::{PageBuffer, Pages};
use workahead_study::engine::{Answer, EngineError};

use super::crew::{self, Crew, Ran, failed};
use super::how::How;

/// An operator whose data is in place.
pub(super) trait Operator: Send {
    /// Makes room for the copies of the data, and for the outputs, of so many threads.
    fn prepare(&mut self, how: &How, crew: &Crew) -> Result<(), EngineError>;

    /// Rows that probe, in each copy.
    fn probes(&self) -> usize;

    /// What the first so many rows of one copy must give, by an oracle that shares no code with
    /// the operator.
    fn answer(&self, rows: usize) -> Answer;

    /// Bytes of the structure that is probed.
    fn table_bytes(&self) -> usize;

    /// The lines that a probe must touch at random.
    fn touches(&self) -> Vec<Touch>;

    /// The pages it all lies on.
    fn pages(&self) -> Pages;

    /// Whether independent threads share one amount of work, each with an operator of its own,
    /// instead of doing it once each.
    fn shares_work(&self) -> bool {
        false
    }

    /// Runs some of the rows.
    fn run(&mut self, how: &How, crew: &Crew, rows: Range<usize>) -> Result<Ran, EngineError>;
}

/// The data of an operator, as its own module describes it: all that [`Made`] does not do alike
/// for everyone.
pub(super) trait Data: Send + Sized {
    /// What a thread of the independent kind has for itself.
    type Copy: Send + Sync;
    /// A row of the output.
    type Out: Zeroable + Copy + Send + Sync;

    fn copy(&self) -> Result<Self::Copy, EngineError>;
    fn probes(&self) -> usize;
    fn answer(&self, rows: usize) -> Answer;
    fn table_bytes(copy: &Self::Copy) -> usize;
    /// With `hits` rows found for each that probes.
    fn touches(&self, copy: &Self::Copy, hits: f64) -> Vec<Touch>;
    fn pages(&self) -> Pages;

    /// Rows of an output; a batch that stays in cache unless the operator needs more.
    fn output_rows(&self) -> usize {
        crew::BATCH_BYTES / size_of::<Self::Out>()
    }

    fn run(
        &self,
        copies: &[Self::Copy],
        outputs: &mut [PageBuffer<Self::Out>],
        task: Task<'_>,
    ) -> Result<Ran, EngineError>;
}

/// What is to be run.
pub(super) struct Task<'t> {
    pub(super) how: &'t How,
    pub(super) crew: &'t Crew,
    pub(super) rows: Range<usize>,
}

/// Data in place.
pub(super) struct Made<D: Data> {
    data: D,
    copies: Vec<D::Copy>,
    outputs: Vec<PageBuffer<D::Out>>,
    /// What was last asked of the oracle: the same for every run of a block.
    answered: Cell<Option<(usize, Answer)>>,
}

impl<D: Data> Made<D> {
    pub(super) fn of(data: D) -> Self {
        Self { data, copies: Vec::new(), outputs: Vec::new(), answered: Cell::new(None) }
    }
}

impl<D: Data> Operator for Made<D> {
    fn prepare(&mut self, how: &How, _: &Crew) -> Result<(), EngineError> {
        while self.copies.len() < how.threads.copies() {
            self.copies.push(self.data.copy()?);
        }
        while self.outputs.len() < how.threads.mains() {
            let output = PageBuffer::zeroed(self.data.output_rows(), self.data.pages());
            self.outputs.push(output.map_err(failed)?);
        }
        Ok(())
    }

    fn probes(&self) -> usize {
        self.data.probes()
    }

    fn answer(&self, rows: usize) -> Answer {
        match self.answered.get() {
            Some((asked, answer)) if asked == rows => answer,
            _ => {
                let answer = self.data.answer(rows);
                self.answered.set(Some((rows, answer)));
                answer
            }
        }
    }

    fn table_bytes(&self) -> usize {
        self.copies.first().map_or(0, D::table_bytes)
    }

    fn touches(&self) -> Vec<Touch> {
        let Some(copy) = self.copies.first() else { return Vec::new() };
        let probes = self.probes();
        self.data.touches(copy, self.answer(probes).rows as f64 / probes as f64)
    }

    fn pages(&self) -> Pages {
        self.data.pages()
    }

    fn run(&mut self, how: &How, crew: &Crew, rows: Range<usize>) -> Result<Ran, EngineError> {
        let Self { data, copies, outputs, .. } = self;
        // Another cell may have needed more.
        let copies = &copies[..how.threads.copies()];
        data.run(copies, outputs, Task { how, crew, rows })
    }
}

/// Cache lines touched at random in one structure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Touch {
    /// Size of the structure.
    pub(super) bytes: usize,
    /// Lines of it that a probe touches, on average.
    pub(super) lines: f64,
}

impl Touch {
    pub(super) fn random(bytes: usize, lines: f64) -> Self {
        Self { bytes, lines }
    }

    /// The same of a share of all probes.
    pub(super) fn weighted(self, share: f64) -> Self {
        Self { lines: self.lines * share, ..self }
    }
}
