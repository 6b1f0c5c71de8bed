//! What follows the last prober's output: build rows that come out alone, then the spilled
//! partitions, pair by pair.
//!
//! ```text
//! crew of 3, each a third of the memory ──a pair does not fit──► put back, crew of 2 …
//!                                              … ──► crew of 1 with all of it: now it must fit
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;

use crate::context::Context;
use crate::join_type::SideOutput;
use crate::spill::{PartitionJoin, PartitionPair};
use crate::unmatched_build_scan::UnmatchedBuildScan;
use crate::{JoinError, JoinSpec, JoinTable, ProbeMetrics};

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
pub struct FinalPhase {
    spec: Arc<JoinSpec>,
    context: Context,
    /// Of the table in memory, which is freed with it.
    unmatched_scan: Option<UnmatchedBuildScan>,
    queue: Arc<Mutex<PartitionQueue>>,
    /// Whether this is one of them still.
    works: bool,
    current: Option<CurrentPair>,
    metrics: ProbeMetrics,
}

/// Whoever shares the pairs and the memory for them.
struct PartitionQueue {
    /// Pairs nobody has begun.
    pairs: VecDeque<PartitionPair>,
    /// Those who have not come to the end.
    working: usize,
    /// Memory of all of them.
    free: usize,
}

/// A pair being joined.
struct CurrentPair {
    join: Box<PartitionJoin>,
    /// To begin anew with more memory, if there may be more, as long as nothing has come out.
    again: Option<PartitionPair>,
}

impl FinalPhase {
    /// Once every prober has ended.
    pub(crate) fn new(table: &JoinTable) -> Self {
        let spilled = table.spilled.as_ref();
        let in_memory = if spilled.is_some() { table.take_in_memory() } else { table.in_memory() };
        let alone = |build| !matches!(build, SideOutput::Never | SideOutput::Tracked);
        let in_memory = in_memory.filter(|in_memory| alone(in_memory.output_rules.build));
        let pairs = spilled.map_or(Vec::new(), |spilled| spilled.pairs());
        Self {
            spec: table.spec.clone(),
            context: table.context.clone(),
            unmatched_scan: in_memory.map(UnmatchedBuildScan::new),
            queue: Arc::new(Mutex::new(PartitionQueue {
                pairs: pairs.into(),
                working: 1,
                free: usize::MAX,
            })),
            works: true,
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
        if let Some(output) = self.next_unmatched()? {
            return Ok(Progress::Output(output));
        }
        let Some(current) = &mut self.current else { return self.begin() };
        let progress = match current.join.advance() {
            Err(JoinError::LimitTooSmall { .. }) if current.again.is_some() => {
                let pair = current.again.take();
                self.put_back(pair);
                return Ok(Progress::Working);
            }
            progress => progress?,
        };
        match &progress {
            Progress::Output(output) => {
                current.again = None;
                self.metrics.output_rows += output.num_rows() as u64;
            }
            Progress::Working => {}
            Progress::Done => {
                self.metrics = self.metrics.plus(current.join.metrics());
                self.current = None;
                return Ok(Progress::Working);
            }
        }
        Ok(progress)
    }

    /// Takes the next pair, unless there is none.
    fn begin(&mut self) -> Result<Progress, JoinError> {
        if !self.works {
            return Ok(Progress::Done);
        }
        let mut queue = lock(&self.queue);
        let Some(pair) = queue.pairs.pop_front() else {
            queue.working -= 1;
            self.works = false;
            return Ok(Progress::Done);
        };
        let more = queue.working > 1;
        let share = if more { queue.free / queue.working } else { usize::MAX };
        drop(queue);
        let context = self.context.with_share(share);
        let again = more.then(|| pair.clone());
        match PartitionJoin::new(&self.spec, &context, pair) {
            Ok(join) => self.current = Some(CurrentPair { join: Box::new(join), again }),
            Err(JoinError::LimitTooSmall { .. }) if more => self.put_back(again),
            Err(error) => return Err(error),
        }
        Ok(Progress::Working)
    }

    /// Gives a pair back that did not fit into a share of the memory, and leaves a larger one to
    /// the others; who is the last tries again.
    fn put_back(&mut self, pair: Option<PartitionPair>) {
        // What it holds must be free before the others are told.
        self.current = None;
        let mut queue = lock(&self.queue);
        queue.pairs.extend(pair);
        if queue.working > 1 {
            queue.working -= 1;
            self.works = false;
        }
    }

    /// The next build rows of the table in memory that come out alone. With the last ones the table
    /// is freed.
    pub(crate) fn next_unmatched(&mut self) -> Result<Option<RecordBatch>, JoinError> {
        let Some(unmatched_scan) = &mut self.unmatched_scan else { return Ok(None) };
        let output = unmatched_scan.next_output()?;
        match &output {
            Some(output) => self.metrics.output_rows += output.num_rows() as u64,
            None => self.unmatched_scan = None,
        }
        Ok(output)
    }

    /// How many rows are left, without making them.
    ///
    /// # Errors
    /// As [`next_output`](Self::next_output).
    pub fn count(mut self) -> Result<u64, JoinError> {
        let before = self.metrics.output_rows;
        self.count_only()?;
        while self.next_output()?.is_some() {}
        Ok(self.metrics.output_rows - before)
    }

    /// Gives rows without columns from here on, which cost next to nothing; those of the table in
    /// memory are only added to the metrics.
    pub(crate) fn count_only(&mut self) -> Result<(), JoinError> {
        self.metrics.output_rows += self.unmatched_scan.take().map_or(0, UnmatchedBuildScan::count);
        self.spec = Arc::new(self.spec.with_projection(Vec::new())?);
        Ok(())
    }

    /// Deals the spilled partitions out to so many threads, each with its share of the memory that
    /// is free. One whose share is found too small for a partition before any row of it has come
    /// out leaves it to the others, and that share too. Rows of the table in memory come with the
    /// first.
    ///
    /// All parts must be taken to their ends: the last to end does what was left to it.
    ///
    /// # Panics
    /// If `threads` is zero, or something was taken of the partitions already.
    #[must_use]
    pub fn split(self, threads: usize) -> Vec<Self> {
        assert!(threads > 0, "somebody must do what remains");
        assert!(self.works && self.current.is_none(), "a part is not dealt out again");
        let mut queue = lock(&self.queue);
        (queue.working, queue.free) = (threads, self.context.free());
        drop(queue);
        let part = |_| Self {
            spec: self.spec.clone(),
            context: self.context.clone(),
            unmatched_scan: None,
            queue: self.queue.clone(),
            works: true,
            current: None,
            metrics: ProbeMetrics::default(),
        };
        let mut parts: Vec<_> = (1..threads).map(part).collect();
        parts.insert(0, self);
        parts
    }

    /// What was done so far: rows that came out, and what the spilled partitions took.
    #[must_use]
    pub fn metrics(&self) -> ProbeMetrics {
        self.metrics
    }
}

impl Drop for FinalPhase {
    fn drop(&mut self) {
        // Who is not taken to the end does not keep the others from having all of the memory.
        if self.works {
            self.current = None;
            lock(&self.queue).working -= 1;
        }
    }
}

/// Every lock is held for a move.
fn lock(queue: &Mutex<PartitionQueue>) -> MutexGuard<'_, PartitionQueue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for FinalPhase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FinalPhase").field("metrics", &self.metrics).finish_non_exhaustive()
    }
}
