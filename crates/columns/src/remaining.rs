//! What follows the last prober's output: build rows that come out alone, then the spilled
//! partitions, pair by pair.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;

use crate::context::Context;
use crate::join_type::Alone;
use crate::leftover::Leftover;
use crate::spill::{Pair, PairJoin};
use crate::{HashJoin, JoinError, JoinTable, ProbeMetrics};

/// What a bounded piece of work came to.
#[derive(Debug)]
pub enum Progress {
    /// Rows of the result.
    Output(RecordBatch),
    /// No rows yet: there is more to do.
    Working,
    /// Everything is done.
    Done,
}

/// The rest of a join.
pub struct Remaining {
    join: HashJoin,
    context: Context,
    /// Of the table in memory, which is freed with it.
    leftover: Option<Leftover>,
    /// Pairs nobody has begun.
    pairs: Arc<Mutex<VecDeque<Pair>>>,
    current: Option<Box<PairJoin>>,
    metrics: ProbeMetrics,
}

impl Remaining {
    /// Once every prober has ended.
    pub(crate) fn new(table: &JoinTable) -> Self {
        let spilled = table.spilled.as_ref();
        let resident = if spilled.is_some() { table.take_resident() } else { table.resident() };
        let alone = |build| !matches!(build, Alone::Never | Alone::Noted);
        let resident = resident.filter(|resident| alone(resident.emits.build));
        let pairs = spilled.map_or(Vec::new(), |spilled| spilled.pairs());
        Self {
            join: table.join().clone(),
            context: table.context.clone(),
            leftover: resident.map(Leftover::new),
            pairs: Arc::new(Mutex::new(pairs.into())),
            current: None,
            metrics: ProbeMetrics::default(),
        }
    }

    /// The next output batch, `None` when there are no more.
    ///
    /// # Errors
    /// When an output array can't be made, a filter fails, a spilled partition can't be read back,
    /// written or joined within the memory limit.
    pub fn next_output(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        loop {
            match self.advance()? {
                Progress::Output(output) => return Ok(Some(output)),
                Progress::Working => {}
                Progress::Done => return Ok(None),
            }
        }
    }

    /// Does a bounded piece of the work: reads one batch, builds one table or gives one output.
    ///
    /// # Errors
    /// As [`next_output`](Self::next_output).
    pub fn advance(&mut self) -> Result<Progress, JoinError> {
        if let Some(output) = self.next_resident()? {
            return Ok(Progress::Output(output));
        }
        let Some(current) = &mut self.current else {
            let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(pair) = pairs.pop_front() else { return Ok(Progress::Done) };
            drop(pairs);
            self.current = Some(Box::new(PairJoin::new(&self.join, &self.context, pair)?));
            return Ok(Progress::Working);
        };
        let progress = current.advance()?;
        match &progress {
            Progress::Output(output) => self.metrics.output_rows += output.num_rows() as u64,
            Progress::Working => {}
            Progress::Done => {
                self.metrics = self.metrics.plus(current.metrics());
                self.current = None;
                return Ok(Progress::Working);
            }
        }
        Ok(progress)
    }

    /// The next build rows of the table in memory that come out alone. With the last ones the table
    /// is freed.
    pub(crate) fn next_resident(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        let Some(leftover) = &mut self.leftover else { return Ok(None) };
        let output = leftover.next_output()?;
        match &output {
            Some(output) => self.metrics.output_rows += output.num_rows() as u64,
            None => self.leftover = None,
        }
        Ok(output)
    }

    /// How many rows are left, without making them.
    ///
    /// # Errors
    /// As [`next_output`](Self::next_output).
    pub fn count(mut self) -> Result<u64, JoinError> {
        let before = self.metrics.output_rows;
        self.only_count()?;
        while self.next_output()?.is_some() {}
        Ok(self.metrics.output_rows - before)
    }

    /// Gives rows without columns from here on, which cost next to nothing; those of the table in
    /// memory are only added to the metrics.
    pub(crate) fn only_count(&mut self) -> Result<(), JoinError> {
        self.metrics.output_rows += self.leftover.take().map_or(0, Leftover::count);
        self.join = self.join.clone().with_projection(Vec::new())?;
        Ok(())
    }

    /// Deals the spilled partitions out to so many threads, each with its share of the memory that
    /// is free. Rows of the table in memory come with the first.
    ///
    /// # Panics
    /// If `threads` is zero.
    #[must_use]
    pub fn split(self, threads: usize) -> Vec<Self> {
        assert!(threads > 0, "somebody must do what remains");
        let part = |_| Self {
            join: self.join.clone(),
            context: self.context.with_share(threads),
            leftover: None,
            pairs: self.pairs.clone(),
            current: None,
            metrics: ProbeMetrics::default(),
        };
        let mut parts: Vec<_> = (1..threads).map(part).collect();
        parts.insert(0, Self { context: self.context.with_share(threads), ..self });
        parts
    }

    /// What was done so far: rows that came out, and what the spilled partitions took.
    #[must_use]
    pub fn metrics(&self) -> ProbeMetrics {
        self.metrics
    }
}

impl std::fmt::Debug for Remaining {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remaining").field("metrics", &self.metrics).finish_non_exhaustive()
    }
}
